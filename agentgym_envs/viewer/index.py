"""The index: of every episode what a list shows, and where it lies in its file. Texts stay on disk.

A line is decoded only in part, by msgspec, which skips what is not asked for; what msgspec does not take (NaN, half
surrogates) goes through Python's own decoder. The index follows its files: `refresh` reads what is new.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.trajectory import SCHEMA_VERSION, Trajectory
from agentgym_envs.viewer.agentgym_rl import find_records, read_record
from agentgym_envs.viewer.follow import Tail
from agentgym_envs.viewer.sources import AGENTGYM_RL, Source, SourceScan, find_sources

LONGEST_GOAL = 300
"""Characters of a goal that a row shows."""
_MOST_PROBLEMS = 50
_STEP_FILE = re.compile(r"(step|eval)-([0-9]+)\b.*")
_SCAN_SHARE = 10  # looking for new files may take this part of the time


class _Info(msgspec.Struct, gc=False):
    invalid_action: Any = None


class _Turn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    observation: msgspec.Raw
    action: msgspec.Raw
    reward: float
    info: _Info = msgspec.field(default_factory=_Info)


class _Task(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: str
    split: str
    group: str
    goal: str
    data: msgspec.Raw = msgspec.Raw()


class _Meta(msgspec.Struct, gc=False):
    step: Any = None
    training: Any = None
    max_turns: Any = None
    policy: Any = None
    agent: Any = None


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of trajectories; the fields are those of `Trajectory`, so that the same lines are read as there."""

    schema: Literal[1, 2]
    env_id: str
    task: _Task
    seed: int
    instructions: msgspec.Raw
    turns: list[_Turn]
    final_observation: msgspec.Raw
    score: float
    success: bool
    stop_reason: str
    error: msgspec.Raw = msgspec.Raw()
    env_kwargs: msgspec.Raw = msgspec.Raw()
    meta: _Meta = msgspec.field(default_factory=_Meta)


_decode = msgspec.json.Decoder(_Line).decode


class EpisodeSummary(msgspec.Struct, frozen=True, gc=False):
    """What a list shows of an episode. `step` and `training` are of a training run; `invalid` counts turns."""

    env: str
    group: str
    split: str
    task: str
    goal: str
    seed: int
    score: float
    success: bool
    reward: float
    turns: int
    invalid: int
    stop: str
    step: int | None
    training: bool | None
    max_turns: int | None
    policy: str | None
    agent: str | None


class EpisodeEntry(msgspec.Struct, frozen=True, gc=False):
    """An episode: its number, its facts, and its bytes in a file."""

    id: int
    file: EpisodeFile
    offset: int
    length: int
    facts: EpisodeSummary


@dataclass(slots=True, eq=False)
class EpisodeFile:
    """A file of episodes. `ids` are those of its entries, `problems` of lines that are none."""

    path: Path
    source: Source
    tail: Tail
    has_tokens: bool = False
    ids: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class IndexSnapshot(NamedTuple):
    """The index at a time. `version` grows with every change; `runs` are folders of training runs."""

    version: int
    entries: list[EpisodeEntry]
    files: list[EpisodeFile]
    runs: list[Path]
    problems: list[str]


class Index:
    """The episodes below given paths. All methods may be called from several threads."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Reads nothing yet; `refresh` does."""
        self._paths = list(paths)
        self._files: dict[tuple[Path, str], EpisodeFile] = {}
        self._entries: dict[int, EpisodeEntry] = {}
        self._next = 0
        self._scan, self._scan_again, self._last = SourceScan(), 0.0, float("-inf")
        self._lock = threading.Lock()
        self.snapshot = IndexSnapshot(0, [], [], [], [])

    def refresh(self, least_seconds: float = 0.0) -> IndexSnapshot:
        """Read what is new, unless that was done in the last `least_seconds`; an episode keeps its number."""
        with self._lock:
            if time.monotonic() - self._last >= least_seconds:
                self._read()
                self._last = time.monotonic()
            return self.snapshot

    def get(self, number: int) -> EpisodeEntry | None:
        """The episode of that number, where it lies now: if its file became another one, all is read again first."""
        with self._lock:
            entry = self._entries.get(number)
            if entry is None or entry.file.tail.holds():
                return entry
            self._read()
            return self._entries.get(number)

    def _read(self) -> None:
        self._search()
        changed = [self._read_file(file) for file in list(self._files.values())]
        problems = [*self._scan.problems, *(text for file in self._files.values() for text in file.problems)]
        if len(problems) > _MOST_PROBLEMS:
            problems = [*problems[:_MOST_PROBLEMS], f"... and {len(problems) - _MOST_PROBLEMS:,} more"]
        old = self.snapshot
        if any(changed) or problems != old.problems or self._scan.runs != old.runs:
            entries, files = list(self._entries.values()), list(self._files.values())
            self.snapshot = IndexSnapshot(old.version + 1, entries, files, list(self._scan.runs), problems)

    def _search(self) -> None:
        """Look for new files, as often as the time that it takes allows."""
        start = time.monotonic()
        if start < self._scan_again:
            return
        self._scan = find_sources(self._paths)
        for path, source in self._scan.files:
            self._files.setdefault((path, source.name), EpisodeFile(path, source, Tail(path)))
        end = time.monotonic()
        self._scan_again = end + _SCAN_SHARE * (end - start)

    def _read_file(self, file: EpisodeFile) -> bool:
        """Read what is new in a file; whether anything was."""
        change, has_tokens = file.tail.look(), _has_tokens(file.path)
        changed, file.has_tokens = has_tokens != file.has_tokens, has_tokens
        if change == "same":
            return changed
        if change in ("replaced", "gone"):
            changed |= bool(file.ids)
            self._forget(file)
        if change == "gone":
            self._files = {key: other for key, other in self._files.items() if other is not file}
            return changed
        before = list(file.ids)
        try:
            self._read_log(file) if file.source.kind == AGENTGYM_RL else self._read_lines(file)
        except OSError as error:
            file.problems.append(f"{file.path}: {error.strerror}")
        return changed or file.ids != before

    def _forget(self, file: EpisodeFile) -> None:
        for number in file.ids:
            del self._entries[number]
        file.ids.clear()
        file.problems.clear()

    def _read_lines(self, file: EpisodeFile) -> None:
        torn = f"{file.path}: the last line is incomplete; it is being written, or was cut off"
        file.problems = [text for text in file.problems if text != torn]
        step = _step_of(file.path)
        for offset, line in file.tail.lines():
            try:
                self._add(file, offset, len(line), summarize_line(line, step))
            except TrajectoryError as error:
                file.problems.append(f"{file.path}, byte {offset:,}: {error}")
        if file.tail.torn:
            file.problems.append(torn)

    def _read_log(self, file: EpisodeFile) -> None:
        """Read a log of AgentGym-RL again, as a whole: it is written at once and has no lines."""
        self._forget(file)
        try:
            for offset, text in find_records(file.path.read_bytes()):
                self._add(file, offset, len(text), _facts_of(read_record(text, file.path)))
        except TrajectoryError as error:
            file.problems.append(f"{file.path}: {error}")

    def _add(self, file: EpisodeFile, offset: int, length: int, facts: EpisodeSummary) -> None:
        self._entries[self._next] = EpisodeEntry(self._next, file, offset, length, facts)
        file.ids.append(self._next)
        self._next += 1


def summarize_line(line: bytes, step: tuple[int, bool] | None = None) -> EpisodeSummary:
    """The facts of a line of trajectories; `step` is the one that its file is named for. Raises TrajectoryError."""
    try:
        row = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        row = _decode_slowly(line)
    task, meta = row.task, row.meta
    return EpisodeSummary(
        env=sys.intern(row.env_id),
        group=sys.intern(task.group),
        split=sys.intern(task.split),
        task=sys.intern(task.id),
        goal=sys.intern(task.goal[:LONGEST_GOAL]),
        seed=row.seed,
        score=row.score,
        success=row.success,
        reward=sum(turn.reward for turn in row.turns),
        turns=len(row.turns),
        invalid=sum(turn.info.invalid_action is not None for turn in row.turns),
        stop=sys.intern(row.stop_reason),
        step=meta.step if type(meta.step) is int else step[0] if step else None,
        training=meta.training if isinstance(meta.training, bool) else step[1] if step else None,
        max_turns=meta.max_turns if type(meta.max_turns) is int else None,
        policy=_label(meta.policy),
        agent=_label(meta.agent.get("name") if isinstance(meta.agent, dict) else meta.agent),
    )


def to_text(line: bytes) -> str:
    """A line as text. Half surrogates are kept, as trajectories keep them; other bytes that are no UTF-8 are marked."""
    try:
        return line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace")


def read_bytes(entry: EpisodeEntry) -> bytes:
    """The bytes of an episode. Raises TrajectoryError if its file cannot be read any more."""
    try:
        with entry.file.path.open("rb") as file:
            file.seek(entry.offset)
            return file.read(entry.length)
    except OSError as error:
        raise TrajectoryError(f"{entry.file.path} cannot be read: {error.strerror}") from None


def read_episode(entry: EpisodeEntry) -> Trajectory:
    """The whole episode, from disk. Raises TrajectoryError if it is not there any more."""
    data = read_bytes(entry)
    if entry.file.source.kind == AGENTGYM_RL:
        return read_record(data, entry.file.path)
    return Trajectory.from_json(to_text(data))


def lines_of(entries: Sequence[EpisodeEntry]) -> Iterator[tuple[EpisodeEntry, bytes]]:
    """The bytes of many episodes; each file is opened once for those that follow each other. Skips what is gone."""
    path, file = None, None
    try:
        for entry in entries:
            if entry.file.path != path:
                if file is not None:
                    file.close()
                path, file = entry.file.path, _open(entry.file.path)
            if file is not None:
                file.seek(entry.offset)
                yield entry, file.read(entry.length)
    finally:
        if file is not None:
            file.close()


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError:
        return None


def _decode_slowly(line: bytes) -> _Line:
    """Python's decoder takes NaN, half surrogates and numbers of any length."""
    try:
        return msgspec.convert(_without_raw(json.loads(to_text(line))), _Line)
    except (ValueError, RecursionError, OverflowError) as error:  # msgspec's errors are ValueErrors
        raise TrajectoryError(f"not a trajectory: {error}") from None


def _without_raw(row: Any) -> Any:
    """A decoded line, with nothing in the place of what is not looked at."""
    raw = msgspec.Raw(b"null")
    if not isinstance(row, dict):
        return row
    row |= {name: raw for name in ("instructions", "final_observation", "error", "env_kwargs") if name in row}
    if isinstance(task := row.get("task"), dict) and "data" in task:
        task["data"] = raw
    for turn in row["turns"] if isinstance(row.get("turns"), list) else ():
        if isinstance(turn, dict):
            turn |= {name: raw for name in ("observation", "action") if name in turn}
    return row


def _facts_of(trajectory: Trajectory) -> EpisodeSummary:
    return summarize_line(json.dumps({"schema": SCHEMA_VERSION, **asdict(trajectory)}).encode())


def _label(value: Any) -> str | None:
    try:
        return None if value is None else sys.intern(str(value)[:LONGEST_GOAL])
    except RecursionError:  # lists within lists, very deep
        return None


def _step_of(path: Path) -> tuple[int, bool] | None:
    """The step that a file of a training run is named for, and whether it is of training."""
    match = _STEP_FILE.fullmatch(path.name)
    return (int(match[2]), match[1] == "step") if match else None


def _has_tokens(path: Path) -> bool:
    from agentgym_envs.viewer.tokens import has_tokens

    return has_tokens(path)
