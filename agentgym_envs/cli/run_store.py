"""The directory of an evaluation: what was played so far, under which settings, and what came out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, read_trajectories

_SCHEMA = 1
EpisodeKey = tuple[str, str, int]


class RunStore:
    """Keeps the episodes of a run, in memory and, with a directory, on disk as they end.

    `DIR/trajectories.jsonl` is appended to; `DIR/eval.json` holds settings and metrics and is replaced as a whole.
    Of an episode that was played twice (the environment failed at first) the later record counts.
    """

    def __init__(self, directory: Path | None, settings: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Raises UsageError if the directory holds a run that is not this one, or this one unasked."""
        self.directory, self._settings = directory, dict(settings)
        self.episodes: dict[EpisodeKey, Trajectory] = {}
        self.result: dict[str, Any] = {}
        self._writer: TrajectoryWriter | None = None
        if directory is not None:
            self._open(directory, resume, overwrite)

    def is_done(self, env_id: str, task_id: str, seed: int) -> bool:
        """Whether that episode is recorded and the environment did not fail in it."""
        found = self.episodes.get((env_id, task_id, seed))
        return found is not None and found.usable

    def add(self, trajectory: Trajectory) -> None:
        """Record an episode. Raises OSError if the disk is full; the files stay readable."""
        if self._writer is not None:
            self._writer.write(trajectory)
        self.episodes[_key(trajectory)] = trajectory

    def write_metrics(self, metrics: Mapping[str, Any] | None, *, complete: bool) -> None:
        """Write `eval.json` as a whole or not at all; `result` is what it says."""
        self.result = {"schema": _SCHEMA, "complete": complete, "settings": self._settings, "metrics": metrics}
        if self.directory is not None:
            path = self.directory / "eval.json"
            part = path.with_suffix(".part")
            part.write_text(json.dumps(self.result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            os.replace(part, path)

    def close(self) -> None:
        """Close the file of trajectories."""
        if self._writer is not None:
            self._writer.close()

    def kept(self, wanted: int) -> str:
        """What is safe if the run stops now, and how to go on."""
        done = sum(episode.usable for episode in self.episodes.values())
        if self.directory is None:
            return f"{done} of {wanted} episodes were played and none kept, as there is no --out DIR"
        return f"{done} of {wanted} episodes are kept in {self.directory}; go on with --resume"

    def _open(self, directory: Path, resume: bool, overwrite: bool) -> None:
        if directory.exists() and not directory.is_dir():
            raise UsageError(f"--out names a directory, but {directory} is a file")
        record, result = directory / "trajectories.jsonl", directory / "eval.json"
        if overwrite:
            for path in (record, result):
                path.unlink(missing_ok=True)
        if record.exists() or result.exists():
            if not resume:
                raise UsageError(
                    f"{directory} holds an evaluation already; --resume goes on with it, --overwrite replaces it"
                )
            _check_same(directory, result, self._settings)
            found = read_trajectories(record) if record.exists() else ()
            self.episodes = {_key(trajectory): trajectory for trajectory in found}
        self._writer = TrajectoryWriter(record)
        if not result.exists():
            self.write_metrics(None, complete=False)


def _key(trajectory: Trajectory) -> EpisodeKey:
    return trajectory.env_id, trajectory.task.id, trajectory.seed


def _check_same(directory: Path, result: Path, settings: Mapping[str, Any]) -> None:
    try:
        found = json.loads(result.read_text(encoding="utf-8"))["settings"]
        items = set(found) | set(settings)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{result} cannot be read ({type(error).__name__}), so what {directory} holds is unknown; "
            "choose another --out, or --overwrite it"
        ) from None
    wanted = json.loads(json.dumps(dict(settings)))
    differing = [name for name in sorted(items) if found.get(name) != wanted.get(name)]
    if differing:
        shown = ", ".join(f"{name} is {found.get(name)!r} there and {wanted.get(name)!r} here" for name in differing)
        raise UsageError(
            f"{directory} holds a run with other settings: {shown}; give the same, or choose another --out"
        )
