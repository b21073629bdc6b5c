"""Notes and tags of episodes, in a file next to their record: `NAME.notes.jsonl` next to `NAME.jsonl`.

A line is the state of one episode's note: `{"schema": 1, "of": MARK, "at": OFFSET, "text", "tags", "time"}`, where the
mark is `line_mark` of the episode's line and the offset that of the line. The last line of an episode counts. Lines are
only appended, under a lock, so that several viewers can write at once and an interruption loses at most one note.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from agentgym_envs.errors import AgentGymError, UsageError
from agentgym_envs.file_locks import lock
from agentgym_envs.trajectory import line_mark, strict_json
from agentgym_envs.viewer.index import EpisodeEntry, IndexSnapshot, lines_of, read_bytes
from agentgym_envs.viewer.sources import NOTES_ENDING

SCHEMA_VERSION = 1
MAX_TEXT_CHARS, MAX_TAGS, MAX_TAG_CHARS = 10_000, 20, 40
MAX_FILE_BYTES = 32_000_000
"""A longer file of notes is neither read nor written."""
REFRESH_SECONDS = 1.0
_Key = tuple[str, int]
"""The mark and the offset of an episode's line."""


class NoteConflict(AgentGymError):
    """The note was changed in the meantime; nothing was written."""


class NoteNotWritten(AgentGymError):
    """The note cannot be written: the folder is read-only, or the disk is full."""


class Note(NamedTuple):
    """The note of an episode. `version` counts its changes; 0 for an episode without a note."""

    text: str = ""
    tags: tuple[str, ...] = ()
    version: int = 0


class _NotesOfFile(NamedTuple):
    """The notes of a file's episodes by number, for a state of both files."""

    state: Any
    by_id: Mapping[int, Note]


class Notes:
    """The notes of the episodes of snapshots. All methods are thread-safe."""

    def __init__(self) -> None:
        self._files: dict[Path, _NotesOfFile] = {}
        self._found: dict[int, Note] = {}
        self._version, self._looked, self._lock = 0, (-1, float("-inf")), threading.Lock()

    def add_to(self, snapshot: IndexSnapshot) -> IndexSnapshot:
        """The snapshot with its notes. Its version also grows when notes change.

        The files of notes are looked at when the snapshot has changed, and otherwise once in `REFRESH_SECONDS`.
        """
        with self._lock:
            version, time_of_look = self._looked
            if version != snapshot.version or time.monotonic() - time_of_look >= REFRESH_SECONDS:
                self._look(snapshot)
                self._looked = snapshot.version, time.monotonic()
            return snapshot._replace(version=snapshot.version + self._version, notes=self._found)

    def write(self, entry: EpisodeEntry, text: str, tags: Sequence[str], version: int) -> Note:
        """Write a note; see `write_note`. The next snapshot has it."""
        written = write_note(entry, text, tags, version)
        with self._lock:
            self._looked = -1, float("-inf")
        return written

    def _look(self, snapshot: IndexSnapshot) -> None:
        states = {file.path: (_state(notes_path(file.path)), tuple(file.ids[-1:])) for file in snapshot.files}
        known = {path: self._files[path] for path in states.keys() & self._files.keys()}
        changed = {path for path, state in states.items() if path not in known or known[path].state != state}
        found = {path: _NotesOfFile(states[path], {}) for path in changed}
        for path, entries in _by_path(snapshot.entries, {p for p in changed if states[p][0] is not None}).items():
            found[path] = _NotesOfFile(states[path], _by_id(entries, read_notes(path)))
        self._files = known | found
        notes = {number: note for of_file in self._files.values() for number, note in of_file.by_id.items()}
        self._version += notes != self._found
        self._found = notes


def notes_path(trajectories: Path) -> Path:
    """The path of the notes that belong to a file of episodes."""
    return trajectories.with_name(trajectories.name.removesuffix(".jsonl").removesuffix(".json") + NOTES_ENDING)


def read_notes(trajectories: Path) -> dict[_Key, Note]:
    """The notes next to a file of episodes. Lines that cannot be read are skipped, as an interruption may leave one."""
    try:
        with _opened(notes_path(trajectories), "rb") as file:
            return _parse(file)
    except (OSError, NoteNotWritten):
        return {}


def write_note(entry: EpisodeEntry, text: str, tags: Sequence[str], version: int) -> Note:
    """Write the note of an episode, in the place of the one with the number `version`.

    Raises:
        UsageError: the text or a tag is too long, or there are too many.
        NoteConflict: another note was written in the meantime.
        NoteNotWritten: the file cannot be written.
    """
    tags = tuple(dict.fromkeys(tag for tag in (" ".join(tag.split()) for tag in tags) if tag))
    _check(text, tags)
    mark = mark_of(read_bytes(entry))
    row = {"schema": SCHEMA_VERSION, "of": mark, "at": entry.offset, "text": text.strip(), "tags": tags}
    line = strict_json({**row, "time": round(time.time(), 3)}, ensure_ascii=True).encode() + b"\n"
    path = notes_path(entry.file.path)
    try:
        with _opened(path, "a+b") as file:
            lock(file)
            now = _parse(file).get((mark, entry.offset), Note())
            if now.version != version:
                raise NoteConflict("this note was changed in the meantime, on another page or by another person")
            _append(file, line)
    except OSError as error:
        raise NoteNotWritten(f"the note cannot be written to {path.name}: {error.strerror}") from None
    return Note(text.strip(), tags, version + 1)


def mark_of(line: bytes) -> str:
    """The mark of an episode, from its bytes."""
    return line_mark(line.rstrip(b"\r\n"))


def find_mark(entries: Sequence[EpisodeEntry], mark: str) -> EpisodeEntry | None:
    """The first episode with a mark. It reads the records, as they are not kept in memory."""
    return next((entry for entry, line in lines_of(entries) if mark_of(line) == mark), None)


def _by_path(entries: Sequence[EpisodeEntry], wanted: set[Path]) -> dict[Path, list[EpisodeEntry]]:
    found: dict[Path, list[EpisodeEntry]] = {path: [] for path in wanted}
    for entry in entries if wanted else ():
        if entry.file.path in wanted:
            found[entry.file.path].append(entry)
    return found


def _by_id(entries: Sequence[EpisodeEntry], notes: Mapping[_Key, Note]) -> dict[int, Note]:
    """The notes by the number of their episode. Episodes that were moved within the file are searched for."""
    at = {entry.offset: entry for entry in entries}
    found = dict[int, Note]()
    for (mark, offset), note in notes.items():
        entry = at.get(offset)
        if entry is None or not _has_mark(entry, mark):
            entry = find_mark(entries, mark)
        if entry is not None:  # an emptied note is kept, as it has a version
            found[entry.id] = note
    return found


def _has_mark(entry: EpisodeEntry, mark: str) -> bool:
    try:
        return mark_of(read_bytes(entry)) == mark
    except AgentGymError:
        return False


def _check(text: str, tags: Sequence[str]) -> None:
    if len(text) > MAX_TEXT_CHARS:
        raise UsageError(f"a note may have {MAX_TEXT_CHARS:,} characters; this one has {len(text):,}")
    if len(tags) > MAX_TAGS or any(len(tag) > MAX_TAG_CHARS for tag in tags):
        raise UsageError(f"an episode may have {MAX_TAGS} tags of up to {MAX_TAG_CHARS} characters")


def _parse(file: BinaryIO) -> dict[_Key, Note]:
    """The last note of each episode."""
    found: dict[_Key, Note] = {}
    file.seek(0)
    for line in file.read(MAX_FILE_BYTES).split(b"\n"):
        note = _parse_line(line)
        if note is not None:
            key, text, tags = note
            found[key] = Note(text, tags, found.get(key, Note()).version + 1)
    return found


def _parse_line(line: bytes) -> tuple[_Key, str, tuple[str, ...]] | None:
    try:
        row: Any = json.loads(line)
        mark, at, text, tags = row["of"], row["at"], row["text"], row["tags"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(mark, str) or type(at) is not int or not isinstance(text, str) or not isinstance(tags, list):
        return None
    return (mark, at), text[:MAX_TEXT_CHARS], tuple(str(tag)[:MAX_TAG_CHARS] for tag in tags[:MAX_TAGS])


def _append(file: BinaryIO, line: bytes) -> None:
    """Append a line in one write, after an interrupted one if there is one."""
    end = file.seek(0, os.SEEK_END)
    if end + len(line) > MAX_FILE_BYTES:
        raise NoteNotWritten("the file of notes is full; move it away to begin a new one")
    if end:
        file.seek(end - 1)
        line = line if file.read(1) == b"\n" else b"\n" + line
    try:
        written = file.write(line)
    except OSError:
        file.truncate(end)
        raise
    if written != len(line):
        file.truncate(end)
        raise NoteNotWritten("the disk is full")


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[BinaryIO]:
    """Open a regular file; opening a pipe would block. Raises OSError or NoteNotWritten."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise NoteNotWritten(f"{path.name} is not a regular file")
    with open(path, mode, buffering=0) as file:
        yield file  # type: ignore[misc]


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None
