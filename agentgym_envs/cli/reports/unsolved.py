"""The tasks of a run that no episode solved."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from agentgym_envs.trajectory import Trajectory

MOST = 200
"""The most tasks that a report lists."""
_GOAL = 300
"""The most characters of a goal that are shown."""


class Unsolved(NamedTuple):
    """An unsolved task: its best score, its mean number of turns, and the stop reasons of its episodes."""

    name: str
    goal: str
    score: float
    turns: float
    stops: Sequence[str]


def unsolved(episodes: Sequence[Trajectory]) -> list[Unsolved]:
    """The tasks with a usable episode and without a success, by decreasing score."""
    by_task: dict[tuple[str, str], list[Trajectory]] = {}
    for episode in episodes:
        if episode.usable:
            by_task.setdefault((episode.env_id, episode.task.id), []).append(episode)
    found = [_summarize(played) for _, played in sorted(by_task.items()) if not any(t.success for t in played)]
    return sorted(found, key=lambda task: -task.score)


def _summarize(episodes: Sequence[Trajectory]) -> Unsolved:
    goal = episodes[0].task.goal
    return Unsolved(
        episodes[0].task.id,
        goal if len(goal) <= _GOAL else goal[:_GOAL] + " …",
        max(t.score for t in episodes),
        fmean(len(t.turns) for t in episodes),
        sorted({t.stop_reason for t in episodes}),
    )
