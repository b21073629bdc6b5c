"""Where episodes are: files of trajectories, folders of runs, and the logs of AgentGym-RL, found below given paths."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agentgym_envs.rollout.token_file import is_token_file

TRAJECTORIES, RUN, AGENTGYM_RL = "trajectories", "run", "agentgym-rl"
MOST_ENTRIES = 200_000
"""Of the paths below a folder, so many are looked at: somebody may have started the viewer in a home directory."""

_LOG_FOLDER, _LOG_FILE = re.compile(r"step(?:[0-9]+|\w*_[0-9]+)"), re.compile(r"[0-9]+\.json")
_RUN_FILES = ("metrics.jsonl", "run.json", "eval.json")
_SKIPPED = re.compile(r"\..*|__pycache__|node_modules|site-packages|checkpoint-[0-9]+")
_HEAD_BYTES = 4096
_Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Source:
    """What episodes came from, as a person would name it. `kind` is one of this module's three."""

    name: str
    kind: str
    folder: Path


class SourceFile(NamedTuple):
    """A file with episodes, or one that may get some, and the source that it belongs to."""

    path: Path
    source: Source


@dataclass(slots=True)
class SourceScan:
    """What there is: the files with episodes, the folders of training runs, and what could not be looked at."""

    files: list[SourceFile] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def find_sources(paths: Sequence[Path]) -> SourceScan:
    """Look through files and folders; folders that are linked are followed, and none is visited twice."""
    search = SourceScan()
    base = _common(paths)
    seen: set[_Identity] = set()
    left = iter(range(MOST_ENTRIES))
    for path in paths:
        if path.is_dir():
            for folder, names in _walk(path, seen, left, search.problems):
                _look(folder, names, base, search, seen)
        elif path.exists():
            _add_file(path, base, search, seen)
        else:
            search.problems.append(f"{path} is not there (any more)")
    if next(left, None) is None:
        search.problems.append(
            f"there are more than {MOST_ENTRIES:,} files and folders; the rest was not looked at: name a folder below"
        )
    return search


def is_trajectories(path: Path) -> bool | None:
    """Whether a file holds trajectories, by how it begins; None if it is still empty."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return head.lstrip().startswith(b"{") and b'"env_id"' in head if head else None


def _walk(
    top: Path, seen: set[_Identity], left: Iterator[int], problems: list[str]
) -> Iterator[tuple[Path, list[str]]]:
    """The folders from `top` down and the names of their files, both sorted."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            if not _is_new(folder, seen):
                continue
            entries = sorted(os.scandir(folder), key=lambda entry: _natural(entry.name))
        except OSError as error:
            problems.append(f"{folder} cannot be read: {error.strerror}")
            continue
        entries = [entry for entry in entries if next(left, None) is not None]
        below = [entry.name for entry in entries if _is_folder(entry)]
        waiting += [folder / name for name in reversed(below) if not _SKIPPED.fullmatch(name)]
        yield folder, [entry.name for entry in entries if entry.name not in set(below)]


def _look(folder: Path, names: list[str], base: Path, search: SourceScan, seen: set[_Identity]) -> None:
    """Add what lies directly in a folder, and the folder itself if a training run keeps its metrics there."""
    if _LOG_FOLDER.fullmatch(folder.name) and (logs := [name for name in names if _LOG_FILE.fullmatch(name)]):
        source = Source(_name(folder.parent, base), AGENTGYM_RL, folder.parent)
        search.files += [SourceFile(folder / name, source) for name in logs if _is_new_file(folder / name, seen)]
        _add_run(folder.parent, search)
    if "metrics.jsonl" in names:
        _add_run(folder, search)
    for name in names:
        if name.endswith(".jsonl") and not is_token_file(name) and name != "metrics.jsonl":
            _add_jsonl(folder / name, base, search, seen)


def _add_file(path: Path, base: Path, search: SourceScan, seen: set[_Identity]) -> None:
    """Add a file that was named. It is taken at its word, whatever it is called."""
    if _LOG_FILE.fullmatch(path.name) and _LOG_FOLDER.fullmatch(path.absolute().parent.name):
        folder = path.absolute().parent.parent
        search.files.append(SourceFile(path, Source(_name(folder, base), AGENTGYM_RL, folder)))
    elif not _add_jsonl(path, base, search, seen):
        search.problems.append(f"{path} does not hold trajectories: its first line is not one")


def _add_jsonl(path: Path, base: Path, search: SourceScan, seen: set[_Identity]) -> bool:
    """Add a file if it holds trajectories or is still empty. Only its beginning is read."""
    try:
        if not _is_regular(path) or is_trajectories(path) is False:
            return False
        if _is_new(path, seen):
            search.files.append(SourceFile(path, _source_of(path, base)))
            if re.fullmatch(r"(step|eval)-[0-9].*", path.name):
                _add_run(_run_folder(path) or path.parent, search)
    except OSError as error:
        search.problems.append(f"{path} cannot be read: {error.strerror}")
    return True


def _source_of(path: Path, base: Path) -> Source:
    folder = _run_folder(path)
    if folder is None:
        return Source(_name(path, base), TRAJECTORIES, path.parent)
    return Source(_name(folder, base), RUN, folder)


def _run_folder(path: Path) -> Path | None:
    """The folder of the run that wrote a file: its own, or the one above `trajectories/`."""
    parent = path.absolute().parent
    candidates = [parent.parent, parent] if parent.name == "trajectories" else [parent]
    return next((folder for folder in candidates if any((folder / name).exists() for name in _RUN_FILES)), None)


def _add_run(folder: Path, search: SourceScan) -> None:
    if folder not in search.runs:
        search.runs.append(folder)


def _name(path: Path, base: Path) -> str:
    """A path as it reads from `base`; of `base` itself, and of what is above it, the last part."""
    shown = os.path.relpath(path.absolute(), base)
    return path.absolute().name or str(path) if shown.startswith(".") else shown


def _common(paths: Sequence[Path]) -> Path:
    """The folder from which everything is named."""
    tops = [path.absolute() if path.is_dir() else path.absolute().parent for path in paths]
    if len(tops) > 1 and len(set(tops)) > 1:
        tops = [top.parent for top in tops]
    try:
        return Path(os.path.commonpath(tops))
    except ValueError:  # nothing given, or on several drives
        return Path.cwd()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_new(path: Path, seen: set[_Identity]) -> bool:
    """Whether a file or folder is met for the first time, under whatever name."""
    status = path.stat()
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return False
    seen.add(identity)
    return True


def _is_new_file(path: Path, seen: set[_Identity]) -> bool:
    try:
        return _is_regular(path) and _is_new(path, seen)
    except OSError:  # gone in between
        return False


def _is_regular(path: Path) -> bool:
    """Whether a path is a file; to open a pipe would wait for somebody to write. Raises OSError if it is not there."""
    return stat.S_ISREG(path.stat().st_mode)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts step-2 before step-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]
