"""Token records: beside `NAME.jsonl` of trajectories a file `NAME.tokens.jsonl` with the tokens of its episodes.

A line is an episode: `{"schema": 1, "of": MARK, "segments": [...]}`, where the mark is `line_mark` of the trajectory's
line. A segment is one sequence that a model was given and went on with; an episode has several if its conversation was
begun anew (a summary took the place of old turns, say).
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
from agentgym_envs.rollout.tokens import TokenTrajectory
from agentgym_envs.trajectory import LineWriter

TOKEN_SCHEMA_VERSION = 1
_ENDING = ".tokens.jsonl"
_HEAD = re.compile(rb'\{"schema": (\d+), "of": "([0-9a-f]{16})"')
_HEAD_BYTES = 64
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """One segment as recorded: P prompt tokens, T tokens after them.

    `prompt_ids` and `prompt_pieces` have length P; `ids`, `pieces` (what each token says), `mask` (1: sampled by the
    policy), `rewards` and `logprobs` (of the engine that sampled, None where there is none) have length T.
    """

    prompt_ids: list[int]
    prompt_pieces: list[str]
    ids: list[int]
    pieces: list[str]
    mask: list[int]
    rewards: list[float]
    logprobs: list[float | None] | None

    def __post_init__(self) -> None:
        lengths = {len(self.ids), len(self.pieces), len(self.mask), len(self.rewards)}
        lengths |= {len(self.logprobs)} if self.logprobs is not None else set()
        if len(lengths) != 1 or len(self.prompt_ids) != len(self.prompt_pieces):
            raise ValueError(f"ids, pieces, mask, rewards and logprobs differ in length: {sorted(lengths)}")

    @classmethod
    def of(cls, tokens: TokenTrajectory, codec: ChatCodec) -> Self:
        """The record of a segment; log-probabilities to six digits after the point."""
        pieces = codec.pieces([*tokens.prompt_ids, *tokens.ids])
        prompt, rest = pieces[: len(tokens.prompt_ids)], pieces[len(tokens.prompt_ids) :]
        logprobs = None if tokens.logprobs is None else [_number(value) for value in tokens.logprobs]
        rewards = [reward or 0 for reward in tokens.rewards]  # most are 0, which is shorter than 0.0
        return cls(tokens.prompt_ids, prompt, tokens.ids, rest, tokens.assistant_mask, rewards, logprobs)


class TokenWriter(LineWriter):
    """Appends the tokens of episodes to the file that lies beside their trajectories."""

    def __init__(self, trajectories: str | Path) -> None:
        """`trajectories` is the path of the trajectories; the tokens go to `tokens_path` of it."""
        super().__init__(tokens_path(trajectories))

    def write(self, mark: str, segments: Sequence[TokenTrajectory], codec: ChatCodec) -> None:
        """Append the tokens of the episode whose line has this mark (`TrajectoryWriter.write` returns it).

        Raises OSError as `write_line` does.
        """
        records = [_fields(TokenRecord.of(segment, codec)) for segment in segments]
        row = {"schema": TOKEN_SCHEMA_VERSION, "of": mark, "segments": records}  # in this order, as _HEAD reads it
        self.write_line(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"))


class TokenFile:
    """Reads the tokens of single episodes; the file may be large, and may still be written.

    What is kept in memory is where each line begins. It is brought up to date when an episode is asked for.
    """

    def __init__(self, trajectories: str | Path) -> None:
        """`trajectories` is the path of the trajectories; their tokens need not be there (yet)."""
        self.path = tokens_path(trajectories)
        self._places: dict[str, list[int]] = {}
        self._indexed, self._inode = 0, -1
        self._last = (0, b"")  # where the last line of the index begins, and how
        self._lock = threading.Lock()

    def read(self, mark: str) -> list[TokenRecord] | None:
        """The segments of an episode, None if there are none of it; of the first, if several have this line.

        Raises:
            TrajectoryError: the record does not read.
        """
        if not self.path.is_file():  # not there, or a pipe, at which to open it would wait
            return None
        with self._lock, open(self.path, "rb") as file:
            line = self._line(file, mark)
        return None if line is None else _segments(line, self.path.name)

    def count(self, mark: str) -> int:
        """How many episodes with this line have tokens."""
        with self._lock:
            return len(self._places.get(mark, ()))

    def _line(self, file: BinaryIO, mark: str) -> bytes | None:
        """The line of that mark. If another one is where it was, the file was written anew, and is read once more."""
        for _ in range(2):
            self._update(file)
            if not (places := self._places.get(mark)):
                return None
            file.seek(places[0])
            line = file.readline()
            if _mark_of(line) == mark:
                return line
            self._forget()
        return None

    def _update(self, file: BinaryIO) -> None:
        """Look at the lines that are new; at all of them if the file is another one than before."""
        now = os.fstat(file.fileno())
        if now.st_ino != self._inode or not self._goes_on(file):
            self._forget()
            self._inode = now.st_ino
        file.seek(self._indexed)
        while line := file.readline():
            if not line.endswith(b"\n"):  # torn, or still being written
                return
            if mark := _mark_of(line):
                self._places.setdefault(mark, []).append(self._indexed)
            self._last = self._indexed, line[:_HEAD_BYTES]
            self._indexed += len(line)

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the last line of the index still begins and ends where it did, as it must if the file only grew."""
        start, head = self._last
        file.seek(start)
        begins = file.read(len(head)) == head
        file.seek(max(self._indexed - 1, 0))
        return begins and file.read(1) == b"\n" if self._indexed else True

    def _forget(self) -> None:
        self._places, self._indexed, self._last = {}, 0, (0, b"")


def tokens_path(trajectories: str | Path) -> Path:
    """Where the tokens of a file of trajectories lie."""
    path = Path(trajectories)
    return path.with_name(path.name.removesuffix(".jsonl") + _ENDING)


def is_token_file(path: str | Path) -> bool:
    """Whether a file holds tokens, by its name."""
    return Path(path).name.endswith(_ENDING)


def _fields(record: TokenRecord) -> dict[str, Any]:
    """As `asdict`, which would copy every list."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _mark_of(line: bytes) -> str | None:
    head = _HEAD.match(line[:_HEAD_BYTES])
    return head[2].decode() if head else None


def _segments(line: bytes, name: str) -> list[TokenRecord]:
    try:
        row = json.loads(line.decode("utf-8", "surrogatepass"))
        if row["schema"] != TOKEN_SCHEMA_VERSION:
            raise TrajectoryError(f"{name}: token schema {row['schema']} is not the one known here")
        return [TokenRecord(**segment) for segment in row["segments"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TrajectoryError(f"{name}: not a token record: {type(error).__name__}: {error}") from None


def _number(value: float) -> float | None:
    """Rounded; what is no number is none."""
    return round(value, _DIGITS) if math.isfinite(value) else None
