"""The format of a file is detected from its content, and a conversation has the mask of an equal episode."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.rollout import ChatCodec
from agentgym_envs.trajectory import TrajectoryWriter
from agentgym_trl.collator import IGNORED, rows_of
from agentgym_trl.conversations import ConversationRecord, Exchange, encode_conversation, read_demonstrations
from tests.adapters.trl.small import demonstrations
from tests.rollout.families import FAMILIES, roll

SAYS = ["Rules. Say OK.", "Goal: up.", "A wall.", "You are there."]
WORDS = ["OK", "up", "up up"]


def message(role: str, value: str, loss: bool | None = None) -> dict[str, Any]:
    return {"from": role, "loss": loss, "value": value}


def record(losses: Sequence[bool | None] = (False, True, True), item_id: object = "textcraft_7") -> dict[str, Any]:
    """A record in AgentTraj-L's format: the first answer only agrees to the rules."""
    conversation: list[dict[str, Any]] = []
    for text, word, loss in zip(SAYS, WORDS, losses, strict=False):
        conversation += [message("human", text), message("gpt", word, loss)]
    return {"item_id": item_id, "conversations": conversation}


RECORD = ConversationRecord(
    "textcraft_7",
    (
        Exchange("Rules. Say OK.", "OK", False),
        Exchange("Goal: up.", "up", True),
        Exchange("A wall.", "up up", True),
    ),
)


def trained(row: Any) -> list[int]:
    return [label for label in row["labels"] if label != IGNORED]


def test_a_record_is_read() -> None:
    assert ConversationRecord.from_record(record()) == RECORD
    assert ConversationRecord.from_record(record(item_id=7)).id == "7"
    missing = record()
    for item in missing["conversations"]:
        del item["loss"]
    assert [e.trained for e in ConversationRecord.from_record(missing).exchanges] == [True] * 3
    assert [e.trained for e in ConversationRecord.from_record(record((None, False, True))).exchanges] == [
        True,
        False,
        True,
    ]


def test_messages_after_the_last_trained_answer_are_left_out() -> None:
    trailing = record()
    trailing["conversations"].append(message("human", "And now?"))
    assert ConversationRecord.from_record(trailing) == RECORD
    assert ConversationRecord.from_record(record((False, True, False))).exchanges == RECORD.exchanges[:2]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_conversation_has_the_mask_of_an_episode(name: str) -> None:
    """If all answers are trained on, its row is that of an episode with the same answers."""
    codec = ChatCodec(FAMILIES[name].tokenizer())
    (played,) = rows_of(roll(codec, [codec.encode_answer(word) for word in WORDS], SAYS, instructions=""))
    (row,) = encode_conversation(ConversationRecord.from_record(record((True, True, True))), codec)
    assert row == played
    (context,) = encode_conversation(RECORD, codec)
    assert context["input_ids"] == played["input_ids"]
    assert trained(context) == codec.encode_answer("up") + codec.encode_answer("up up")
    first = len(codec.encode_prompt([{"role": "user", "content": SAYS[0]}])) + len(codec.encode_answer("OK"))
    assert context["labels"] == [IGNORED] * first + played["labels"][first:]


def test_encoding_gives_the_literal_labels() -> None:
    codec = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
    two = ConversationRecord("", (Exchange("a", "b", False), Exchange("c", "up", True)))
    (row,) = encode_conversation(two, codec)
    start, end = 258, 259  # <|im_start|>, <|im_end|>
    turn = [*b"b", end, 10, start, *b"user\nc", end, 10, start, *b"assistant\n"]
    assert row["input_ids"][-len(turn) - 2 :] == [*turn, 256, end]  # 256 is "up"
    assert row["labels"] == [IGNORED] * (len(row["labels"]) - 2) + [256, end]


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=8), st.booleans())
def test_the_labels_are_the_answers_to_train_on(losses: list[bool | None], trailing: bool) -> None:
    codec = ChatCodec(FAMILIES["smollm2"].tokenizer())
    messages = [m for n, loss in enumerate(losses) for m in (message("human", f"h{n}"), message("gpt", f"g{n}", loss))]
    messages += [message("human", "more?")] * trailing
    kept = [n for n, loss in enumerate(losses) if loss is not False]
    if not kept:
        with pytest.raises(TrajectoryError, match="nothing to train on"):
            ConversationRecord.from_record({"conversations": messages})
        return
    (row,) = encode_conversation(ConversationRecord.from_record({"conversations": messages}), codec)
    assert trained(row) == [i for n in kept for i in codec.encode_answer(f"g{n}")]
    assert row["labels"][-1] != IGNORED
    text = codec.tokenizer.decode(row["input_ids"])
    assert all(f"h{n}" in text and f"g{n}" in text for n in range(kept[-1] + 1))


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_with_a_json_list_may_have_any_name(indent: int | None, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("\n " + json.dumps([record(), record()], indent=indent))
    assert read_demonstrations(tmp_path / "train.jsonl") == [RECORD, RECORD]


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_file_of_json_lines_may_have_any_name(end: str, tmp_path: Path) -> None:
    line = json.dumps(record())
    (tmp_path / "train.json").write_text(f"{line}\n\n{line}{end}", encoding="utf-8")
    assert read_demonstrations(tmp_path / "train.json") == [RECORD, RECORD]


def test_a_trajectory_file_may_have_any_name(tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path / "train.json") as writer:
        for trajectory in demonstrations():
            writer.write(trajectory)
    assert read_demonstrations(tmp_path / "train.json") == list(demonstrations())


@pytest.mark.parametrize("content", ["", "\n \n", "[]"])
def test_an_empty_file_has_no_demonstrations(content: str, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(content)
    assert read_demonstrations(tmp_path / "empty") == []


TWO_HUMANS = [message("human", "a"), message("human", "b")]
GPT_FIRST = [message("gpt", "a"), message("human", "b")]
WRONG: dict[str, tuple[Any, str]] = {
    "text": ("Once upon a time.\n", "f:1: neither a trajectory .* nor a conversation"),
    "a number": ("7\n", "f:1: neither"),
    "another object": ('{"prompt": "a", "completion": "b"}\n', "f:1: neither"),
    "a broken list": ("[{", "f: neither"),
    "deep": ("[" * 100_000, "f: neither"),
    "a second line of another kind": (f"{json.dumps(record())}\n[]\n", "f:2: not a conversation"),
    "a torn second line": (f'{json.dumps(record())}\n{{"item', "f:2: neither"),
    "a list of texts": ([record(), "a"], "f:2: not a conversation"),
    "a list of messages": ([message("human", "a")], 'f:1: not a conversation.* a list "conversations"'),
    "two humans": ([{"conversations": TWO_HUMANS}], "f:1: message 2 must be from \"gpt\".* got 'human'"),
    "model first": (
        [record(), {"item_id": 5, "conversations": GPT_FIRST}],
        r"f:2 \(item_id 5\): message 1 must be from \"human\"",
    ),
    "a system message": ([{"conversations": [message("system", "a")]}], "from \"human\".* got 'system'"),
    "no role": ([{"conversations": ["a"]}], 'message 1 must be from "human".* got None'),
    "no text": ([{"conversations": [{"from": "human", "value": None}]}], 'message 1 must have a text as its "value"'),
    "odd loss": (
        [{"conversations": [message("human", "a"), {"from": "gpt", "loss": "no", "value": "b"}]}],
        'the "loss" of message 2 must be true, false or null',
    ),
    "no loss": ([record((False, False, False))], r"f:1 \(item_id 'textcraft_7'\): nothing to train on"),
    "no messages": ([{"item_id": 1, "conversations": []}], r"f:1 \(item_id 1\): nothing to train on"),
}


@pytest.mark.parametrize(("content", "words"), WRONG.values(), ids=WRONG)
def test_errors_name_the_position_and_the_reason(content: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(TrajectoryError, match=words) as caught:
        read_demonstrations(tmp_path / "f")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
