"""The labels of an episode's turns, from the file that `agentgym label` wrote."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.labels import EpisodeLabels, labels_path, read_labels
from agentgym_envs.trajectory import line_mark

_CACHED_FILES = 8


def labels_of(path: Path, line: bytes) -> dict[str, Any] | None:
    """The labels of the episode in `line` of a file, as JSON for the page; None without labels."""
    file = labels_path(path)
    try:
        status = file.stat()
        labels = _read(path, status.st_mtime_ns, status.st_size).get(line_mark(line.removesuffix(b"\n")))
    except (TrajectoryError, OSError):  # the page is useful without labels
        return None
    if labels is None or not labels.turns:
        return None
    derived = {name: getattr(labels, name) for name in ("first_mistake", "regret", "recovered", "exact")}
    return {**derived, "turns": [turn.to_json() for turn in labels.turns]}


@lru_cache(maxsize=_CACHED_FILES)
def _read(path: Path, modified: int, size: int) -> dict[str, EpisodeLabels]:
    """The labels of a file in the state with this time and size."""
    return read_labels(path)
