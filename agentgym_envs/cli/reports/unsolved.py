"""The tasks of a run that no episode solved."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from agentgym_envs.trajectory import Trajectory

MOST = 200
"""So many of them are listed in a report."""
_GOAL = 300
"""Letters of a goal that are shown."""


class Unsolved(NamedTuple):
    """A task that was not solved: its best score, the mean of its turns, and how its episodes ended."""

    name: str
    goal: str
    score: float
    turns: float
    stops: Sequence[str]


def unsolved(episodes: Sequence[Trajectory]) -> list[Unsolved]:
    """Every task with a usable episode and without a success, the best ones first."""
    by_task: dict[tuple[str, str], list[Trajectory]] = {}
    for episode in episodes:
        if episode.usable:
            by_task.setdefault((episode.env_id, episode.task.id), []).append(episode)
    found = [_summed_up(tries) for _, tries in sorted(by_task.items()) if not any(t.success for t in tries)]
    return sorted(found, key=lambda task: -task.score)


def _summed_up(tries: Sequence[Trajectory]) -> Unsolved:
    goal = tries[0].task.goal
    return Unsolved(
        tries[0].task.id,
        goal if len(goal) <= _GOAL else goal[:_GOAL] + " …",
        max(t.score for t in tries),
        fmean(len(t.turns) for t in tries),
        sorted({t.stop_reason for t in tries}),
    )
