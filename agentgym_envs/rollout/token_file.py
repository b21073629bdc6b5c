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
        self._lock = threading.Lock()

    def read(self, mark: str, number: int = 0) -> list[TokenRecord] | None:
        """The segments of an episode, None if there are none of it.

        `number` counts episodes whose lines are the very same.

        Raises:
            TrajectoryError: the record does not read.
        """
        with self._lock:
            try:
                return self._read(mark, number)
            except FileNotFoundError:
                return None

    def count(self, mark: str) -> int:
        """How many episodes with this line have tokens."""
        with self._lock:
            return len(self._places.get(mark, ()))

    def _read(self, mark: str, number: int) -> list[TokenRecord] | None:
        with open(self.path, "rb") as file:
            self._update(file)
            places = self._places.get(mark, [])
            if number >= len(places):
                return None
            file.seek(places[number])
            return _segments(file.readline(), self.path)

    def _update(self, file: BinaryIO) -> None:
        """Look at the lines that are new; at all of them if the file is another one than before."""
        now = os.fstat(file.fileno())
        if now.st_size < self._indexed or now.st_ino != self._inode or not self._ends_line(file):
            self._places, self._indexed, self._inode = {}, 0, now.st_ino
        file.seek(self._indexed)
        while line := file.readline():
            if not line.endswith(b"\n"):  # torn, or still being written
                return
            if head := _HEAD.match(line[:_HEAD_BYTES]):
                self._places.setdefault(head[2].decode(), []).append(self._indexed)
            self._indexed += len(line)

    def _ends_line(self, file: BinaryIO) -> bool:
        """Whether a line ends where the index does, as it must if the file only grew."""
        if self._indexed:
            file.seek(self._indexed - 1)
        return not self._indexed or file.read(1) == b"\n"


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


def _segments(line: bytes, path: Path) -> list[TokenRecord]:
    try:
        row = json.loads(line.decode("utf-8", "surrogatepass"))
        if row["schema"] != TOKEN_SCHEMA_VERSION:
            raise TrajectoryError(f"{path}: token schema {row['schema']} is not the one known here")
        return [TokenRecord(**segment) for segment in row["segments"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TrajectoryError(f"{path}: not a token record: {type(error).__name__}: {error}") from None


def _number(value: float) -> float | None:
    """Rounded; what is no number is none."""
    return round(value, _DIGITS) if math.isfinite(value) else None
