"""Metrics of labelled episodes: regret, turns to the first mistake, and recovery after it.

`agentgym_envs.labels` defines the labels; `docs/metrics.md` has the formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, NamedTuple

from agentgym_envs.evaluate.episodes import split
from agentgym_envs.evaluate.estimates import Estimate, TaskValues, estimates
from agentgym_envs.labels import EpisodeLabels
from agentgym_envs.trajectory import Trajectory


class LabelledEpisode(NamedTuple):
    """An episode with its labels; None if it has none."""

    trajectory: Trajectory
    labels: EpisodeLabels | None


@dataclass(frozen=True, slots=True)
class MistakeMetrics:
    """The metrics of the labels of a set of episodes. `env_id` and `group` are None if the set spans several.

    `episodes` is the number of usable episodes with labels, `unlabelled` that of the other usable ones. `exact` is the
    fraction of labelled turns with a proof. Means over tasks, None without an episode: `regret`, the turns lost per
    episode, where the goal stays in reach and both ends are known (`regret_known` episodes); `mistake`, the fraction
    of episodes with a mistake; `first_mistake`, the number of its turn; `recovered`, the fraction of the episodes with
    a mistake that later come closer to the goal than before it. Counts have an interval from three tasks on.
    """

    env_id: str | None
    group: str | None
    episodes: int
    unlabelled: int
    exact: float | None
    regret: float | None
    regret_estimate: Estimate | None
    regret_known: int
    mistake: Estimate | None
    first_mistake: float | None
    first_mistake_estimate: Estimate | None
    recovered: Estimate | None


@dataclass(frozen=True, slots=True)
class MistakeEvaluation:
    """Metrics over all labelled episodes, and per group of tasks of each environment."""

    overall: MistakeMetrics
    groups: tuple[MistakeMetrics, ...]

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON objects and lists."""
        return {"overall": asdict(self.overall), "groups": [asdict(row) for row in self.groups]}


def evaluate_mistakes(episodes: Iterable[LabelledEpisode], *, group_order: Sequence[str] = ()) -> MistakeEvaluation:
    """Compute the metrics of episodes, in any order. `group_order` is as in `evaluate`."""
    usable = [episode for episode in episodes if episode.trajectory.usable]
    order = {name: rank for rank, name in enumerate(group_order)}
    by_group = split(usable, lambda episode: (episode.trajectory.env_id, episode.trajectory.task.group))
    keys = sorted(by_group, key=lambda key: (key[0], order.get(key[1], len(order)), key[1]))
    groups = tuple(_measure(by_group[key], *key) for key in keys)
    return MistakeEvaluation(_measure(usable, None, None), groups)


def _measure(episodes: Sequence[LabelledEpisode], env_id: str | None, group: str | None) -> MistakeMetrics:
    labelled = [each for each in episodes if each.labels is not None and each.labels.turns]
    turns = [turn.exact for each in labelled if each.labels for turn in each.labels.turns]
    values = {name: _column(labelled, name) for name in ("regret", "mistake", "first_mistake", "recovered")}
    found = estimates(values)
    return MistakeMetrics(
        env_id=env_id,
        group=group,
        episodes=len(labelled),
        unlabelled=len(episodes) - len(labelled),
        exact=fmean(turns) if turns else None,
        regret=_mean(values["regret"]),
        regret_estimate=found["regret"],
        regret_known=values["regret"].episodes,
        mistake=found["mistake"],
        first_mistake=_mean(values["first_mistake"]),
        first_mistake_estimate=found["first_mistake"],
        recovered=found["recovered"],
    )


def _column(labelled: Sequence[LabelledEpisode], name: str) -> TaskValues:
    """The values per task of episodes that have this value."""
    tasks: dict[tuple[str, str], list[float]] = {}
    for trajectory, labels in labelled:
        assert labels is not None
        value = labels.first_mistake is not None if name == "mistake" else getattr(labels, name)
        if value is not None:
            tasks.setdefault((trajectory.env_id, trajectory.task.id), []).append(float(value))
    means = [fmean(tasks[key]) for key in sorted(tasks)]
    kind: Any = "rate" if name in ("mistake", "recovered") else "count"
    return TaskValues(means, sum(map(len, tasks.values())), kind)


def _mean(column: TaskValues) -> float | None:
    return fmean(column.values) if column.values else None
