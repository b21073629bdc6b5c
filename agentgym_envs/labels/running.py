"""Label the episodes of a file that have no labels yet, in this process or in several."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from agentgym_envs.labels.labeller import Labeller
from agentgym_envs.labels.record import EpisodeLabels, complete_lines, labels_path, read_labels, write_labels
from agentgym_envs.registration import has_slow_oracle
from agentgym_envs.trajectory import LineWriter, Trajectory, line_mark

_BATCH = 32
"""Episodes that a process labels at a time."""


@dataclass(slots=True)
class LabelCounts:
    """Counts of episodes and turns: labelled now, already there, and episodes that could not be replayed."""

    episodes: int = 0
    turns: int = 0
    exact_turns: int = 0
    present: int = 0
    failed: int = 0
    first_failure: str | None = None

    def add(self, labels: EpisodeLabels) -> None:
        """Count an episode that was labelled now."""
        if labels.error is not None:
            self.failed += 1
            self.first_failure = self.first_failure or labels.error
            return
        self.episodes += 1
        self.turns += len(labels.turns)
        self.exact_turns += sum(turn.exact for turn in labels.turns)


def label_file(
    trajectories: str | Path,
    *,
    workers: int = 1,
    seconds: float = 600.0,
    env_kwargs: Mapping[str, Any] | None = None,
    on_done: Callable[[int], None] | None = None,
) -> LabelCounts:
    """Label the episodes of a file, in `workers` processes, and append them to `labels_path` as they are done.

    Episodes that have labels already are skipped; those that could not be replayed are tried again. Environments with a
    slow oracle come last, so that an interrupted run has the labels of the others. `on_done` is called with the number
    of new episodes. `seconds` and `env_kwargs` are as in `Labeller`.

    Raises:
        TrajectoryError: a line of the file, or of its labels, cannot be read.
    """
    known = {mark for mark, labels in read_labels(trajectories).items() if labels.error is None}
    marks = {line_mark(line): line for line in complete_lines(trajectories)}
    missing = sorted((line for mark, line in marks.items() if mark not in known), key=_slow_oracle)
    counts = LabelCounts(present=len(marks) - len(missing))
    if not missing:
        return counts
    with LineWriter(labels_path(trajectories)) as writer:
        for done in _labelled(missing, workers, seconds, dict(env_kwargs or {})):
            for labels in done:
                write_labels(writer, labels)
                counts.add(labels)
            if on_done is not None:
                on_done(len(done))
    return counts


def slow_oracles_last(files: Sequence[Path]) -> list[Path]:
    """Sort files of trajectories: those whose first episode has a slow oracle come after the others."""
    return sorted(files, key=lambda file: _slow_oracle(next(complete_lines(file), b"")))


def _slow_oracle(line: bytes) -> bool:
    """True if a line's environment has a slow oracle. A damaged line is reported when it is labelled."""
    try:
        return has_slow_oracle(json.loads(line)["env_id"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _labelled(
    lines: Sequence[bytes], workers: int, seconds: float, env_kwargs: dict[str, Any]
) -> Iterator[list[EpisodeLabels]]:
    """Yield the labels of the lines, a batch at a time."""
    if workers == 1:
        with closing(Labeller(seconds=seconds, env_kwargs=env_kwargs)) as labeller:
            for line in lines:
                yield [_label_line(labeller, line)]
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_label_batch, batch, seconds, env_kwargs) for batch in _batches(lines)]
        try:
            for job in jobs:
                yield job.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _label_batch(lines: list[bytes], seconds: float, env_kwargs: dict[str, Any]) -> list[EpisodeLabels]:
    with closing(Labeller(seconds=seconds, env_kwargs=env_kwargs)) as labeller:
        return [_label_line(labeller, line) for line in lines]


def _label_line(labeller: Labeller, line: bytes) -> EpisodeLabels:
    return labeller.label(Trajectory.from_json(line.decode("utf-8", "surrogatepass")), line_mark(line))


def _batches(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    for begin in range(0, len(lines), _BATCH):
        yield list(lines[begin : begin + _BATCH])
