"""Metrics of an asynchronous rollout."""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_trl.asynchronous.groups import EpisodeGroup
from agentgym_trl.asynchronous.scheduler import Scheduler


def group_metrics(groups: Sequence[EpisodeGroup], scheduler: Scheduler, seconds: float) -> dict[str, float]:
    """Staleness of the batch, groups in flight, and the seconds that the trainer waited.

    The staleness of a token is the version that is trained on it less the version that sampled it. A group is ready if
    it is complete and waits for a later batch.
    """
    ages = [age for group in groups for age in _ages(group, scheduler.next_rollout - 1)]
    spreads = [float(len(set(_versions(group, member)))) for group in groups for member in group.episodes]
    scores = [[e.trajectory.score for e in group.episodes.values() if e.trajectory.usable] for group in groups]
    ready = sum(group.completed is not None for group in scheduler.live)
    return {
        "rollout/zero_variance_groups": _mean([float(len(set(group)) < 2) for group in scores]),
        "rollout/retried": float(scheduler.retried),
        "rollout/tokens": float(len(ages)),
        "async/staleness": _mean([float(age) for age in ages]),
        "async/max_staleness": float(max(ages, default=0)),
        "async/versions_per_episode": _mean(spreads),
        "async/groups_running": float(len(scheduler.live) - ready),
        "async/groups_ready": float(ready),
        "async/groups_replayed": float(scheduler.replayed),
        "time/wait": seconds,
    }


def _ages(group: EpisodeGroup, version: int) -> list[int]:
    return [version - sampled for member in group.episodes for sampled in _versions(group, member)]


def _versions(group: EpisodeGroup, member: int) -> list[int]:
    """The version of each sampled token of an episode; empty if the engine counts none."""
    episode = group.episodes[member]
    mask = zip(episode.versions or [], episode.assistant_mask, strict=False)
    return [version for version, sampled in mask if sampled]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)
