"""Token records: the file `NAME.tokens.jsonl` next to `NAME.jsonl` holds the tokens of its episodes.

A line is an episode: `{"schema": 2, "of": MARK, "segments": [...]}`, where the mark is `line_mark` of the trajectory's
line. A segment is one token sequence that a model read and continued. An episode has several segments if its
conversation was started again, for example after a summary replaced old turns.

Schema 1 had no `turn_spans`. Such files are still read, with the spans taken from the mask.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Self

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.tokens import TokenTrajectory, mask_of_spans, spans_of_mask
from agentgym_envs.trajectory import LineWriter

TOKEN_SCHEMA_VERSION = 2
_READABLE = (1, TOKEN_SCHEMA_VERSION)
_ENDING = ".tokens.jsonl"
_HEAD = re.compile(rb'\{"schema": (\d+), "of": "([0-9a-f]{16})"')
_HEAD_BYTES = 64
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """One segment as recorded: P prompt tokens, then T tokens.

    `prompt_ids` and `prompt_pieces` have length P. Length T have `ids`, `pieces` (the text of each token), `mask` (1:
    sampled by the policy), `rewards` and `logprobs` (None where the engine gave none). `turn_spans` has the begin and
    end (exclusive) of each answer, as indices into `ids`.
    """

    prompt_ids: list[int]
    prompt_pieces: list[str]
    ids: list[int]
    pieces: list[str]
    mask: list[int]
    rewards: list[float]
    turn_spans: list[tuple[int, int]]
    logprobs: list[float | None] | None

    def __post_init__(self) -> None:
        lengths = {len(self.ids), len(self.pieces), len(self.mask), len(self.rewards)}
        lengths |= {len(self.logprobs)} if self.logprobs is not None else set()
        if len(lengths) != 1 or len(self.prompt_ids) != len(self.prompt_pieces):
            raise ValueError(f"ids, pieces, mask, rewards and logprobs differ in length: {sorted(lengths)}")
        if mask_of_spans(self.turn_spans, len(self.ids)) != self.mask:
            raise ValueError(f"the mask must be 1 exactly inside the spans of the turns, got {self.turn_spans}")

    @classmethod
    def of(cls, tokens: TokenTrajectory, codec: ChatCodec) -> Self:
        """The record of a segment, with log-probabilities rounded to six decimals."""
        pieces = codec.pieces([*tokens.prompt_ids, *tokens.ids])
        prompt, rest = pieces[: len(tokens.prompt_ids)], pieces[len(tokens.prompt_ids) :]
        logprobs = None if tokens.logprobs is None else [_number(value) for value in tokens.logprobs]
        rewards = [reward or 0 for reward in tokens.rewards]  # most are 0, which is shorter than 0.0
        spans = list(tokens.turn_spans)
        return cls(tokens.prompt_ids, prompt, tokens.ids, rest, tokens.assistant_mask, rewards, spans, logprobs)

    @classmethod
    def from_json(cls, segment: dict[str, Any], schema: int) -> Self:
        """Read a segment of a parsed line. Raises ValueError, TypeError or KeyError if it is malformed."""
        spans = spans_of_mask(segment["mask"]) if schema == 1 else map(tuple, segment["turn_spans"])
        return cls(**{**segment, "turn_spans": list(spans)})


class TokenWriter(LineWriter):
    """Appends the tokens of episodes to the file next to their trajectories."""

    def __init__(self, trajectories: str | Path) -> None:
        """`trajectories` is the path of the trajectories; the tokens go to `tokens_path(trajectories)`."""
        super().__init__(tokens_path(trajectories))

    def write(self, mark: str, segments: Sequence[TokenTrajectory], codec: ChatCodec) -> None:
        """Append the tokens of the episode whose line has this mark (`TrajectoryWriter.write` returns it).

        Raises OSError as `write_line` does.
        """
        records = [_fields(TokenRecord.of(own, codec)) for segment in segments for own in segment.contexts()]
        row = {"schema": TOKEN_SCHEMA_VERSION, "of": mark, "segments": records}  # in this order, as _HEAD reads it
        self.write_line(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"))


class TokenFile:
    """Reads the tokens of single episodes from a file that may be large and may still grow.

    It keeps the offset of each line in memory and updates these offsets at every read.
    """

    def __init__(self, trajectories: str | Path) -> None:
        """`trajectories` is the path of the trajectories. The file of their tokens may be missing."""
        self.path = tokens_path(trajectories)
        self._offsets: dict[str, list[int]] = {}
        self._indexed, self._inode = 0, -1
        self._last = (0, b"")  # offset and first bytes of the last indexed line
        self._lock = threading.Lock()

    def read(self, mark: str) -> list[TokenRecord] | None:
        """The segments of the first episode with this mark; None if the file has no such episode.

        Raises:
            TrajectoryError: the record does not read.
        """
        if not self.path.is_file():  # missing, or a pipe, on which open() would block
            return None
        with self._lock, open(self.path, "rb") as file:
            line = self._line(file, mark)
        return None if line is None else _segments(line, self.path.name)

    def count(self, mark: str) -> int:
        """The number of episodes with this mark that have tokens."""
        with self._lock:
            return len(self._offsets.get(mark, ()))

    def _line(self, file: BinaryIO, mark: str) -> bytes | None:
        """The line with that mark. If its offset holds another line, the file was rewritten: index it once more."""
        for _ in range(2):
            self._update(file)
            if not (offsets := self._offsets.get(mark)):
                return None
            file.seek(offsets[0])
            line = file.readline()
            if _mark_of(line) == mark:
                return line
            self._forget()
        return None

    def _update(self, file: BinaryIO) -> None:
        """Index the new lines, or all lines if the file was replaced."""
        now = os.fstat(file.fileno())
        if now.st_ino != self._inode or not self._only_grew(file):
            self._forget()
            self._inode = now.st_ino
        file.seek(self._indexed)
        while line := file.readline():
            if not line.endswith(b"\n"):  # incomplete: a crash, or still being written
                return
            if mark := _mark_of(line):
                self._offsets.setdefault(mark, []).append(self._indexed)
            self._last = self._indexed, line[:_HEAD_BYTES]
            self._indexed += len(line)

    def _only_grew(self, file: BinaryIO) -> bool:
        """True if the last indexed line is still at its offset, as in a file that only grew."""
        start, head = self._last
        file.seek(start)
        begins = file.read(len(head)) == head
        file.seek(max(self._indexed - 1, 0))
        return begins and file.read(1) == b"\n" if self._indexed else True

    def _forget(self) -> None:
        self._offsets, self._indexed, self._last = {}, 0, (0, b"")


def tokens_path(trajectories: str | Path) -> Path:
    """The path of the token file that belongs to a trajectory file."""
    path = Path(trajectories)
    return path.with_name(path.name.removesuffix(".jsonl") + _ENDING)


def is_token_file(path: str | Path) -> bool:
    """True if the name of a file is that of a token file."""
    return Path(path).name.endswith(_ENDING)


def _fields(record: TokenRecord) -> dict[str, Any]:
    """The fields as a dict. `asdict` would copy every list."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _mark_of(line: bytes) -> str | None:
    head = _HEAD.match(line[:_HEAD_BYTES])
    return head[2].decode() if head else None


def _segments(line: bytes, name: str) -> list[TokenRecord]:
    try:
        row = json.loads(line.decode("utf-8", "surrogatepass"))
        if row["schema"] not in _READABLE:
            known = " or ".join(map(str, _READABLE))
            raise TrajectoryError(f"{name}: this version reads token schema {known}, not {row['schema']}")
        return [TokenRecord.from_json(segment, row["schema"]) for segment in row["segments"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TrajectoryError(f"{name}: not a token record: {type(error).__name__}: {error}") from None


def _number(value: float) -> float | None:
    """The rounded value; None for infinity and NaN."""
    return round(value, _DIGITS) if math.isfinite(value) else None
