"""Metrics of a step's episodes, under the names that `agentgym train` logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

_OF_EPISODES = ("success", "score", "turns", "max_turns")
_OF_TURNS = ("invalid_actions", "truncated_answers")
"""Shares of the turns of an episode; the metric is the share of all turns."""


def rollout_metrics(episodes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The metrics `rollout/NAME` from the numbers that `GymAgentLoop` returns with each episode; none without any."""
    if not episodes:
        return {}
    turns = sum(episode["turns"] for episode in episodes)
    means = {name: fmean(episode[name] for episode in episodes) for name in _OF_EPISODES}
    shares = {name: sum(each[name] * each["turns"] for each in episodes) / max(turns, 1) for name in _OF_TURNS}
    return {f"rollout/{name}": value for name, value in {**means, **shares}.items()}
