"""The texts of single tokens, and token files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.rollout import ChatCodec, TokenTrajectory
from agentgym_envs.rollout.token_file import TokenFile, TokenRecord, TokenWriter, is_token_file, tokens_path
from agentgym_envs.trajectory import TrajectoryWriter, line_mark
from tests.rollout.families import FAMILIES, roll
from tests.rollout.sentences import sentencepiece

EMOJI = "go 👩‍🚀 到 Москва é\n"
TOKENIZERS = {name: FAMILIES[name].tokenizer() for name in ("qwen2.5", "llama-3", "with-eos")}
TOKENIZERS["sentencepiece"] = sentencepiece()
CODECS = {name: ChatCodec(tokenizer) for name, tokenizer in TOKENIZERS.items()}
each = pytest.mark.parametrize("name", TOKENIZERS)


def decoded(codec: ChatCodec, ids: list[int]) -> str:
    return str(codec.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


@each
@given(text=st.text(st.characters(codec="utf-8") | st.sampled_from("到👩‍🚀é▁ up"), max_size=40))
def test_the_pieces_of_any_text_join_to_it(name: str, text: str) -> None:
    codec = CODECS[name]
    ids = [*codec.encode_prompt([{"role": "user", "content": text}]), *codec.encode_answer(text)]
    pieces = codec.pieces(ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == decoded(codec, ids)


@each
@given(data=st.data())
def test_the_pieces_of_any_ids_join_to_their_text(name: str, data: st.DataObject) -> None:
    """A model may write any ids, also invalid bytes."""
    ids = data.draw(st.lists(st.integers(0, len(TOKENIZERS[name]) - 1), max_size=60))
    pieces, text = CODECS[name].pieces(ids), decoded(CODECS[name], ids)
    assert len(pieces) == len(ids)
    if name == "sentencepiece" and "\ufffd" in text:
        return  # its decoder drops readable text next to an invalid byte; the pieces keep it
    assert "".join(pieces) == text


def test_the_token_that_completes_a_character_has_its_text() -> None:
    codec = CODECS["qwen2.5"]
    assert codec.pieces(codec.encode_answer("up 到!")) == ["up", " ", "", "", "到", "!", "<|im_end|>"]
    assert codec.pieces(list("a🚀é".encode())) == ["a", "", "", "", "🚀", "", "é"]


def test_invalid_bytes_do_not_affect_later_text() -> None:
    """A long run of invalid bytes takes linear time, and the text after it stays at its tokens."""
    codec = CODECS["qwen2.5"]
    pieces = codec.pieces([*[0xFF] * 3001, *"到a".encode()])
    assert pieces[-3:] == ["", "到", "a"] and "".join(pieces[:-3]) == "\ufffd" * 3001


def episode(*answers: str, says: list[str] | None = None) -> TokenTrajectory:
    codec = CODECS["qwen2.5"]
    seen = says or [f"seen {EMOJI}"] * len(answers) + ["the end"]
    return roll(codec, [codec.encode_answer(answer) for answer in answers], seen, rewards=[0.25] * len(seen))


def record(path: Path, *episodes: TokenTrajectory) -> list[str]:
    with TrajectoryWriter(path) as writer, TokenWriter(path) as tokens:
        marks = [writer.write(one.trajectory) for one in episodes]
        for mark, one in zip(marks, episodes, strict=True):
            tokens.write(mark, [one], CODECS["qwen2.5"])
    return marks


def test_records_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "step-3.jsonl"
    episodes = [episode("go", EMOJI), episode("up")]
    marks = record(path, *episodes)
    assert marks == [line_mark(line) for line in path.read_bytes().splitlines()]
    assert tokens_path(path).name == "step-3.tokens.jsonl"
    assert is_token_file(tokens_path(path)) and not is_token_file(path)
    file = TokenFile(path)
    for mark, one in reversed(list(zip(marks, episodes, strict=True))):
        found = file.read(mark)
        assert found is not None
        (segment,) = found
        assert segment.prompt_ids == one.prompt_ids and segment.ids == one.ids
        assert segment.mask == one.assistant_mask and segment.rewards == one.rewards
        assert segment.logprobs == one.logprobs and sum(segment.rewards) == 0.25 * len(one.trajectory.turns)
        assert segment.prompt_pieces + segment.pieces == CODECS["qwen2.5"].pieces(one.prompt_ids + one.ids)
    assert file.read("0" * 16) is None
    assert TokenFile(tmp_path / "other.jsonl").read(marks[0]) is None


def test_an_infinite_log_probability_becomes_none(tmp_path: Path) -> None:
    one = episode("go")
    assert one.logprobs is not None
    one.logprobs[0], one.logprobs[1] = float("-inf"), -1 / 3
    (mark,) = record(tmp_path / "t.jsonl", one)
    text = tokens_path(tmp_path / "t.jsonl").read_text()
    json.loads(text, parse_constant=pytest.fail)
    (segment,) = TokenFile(tmp_path / "t.jsonl").read(mark) or []
    assert segment.logprobs is not None and segment.logprobs[:2] == [None, -0.333333]


def test_a_growing_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    file = TokenFile(path)
    assert file.read("0" * 16) is None, "it is not there yet"
    first = record(path, episode("one"))
    assert file.read(first[0])
    second = record(path, episode("two"), episode("three"))
    assert all(file.read(mark) for mark in first + second)
    path.unlink()
    tokens_path(path).unlink()
    others = record(path, *[episode(f"another {number}") for number in range(4)])
    assert all(file.read(mark) for mark in others), "a replaced file is indexed again"
    assert not any(file.read(mark) for mark in first + second)


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_an_incomplete_record_is_skipped_and_then_removed(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    marks = record(path, episode("one"), episode("two"))
    whole = tokens_path(path).read_bytes()
    first = whole.index(b"\n") + 1
    tokens_path(path).write_bytes(whole[: first + kept] if kept > 0 else whole[:kept])
    file = TokenFile(path)
    assert file.read(marks[0]) and file.read(marks[1]) is None
    with TokenWriter(path) as tokens:
        assert tokens_path(path).read_bytes() == whole[:first]
        tokens.write(marks[1], [episode("two")], CODECS["qwen2.5"])
    assert file.read(marks[1]), "the index did not run past the torn line"


@pytest.mark.parametrize("order", ["210", "102", "1023"])
def test_a_rewritten_file_is_indexed_again(order: str, tmp_path: Path) -> None:
    """Rewritten in the same inode, with equal line ends: each mark gets its own tokens."""
    path, answers = tmp_path / "t.jsonl", ["one", "two", "six", "ten"]
    marks = record(path, *map(episode, answers))
    lines = tokens_path(path).read_bytes().splitlines(keepends=True)
    assert len({map(len, lines)}) == 1
    tokens_path(path).write_bytes(b"".join(lines[:3]))
    file = TokenFile(path)
    assert file.read(marks[0]) and file.read(marks[3]) is None
    tokens_path(path).write_bytes(b"".join(lines[int(number)] for number in order))
    for number in range(4):
        found = file.read(marks[number])
        assert (found is None) == (str(number) not in order)
        assert found is None or found[0].ids == episode(answers[number]).ids
    tokens_path(path).write_bytes(lines[3] + lines[1] + lines[2])
    assert file.read(marks[0]) is None


def test_turn_spans_are_recorded(tmp_path: Path) -> None:
    one = episode("go", EMOJI)
    (mark,) = record(tmp_path / "t.jsonl", one)
    (segment,) = TokenFile(tmp_path / "t.jsonl").read(mark) or []
    assert tuple(segment.turn_spans) == one.turn_spans and len(segment.turn_spans) == 2
    codec = CODECS["qwen2.5"]
    assert [codec.decode(segment.ids[begin:end]) for begin, end in segment.turn_spans] == ["go", EMOJI]


def test_a_file_of_schema_1_is_read_with_spans_from_the_mask(tmp_path: Path) -> None:
    path, one = tmp_path / "t.jsonl", episode("go", EMOJI)
    (mark,) = record(path, one)
    row = json.loads(tokens_path(path).read_text())
    for segment in row["segments"]:
        del segment["turn_spans"]
    tokens_path(path).write_text(json.dumps(row | {"schema": 1}) + "\n")
    (segment,) = TokenFile(path).read(mark) or []
    assert segment == TokenRecord.of(one, CODECS["qwen2.5"])


def test_equal_episodes_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    same = episode("same")
    marks = record(path, same, same, episode("other"))
    file = TokenFile(path)
    assert marks[0] == marks[1] and file.read(marks[0])
    assert file.count(marks[0]) == 2 and file.count(marks[2]) == 1


EMPTY: dict[str, Any] = {name: [] for name in TokenRecord.__dataclass_fields__}


@pytest.mark.parametrize(
    "row",
    [
        {"schema": 3, "segments": []},
        {"schema": 2},
        {"schema": 1, "segments": [{"ids": []}]},
        {"schema": 2, "segments": [{"ids": []}]},
        {"schema": 2, "segments": [EMPTY | {"mask": [0]}]},
        {"schema": 2, "segments": [EMPTY | {"turn_spans": [[0, 1]]}]},
        {"schema": 2, "segments": [{name: value for name, value in EMPTY.items() if name != "turn_spans"}]},
        {"schema": 2, "segments": 3},
    ],
)
def test_malformed_records_are_refused(row: dict[str, Any], tmp_path: Path) -> None:
    line = json.dumps({"schema": row["schema"], "of": "0" * 16, **row})
    tokens_path(tmp_path / "t.jsonl").write_text(line + "\n")
    with pytest.raises(
        TrajectoryError, match=r"t\.tokens\.jsonl: (not a token record|this version reads token schema 1 or 2)"
    ):
        TokenFile(tmp_path / "t.jsonl").read("0" * 16)
