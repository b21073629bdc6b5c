"""Discovery of episodes below given paths: trajectories, folders of runs, logs of AgentGym-RL, and ATIF documents."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agentgym_envs.labels import is_label_file
from agentgym_envs.rollout.token_file import is_token_file

TRAJECTORIES, RUN, AGENTGYM_RL, ATIF = "trajectories", "run", "agentgym-rl", "atif"
MAX_ENTRIES = 200_000
"""The most files and folders in a scan, in case the viewer is started in a home directory."""

_LOG_FOLDER, _LOG_FILE = re.compile(r"step(?:[0-9]+|\w*_[0-9]+)"), re.compile(r"[0-9]+\.json")
_ATIF_FILE = re.compile(r".*\.atif\.jsonl?|trajectory[\w.-]*\.json")  # those that we write, and Harbor's
_ATIF_HEAD = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')
_RUN_FILES = ("metrics.jsonl", "run.json", "eval.json")
_SKIPPED = re.compile(r"\..*|__pycache__|node_modules|site-packages|checkpoint-[0-9]+")
_HEAD_BYTES = 4096
NOTES_ENDING = ".notes.jsonl"
"""The end of the name of a file of notes; see `notes`."""
_Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of episodes, with a name for people. `kind` is one of the four constants above."""

    name: str
    kind: str
    folder: Path


class SourceFile(NamedTuple):
    """A file that contains or may get episodes, and its source."""

    path: Path
    source: Source


@dataclass(slots=True)
class SourceScan:
    """The result of a scan: files with episodes, folders of training runs, and problems."""

    files: list[SourceFile] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def find_sources(paths: Sequence[Path]) -> SourceScan:
    """Scan files and folders. Linked folders are followed; no folder is visited twice."""
    scan = SourceScan()
    base = _common(paths)
    seen: set[_Identity] = set()
    left = iter(range(MAX_ENTRIES))
    for path in paths:
        if path.is_dir():
            for folder, names in _walk(path, seen, left, scan.problems):
                _add_folder(folder, names, base, scan, seen)
        elif path.exists():
            _add_file(path, base, scan, seen)
        else:
            scan.problems.append(f"{path} does not exist (any more)")
    if next(left, None) is None:
        scan.problems.append(
            f"there are more than {MAX_ENTRIES:,} files and folders; the rest was not searched: choose a subfolder"
        )
    return scan


def is_trajectories(path: Path) -> bool | None:
    """True if the beginning of a file looks like trajectories; None if the file is empty."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return head.lstrip().startswith(b"{") and b'"env_id"' in head if head else None


def _walk(
    top: Path, seen: set[_Identity], left: Iterator[int], problems: list[str]
) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folders from `top` down with the names of their files, both sorted."""
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


def _add_folder(folder: Path, names: list[str], base: Path, scan: SourceScan, seen: set[_Identity]) -> None:
    """Add the files of a folder, and the folder itself if it contains the metrics of a training run."""
    if _LOG_FOLDER.fullmatch(folder.name) and (logs := [name for name in names if _LOG_FILE.fullmatch(name)]):
        source = Source(_name(folder.parent, base), AGENTGYM_RL, folder.parent)
        scan.files += [SourceFile(folder / name, source) for name in logs if _is_new_file(folder / name, seen)]
        _add_run(folder.parent, scan)
    if "metrics.jsonl" in names:
        _add_run(folder, scan)
    for name in names:
        if _ATIF_FILE.fullmatch(name):
            _add_atif(folder / name, base, scan, seen)
        elif name.endswith(".jsonl") and not _is_derived(name) and name != "metrics.jsonl":
            _add_jsonl(folder / name, base, scan, seen)


def _is_derived(name: str) -> bool:
    """True for files next to trajectories that are not trajectories themselves."""
    return is_token_file(name) or is_label_file(name) or name.endswith(NOTES_ENDING)


def _add_file(path: Path, base: Path, scan: SourceScan, seen: set[_Identity]) -> None:
    """Add a file that the user named, regardless of its name."""
    if _LOG_FILE.fullmatch(path.name) and _LOG_FOLDER.fullmatch(path.absolute().parent.name):
        folder = path.absolute().parent.parent
        scan.files.append(SourceFile(path, Source(_name(folder, base), AGENTGYM_RL, folder)))
    elif not _add_atif(path, base, scan, seen) and not _add_jsonl(path, base, scan, seen):
        scan.problems.append(f"{path} does not contain trajectories: its first line is not one, and it is not ATIF")


def _add_atif(path: Path, base: Path, scan: SourceScan, seen: set[_Identity]) -> bool:
    """Add a file if it begins as an ATIF document. Those of a folder are one source."""
    try:
        if not _is_regular(path) or not is_atif_file(path):
            return False
        if _is_new(path, seen):
            folder = path.absolute().parent
            name = _name(path, base) if path.name.endswith(".jsonl") else _name(folder, base)
            scan.files.append(SourceFile(path, Source(name, ATIF, folder)))
    except OSError as error:
        scan.problems.append(f"{path} cannot be read: {error.strerror}")
    return True


def is_atif_file(path: Path) -> bool:
    """True if the beginning of a file looks like an ATIF document."""
    with path.open("rb") as file:
        return _ATIF_HEAD.search(file.read(_HEAD_BYTES)) is not None


def _add_jsonl(path: Path, base: Path, scan: SourceScan, seen: set[_Identity]) -> bool:
    """Add a file if it contains trajectories or is empty. Only its beginning is read."""
    try:
        if not _is_regular(path) or is_trajectories(path) is False:
            return False
        if _is_new(path, seen):
            scan.files.append(SourceFile(path, _source_of(path, base)))
            if re.fullmatch(r"(step|eval)-[0-9].*", path.name):
                _add_run(_run_folder(path) or path.parent, scan)
    except OSError as error:
        scan.problems.append(f"{path} cannot be read: {error.strerror}")
    return True


def _source_of(path: Path, base: Path) -> Source:
    folder = _run_folder(path)
    if folder is None:
        return Source(_name(path, base), TRAJECTORIES, path.parent)
    return Source(_name(folder, base), RUN, folder)


def _run_folder(path: Path) -> Path | None:
    """The folder of the run that wrote a file: its parent, or the parent of `trajectories/`."""
    parent = path.absolute().parent
    candidates = [parent.parent, parent] if parent.name == "trajectories" else [parent]
    return next((folder for folder in candidates if any((folder / name).exists() for name in _RUN_FILES)), None)


def _add_run(folder: Path, scan: SourceScan) -> None:
    if folder not in scan.runs:
        scan.runs.append(folder)


def _name(path: Path, base: Path) -> str:
    """The path relative to `base`; for `base` itself and its parents, the last part."""
    shown = os.path.relpath(path.absolute(), base)
    return path.absolute().name or str(path) if shown.startswith(".") else shown


def _common(paths: Sequence[Path]) -> Path:
    """The folder that all names are relative to."""
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
    """True if a file or folder is seen for the first time, under any name."""
    status = path.stat()
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return False
    seen.add(identity)
    return True


def _is_new_file(path: Path, seen: set[_Identity]) -> bool:
    try:
        return _is_regular(path) and _is_new(path, seen)
    except OSError:  # removed in the meantime
        return False


def _is_regular(path: Path) -> bool:
    """True for a regular file; opening a pipe would block. Raises OSError if the path does not exist."""
    return stat.S_ISREG(path.stat().st_mode)


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that puts step-2 before step-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]
