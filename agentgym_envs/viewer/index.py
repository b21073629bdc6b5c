"""The index: the summary of every episode, and its position in its file. Full texts stay on disk.

msgspec decodes only the necessary parts of a line. Lines that it rejects (NaN, lone surrogates) are decoded by Python's
own decoder. The index follows its files: `refresh` reads new lines.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.trajectory import SCHEMA_VERSION, Trajectory
from agentgym_envs.viewer import atif
from agentgym_envs.viewer.agentgym_rl import find_records, read_record
from agentgym_envs.viewer.follow import Tail
from agentgym_envs.viewer.sources import AGENTGYM_RL, ATIF, Source, SourceScan, find_sources

if TYPE_CHECKING:
    from agentgym_envs.viewer.notes import Note

MAX_GOAL_CHARS = 300
"""The most characters of a goal in a row."""
_MAX_PROBLEMS = 50
_STEP_FILE = re.compile(r"(step|eval)-([0-9]+)\b.*")
_SCAN_INTERVAL = 10  # pause between two scans for new files, in durations of a scan


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
    """A trajectory line. Its fields are those of `Trajectory`, so that both accept the same lines."""

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
    times: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Line).decode


class EpisodeSummary(msgspec.Struct, frozen=True, gc=False):
    """The facts of an episode in a list. `invalid` counts turns.

    `step` and `training` belong to training runs. Steps are counted as in the log of a run: the first one is 1, and an
    evaluation has the number of the step before it. Records have the number of finished steps.
    """

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
    """An episode: its number, its position in a file, and its summary."""

    id: int
    file: EpisodeFile
    offset: int
    length: int
    summary: EpisodeSummary


@dataclass(slots=True, eq=False)
class EpisodeFile:
    """A file of episodes: the ids of its entries, and the problems of its invalid lines."""

    path: Path
    source: Source
    tail: Tail
    has_tokens: bool = False
    ids: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class IndexSnapshot(NamedTuple):
    """The state of the index at a time. `version` grows with every change; `runs` are folders of training runs.

    `notes` are those of the episodes, by number; the index itself reads none.
    """

    version: int
    entries: list[EpisodeEntry]
    files: list[EpisodeFile]
    runs: list[Path]
    problems: list[str]
    notes: Mapping[int, Note] = {}


class Index:
    """An index of the episodes below the given paths. All methods are thread-safe."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Make an empty index; `refresh` reads the files."""
        self._paths = list(paths)
        self._files: dict[tuple[Path, str], EpisodeFile] = {}
        self._entries: dict[int, EpisodeEntry] = {}
        self._next = 0
        self._scan, self._scan_again, self._last = SourceScan(), 0.0, float("-inf")
        self._lock = threading.Lock()
        self.snapshot = IndexSnapshot(0, [], [], [], [])

    def refresh(self, least_seconds: float = 0.0) -> IndexSnapshot:
        """Read new episodes, unless the last refresh was less than `least_seconds` ago. Episodes keep their numbers."""
        with self._lock:
            if time.monotonic() - self._last >= least_seconds:
                self._read()
                self._last = time.monotonic()
            return self.snapshot

    def get(self, number: int) -> EpisodeEntry | None:
        """The episode with a number; None if there is none. If its file was replaced, it is read again first."""
        with self._lock:
            entry = self._entries.get(number)
            if entry is None or entry.file.tail.is_unchanged():
                return entry
            self._read()
            return self._entries.get(number)

    def _read(self) -> None:
        self._scan_files()
        changed = [self._read_file(file) for file in list(self._files.values())]
        problems = [*self._scan.problems, *(text for file in self._files.values() for text in file.problems)]
        if len(problems) > _MAX_PROBLEMS:
            problems = [*problems[:_MAX_PROBLEMS], f"... and {len(problems) - _MAX_PROBLEMS:,} more"]
        old = self.snapshot
        if any(changed) or problems != old.problems or self._scan.runs != old.runs:
            entries, files = list(self._entries.values()), list(self._files.values())
            self.snapshot = IndexSnapshot(old.version + 1, entries, files, list(self._scan.runs), problems)

    def _scan_files(self) -> None:
        """Scan for new files. The interval between scans grows with their duration."""
        start = time.monotonic()
        if start < self._scan_again:
            return
        self._scan = find_sources(self._paths)
        for path, source in self._scan.files:
            self._files.setdefault((path, source.name), EpisodeFile(path, source, Tail(path)))
        end = time.monotonic()
        self._scan_again = end + _SCAN_INTERVAL * (end - start)

    def _read_file(self, file: EpisodeFile) -> bool:
        """Read the new episodes of a file. Returns True if anything changed."""
        change, has_tokens = file.tail.look(), _has_tokens(file)
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
            self._read_whole(file) if file.source.kind in (AGENTGYM_RL, ATIF) else self._read_lines(file)
        except OSError as error:
            file.problems.append(f"{file.path}: {error.strerror}")
        return changed or file.ids != before

    def _forget(self, file: EpisodeFile) -> None:
        for number in file.ids:
            del self._entries[number]
        file.ids.clear()
        file.problems.clear()

    def _read_lines(self, file: EpisodeFile) -> None:
        torn = f"{file.path}: the last line is incomplete; it is being written, or was truncated"
        file.problems = [text for text in file.problems if text != torn]
        step = _step_of(file.path)
        for offset, line in file.tail.lines():
            try:
                self._add(file, offset, len(line), summarize_line(line, step))
            except TrajectoryError as error:
                file.problems.append(f"{file.path}, byte {offset:,}: {error}")
        if file.tail.torn:
            file.problems.append(torn)

    def _read_whole(self, file: EpisodeFile) -> None:
        """Read a log of AgentGym-RL or ATIF again as a whole: it is one JSON value, not lines."""
        self._forget(file)
        find = atif.find_documents if file.source.kind == ATIF else find_records
        try:
            data = file.path.read_bytes()
            file.has_tokens |= file.source.kind == ATIF and atif.mentions_tokens(data)
            for offset, text in find(data):
                self._add(file, offset, len(text), _summarize(_converted(file, text)))
        except TrajectoryError as error:
            file.problems.append(f"{file.path}: {error}")

    def _add(self, file: EpisodeFile, offset: int, length: int, summary: EpisodeSummary) -> None:
        self._entries[self._next] = EpisodeEntry(self._next, file, offset, length, summary)
        file.ids.append(self._next)
        self._next += 1


def summarize_line(line: bytes, step: tuple[int, bool] | None = None, *, finished: bool = True) -> EpisodeSummary:
    """Summarize a trajectory line. `step` is the step in the name of its file. Raises TrajectoryError.

    With `finished`, a step of training in the record or the name is the number of steps that were finished before it.
    """
    try:
        row = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        row = _decode_slowly(line)
    task, meta = row.task, row.meta
    training = meta.training if isinstance(meta.training, bool) else step[1] if step else None
    number = meta.step if type(meta.step) is int else step[0] if step else None
    return EpisodeSummary(
        env=sys.intern(row.env_id),
        group=sys.intern(task.group),
        split=sys.intern(task.split),
        task=sys.intern(task.id),
        goal=sys.intern(task.goal[:MAX_GOAL_CHARS]),
        seed=row.seed,
        score=row.score,
        success=row.success,
        reward=sum(turn.reward for turn in row.turns),
        turns=len(row.turns),
        invalid=sum(turn.info.invalid_action is not None for turn in row.turns),
        stop=sys.intern(row.stop_reason),
        step=number if number is None or not training else number + finished,
        training=training,
        max_turns=meta.max_turns if type(meta.max_turns) is int else None,
        policy=_label(meta.policy),
        agent=_label(meta.agent.get("name") if isinstance(meta.agent, dict) else meta.agent),
    )


def to_text(line: bytes) -> str:
    """Decode a line. Lone surrogates are kept, as in trajectories; other invalid bytes are replaced."""
    try:
        return line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace")


def read_bytes(entry: EpisodeEntry) -> bytes:
    """Read the bytes of an episode. Raises TrajectoryError if its file can no longer be read."""
    try:
        with entry.file.path.open("rb") as file:
            file.seek(entry.offset)
            return file.read(entry.length)
    except OSError as error:
        raise TrajectoryError(f"{entry.file.path} cannot be read: {error.strerror}") from None


def read_episode(entry: EpisodeEntry) -> Trajectory:
    """Read the full episode from disk. Raises TrajectoryError if it no longer exists."""
    data = read_bytes(entry)
    if entry.file.source.kind in (AGENTGYM_RL, ATIF):
        return _converted(entry.file, data)
    return Trajectory.from_json(to_text(data))


def lines_of(entries: Sequence[EpisodeEntry]) -> Iterator[tuple[EpisodeEntry, bytes]]:
    """Yield the bytes of many episodes; consecutive ones of a file share an open file. Missing files are skipped."""
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
    """Decode with Python's decoder, which accepts NaN, lone surrogates and numbers of any length."""
    try:
        return msgspec.convert(_without_raw(json.loads(to_text(line))), _Line)
    except (ValueError, RecursionError, OverflowError) as error:  # msgspec's errors are ValueErrors
        raise TrajectoryError(f"not a trajectory: {error}") from None


def _without_raw(row: Any) -> Any:
    """Replace the values that the summary does not need by null."""
    raw = msgspec.Raw(b"null")
    if not isinstance(row, dict):
        return row
    row |= {name: raw for name in ("instructions", "final_observation", "error", "env_kwargs", "times") if name in row}
    if isinstance(task := row.get("task"), dict) and "data" in task:
        task["data"] = raw
    for turn in row["turns"] if isinstance(row.get("turns"), list) else ():
        if isinstance(turn, dict):
            turn |= {name: raw for name in ("observation", "action") if name in turn}
    return row


def _converted(file: EpisodeFile, text: bytes) -> Trajectory:
    """An episode of another program's file. Raises TrajectoryError."""
    return atif.read_document(text) if file.source.kind == ATIF else read_record(text, file.path)


def _summarize(trajectory: Trajectory) -> EpisodeSummary:
    """The summary of another program's episode, which has the number of its own step."""
    return summarize_line(json.dumps({"schema": SCHEMA_VERSION, **asdict(trajectory)}).encode(), finished=False)


def _label(value: Any) -> str | None:
    try:
        return None if value is None else sys.intern(str(value)[:MAX_GOAL_CHARS])
    except RecursionError:  # deeply nested lists
        return None


def _step_of(path: Path) -> tuple[int, bool] | None:
    """The step in the name of a file of a training run, and True if it is of training, not evaluation."""
    match = _STEP_FILE.fullmatch(path.name)
    return (int(match[2]), match[1] == "step") if match else None


def _has_tokens(file: EpisodeFile) -> bool:
    from agentgym_envs.viewer.tokens import has_tokens

    return file.has_tokens if file.source.kind == ATIF else has_tokens(file.path)
