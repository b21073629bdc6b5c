"""The episodes to export: trajectories with their tokens, read one at a time from runs and files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentgym_envs.errors import TrajectoryError, UsageError
from agentgym_envs.labels.record import complete_lines
from agentgym_envs.rollout.token_file import TokenFile, TokenRecord
from agentgym_envs.trajectory import Trajectory, line_mark
from agentgym_envs.viewer.sources import AGENTGYM_RL, ATIF, find_sources

_SURROGATE = "surrogatepass"


@dataclass(frozen=True, slots=True)
class ExportEpisode:
    """An episode to export.

    Attributes:
        tokens: its token segments as recorded; empty without any.
        name: the name of its file, without ending, and its number in the file. Names are unique in an export.
        id: 64 hex digits that follow from the record.
    """

    trajectory: Trajectory
    tokens: Sequence[TokenRecord] = ()
    name: str = "episode"
    id: str = field(default="")

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", identify(self.trajectory.to_json().encode("utf-8", _SURROGATE)))


def identify(line: bytes, copies: int = 0) -> str:
    """The id of the episode in a line. `copies` is the number of equal lines before it."""
    digest = hashlib.sha256(line)
    if copies:
        digest.update(b"copy %d" % copies)
    return digest.hexdigest()


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The files of trajectories in runs, folders and files.

    Raises:
        UsageError: a path does not exist, or none of them holds trajectories.
    """
    if missing := [str(path) for path in paths if not path.exists()]:
        raise UsageError(f"there is no file or folder {', '.join(missing)}")
    scan = find_sources([path.resolve() for path in paths])
    files = [file.path for file in scan.files if file.source.kind not in (AGENTGYM_RL, ATIF)]
    if not files:
        named = ", ".join(map(str, paths))
        why = f"; {scan.problems[0]}" if scan.problems else ""
        raise UsageError(
            f"there are no trajectories in {named}{why}; give the --out folder of eval, a training run's output_dir, "
            "or a JSONL file of trajectories"
        )
    return files


def read_files(files: Sequence[Path], *, tokens: bool = True) -> Iterator[ExportEpisode]:
    """Yield the episodes of files in order, with their tokens. Raises TrajectoryError for a line that does not read."""
    seen: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for path in files:
        token_file = TokenFile(path)
        stem = _stem(path, names)
        for number, line in enumerate(complete_lines(path), 1):
            mark = line_mark(line)
            segments = token_file.read(mark) if tokens else None
            copies, seen[mark] = seen[mark], seen[mark] + 1
            yield ExportEpisode(_read(path, number, line), segments or (), f"{stem}-{number}", identify(line, copies))


def _stem(path: Path, names: Counter[str]) -> str:
    """The name of a file without ending, numbered if another file has the same."""
    stem = path.name.removesuffix(".jsonl")
    names[stem] += 1
    return stem if names[stem] == 1 else f"{stem}-file{names[stem]}"


def _read(path: Path, number: int, line: bytes) -> Trajectory:
    try:
        return Trajectory.from_json(line.decode("utf-8", _SURROGATE))
    except (TrajectoryError, UnicodeDecodeError) as error:
        raise TrajectoryError(f"{path}:{number}: {error}") from None
