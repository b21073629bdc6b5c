"""Rows of labelled episodes: the loss is on the oracle's answers, and on nothing that the policy wrote."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_envs.rollout import ChatCodec, OracleLabel
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_trl.collator import IGNORED, TrainingRow
from agentgym_trl.imitation import ImitationRows, label_counts, label_groups, label_metrics
from agentgym_trl.models import make_codec
from tests.rollout.families import FAMILIES, trl_template

TASK = Task("t/1", "train", "g", "goal")


def turn(action: str, answer: str | None, **more: Any) -> Turn:
    """A turn with the label `answer`."""
    finish = more.pop("finish", "stop")
    fields: dict[str, Any] = {"turns_to_go": None if answer is None else 3, "exact": True, **more}
    label = OracleLabel(answer, agrees=action == answer, **fields)
    return Turn("look", action, 0.0, {"finish": finish, "oracle": asdict(label)})


def episode(*turns: Turn, stop: str = "turn_limit") -> Trajectory:
    return Trajectory("E-v0", TASK, 0, "Play.", turns, "done", 0.0, False, stop)


def rows(codec: ChatCodec, *turns: Turn, max_length: int | None = None) -> ImitationRows:
    data = ImitationRows()
    data.add(episode(*turns), codec, max_length)
    return data


def text(codec: ChatCodec, row: TrainingRow) -> str:
    """The text of a row, with what is trained on in brackets."""
    whole, trained = "", False
    for piece, label in zip(codec.pieces(row["input_ids"]), row["labels"], strict=True):
        if (label != IGNORED) != trained:
            whole, trained = whole + ("]" if trained else "["), not trained
        whole += piece
    return whole + ("]" if trained else "")


QWEN = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
QWEN3 = ChatCodec(FAMILIES["qwen3-training"].tokenizer(), template=trl_template("qwen3"), forks=True)
PROMPT = "<|im_start|>system\nPlay.<|im_end|>\n<|im_start|>user\nlook<|im_end|>\n<|im_start|>assistant\n"
NEXT = "\n<|im_start|>user\nlook<|im_end|>\n<|im_start|>assistant\n"
END = "<|im_end|>"


def test_only_labels_are_trained_on() -> None:
    data = rows(QWEN, turn("go up", "go left"), turn("wait", "go down"))
    assert [text(QWEN, row) for row in data.rows] == [
        f"{PROMPT}[go left{END}]",
        f"{PROMPT}go up{END}{NEXT}[go down{END}]",
    ]
    assert (data.labels, data.too_long) == (2, 0)


def test_turns_that_agree_share_a_row_with_the_next_label() -> None:
    data = rows(QWEN, turn("go up", "go up"), turn("wait", "go down"), turn("go down", "go down"), turn("a", None))
    assert [text(QWEN, row) for row in data.rows] == [
        f"{PROMPT}[go up{END}]{NEXT}[go down{END}]",
        f"{PROMPT}go up{END}{NEXT}wait{END}{NEXT}[go down{END}]",
    ]
    assert data.labels == 3


def test_states_without_a_label_are_context_only() -> None:
    unasked = Turn("look", "wait", 0.0, {"finish": "stop"})
    data = rows(QWEN, turn("wait", None), unasked, turn("wait", "go up"))
    assert [text(QWEN, row) for row in data.rows] == [f"{PROMPT}wait{END}{NEXT}wait{END}{NEXT}[go up{END}]"]
    assert rows(QWEN, turn("wait", None), unasked).rows == []


def test_a_truncated_answer_is_not_its_own_label() -> None:
    """Its end token was not sampled, but the label has one."""
    data = rows(QWEN, turn("go up", "go up", finish="length"), turn("go up", "go up"))
    assert [text(QWEN, row) for row in data.rows] == [
        f"{PROMPT}[go up{END}]",
        f"{PROMPT}go up{END}{NEXT}[go up{END}]",
    ]


def test_a_label_that_is_too_long_leaves_the_others_of_its_row() -> None:
    turns = turn("go up", "go up"), turn("wait", "go " + "very " * 50 + "far"), turn("go up", "go down")
    longest = len(rows(QWEN, turns[0], turn("wait", "wait"), turns[2]).rows[0]["input_ids"])
    data = rows(QWEN, *turns, max_length=longest)
    assert [text(QWEN, row) for row in data.rows] == [
        f"{PROMPT}[go up{END}]",
        f"{PROMPT}go up{END}{NEXT}wait{END}{NEXT}[go down{END}]",
    ]
    assert (data.labels, data.too_long) == (2, 1)
    none = rows(QWEN, *turns, max_length=3)
    assert (none.rows, none.labels, none.too_long) == ([], 0, 3)


def test_a_template_that_drops_thoughts_gives_the_context_of_the_label() -> None:
    thought = "<think>\nso\n</think>\n\ngo up"
    data = rows(QWEN3, turn(thought, thought), turn("wait", "go down"))
    assert [text(QWEN3, row) for row in data.rows] == [
        f"{PROMPT}[{thought}{END}]",
        f"{PROMPT}go up{END}{NEXT}[go down{END}]",
    ]


LABELS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["a", "b", None])), max_size=8)


@given(LABELS)
@settings(deadline=None)
def test_every_label_is_in_one_group(turns: list[tuple[str, str | None]]) -> None:
    found = list(label_groups(episode(*(turn(*pair) for pair in turns))))
    assert [n for group in found for n in group] == [n for n, (_, answer) in enumerate(turns) if answer is not None]
    assert all(turns[n][0] == turns[n][1] for group in found for n in group[:-1])
    assert sum(action != answer for action, answer in turns if answer is not None) <= len(found)


@pytest.mark.train
def test_the_loss_is_that_of_one_row_per_label(tokenizer: Any) -> None:
    """The sum over tokens of -log p is the same with shared rows and without."""
    import torch

    from agentgym_trl.collator import MultiTurnCollator
    from tests.adapters.trl.small import make_small_model

    codec, model = make_codec(tokenizer), make_small_model(tokenizer)
    turns = [turn("get 1", "get 1"), turn("craft", "get 1"), turn("get 1", "get 1"), turn("get 1", "craft")]

    def loss(data: list[TrainingRow]) -> float:
        batch = MultiTurnCollator(0)(data)
        count = int((batch["labels"][:, 1:] != IGNORED).sum())
        with torch.no_grad():
            return float(model(**batch).loss) * count

    shared = rows(codec, *turns)
    single = [row for end in range(1, 5) for row in rows(codec, *unlabelled(turns[: end - 1]), turns[end - 1]).rows]
    assert (len(shared.rows), len(single)) == (2, 4)
    assert loss(shared.rows) == pytest.approx(loss(single), rel=1e-5)


def unlabelled(turns: list[Turn]) -> list[Turn]:
    return [Turn(one.observation, one.action, 0.0, {"finish": "stop"}) for one in turns]


def test_the_metrics_count_states_by_their_label() -> None:
    unasked = Turn("look", "wait", 0.0)
    played = episode(
        turn("a", "a"),
        turn("a", "b"),
        turn("b", "b", played=True),
        turn("a", None),
        turn("a", None, exact=False),
        unasked,
    )
    failed = episode(turn("a", "a"), stop="env_error")
    assert label_metrics(map(label_counts, [played, failed])) == {
        "states": 6,
        "labelled": 3,
        "out_of_reach": 1,
        "unsolved": 1,
        "unasked": 1,
        "oracle_turns": pytest.approx(1 / 6),
        "agreement": 0.5,
    }
    assert set(label_metrics([label_counts(failed)]).values()) == {0.0}
