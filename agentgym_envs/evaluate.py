"""What a set of trajectories says about a policy: success, score, turns, with intervals. The only place of metrics.

Two episodes of one task are not independent, so tasks are what is counted: an estimate is the mean over tasks of the
task's own mean, and its interval tells where that mean would fall with other tasks of the same kind. The interval is
Wilson's with the effective number of episodes: as many independent ones as would give the variance that is seen
between tasks, at least the number of tasks and at most that of episodes. With one episode a task it is Wilson's own;
at 0 % and 100 % it keeps its width, which a bootstrap over tasks does not (in simulations with 10 to 100 tasks and a
success rate of 5 %, its 95 % intervals held the truth in 39 to 95 of 100 cases, these in 89 to 97).

An episode that says nothing of the policy (the environment failed, or it was left before its first turn) is counted
apart and enters no rate.

Source: Wilson, JASA 22 (1927) 209-212; effective sample size: Korn and Graubard, Survey Methodology 24 (1998) 193-201,
and the comparison by Franco, Little, Louis and Slud, J. Survey Stat. Methodol. 7 (2019) 334-364.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pvariance
from typing import Any

import numpy as np

from agentgym_envs.errors import UsageError
from agentgym_envs.trajectory import Trajectory

Z95 = 1.959963984540054
"""Standard deviations on either side that hold 95 % of a normal distribution."""

_Tasks = dict[tuple[str, str], list[Trajectory]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over tasks and its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a set of episodes shows. `env_id` and `group` are None where the set spans several.

    `tasks` counts those with an episode that is usable, `episodes` these episodes, `excluded` the others. `success`
    and `score` are means over tasks in [0, 1]; `turns` is the mean over tasks of the turns of an episode;
    `invalid_actions` is the share of all turns. All are None without a usable episode. `stop_reasons` counts all
    episodes, the excluded ones as well.
    """

    env_id: str | None
    group: str | None
    tasks: int
    episodes: int
    excluded: int
    success: Estimate | None
    score: Estimate | None
    turns: float | None
    invalid_actions: float | None
    stop_reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics over everything, for each environment, and for each group of tasks of each environment."""

    overall: Metrics
    environments: tuple[Metrics, ...]
    groups: tuple[Metrics, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON objects and lists, for a file."""
        row = asdict(self)
        return {**row, "environments": list(row["environments"]), "groups": list(row["groups"])}


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean over tasks of what a task gained, with its 95 % interval.

    `tasks` counts the pairs, `excluded` the tasks that have no usable episode on one side.
    """

    mean: float
    low: float
    high: float
    tasks: int
    excluded: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def evaluate(trajectories: Iterable[Trajectory], *, group_order: Sequence[str] = ()) -> Evaluation:
    """The metrics of a set of episodes; the result does not depend on their order.

    `group_order` says in which order groups are reported; those that it does not name follow by name.
    """
    episodes = list(trajectories)
    by_env = _split(episodes, lambda t: t.env_id)
    environments = [_measure(found, env_id, None) for env_id, found in sorted(by_env.items())]
    groups = []
    for env_id, found in sorted(by_env.items()):
        by_group = _split(found, lambda t: t.task.group)
        for group in sorted(by_group, key=lambda name: _place(name, group_order)):
            groups.append(_measure(by_group[group], env_id, group))
    only = environments[0].env_id if len(environments) == 1 else None
    return Evaluation(_measure(episodes, only, None), tuple(environments), tuple(groups))


def interval(task_means: Sequence[float], episodes: int) -> Estimate:
    """The mean of `task_means` (each in [0, 1], at least one) with its interval; see the module's docstring.

    `episodes` is how many episodes they came from in all.
    """
    tasks = len(task_means)
    mean = min(max(fmean(task_means), 0.0), 1.0)
    variance = pvariance(task_means) / (tasks - 1) if tasks > 1 else 0.0  # of the mean
    effective = mean * (1 - mean) / variance if variance else float(tasks)
    return wilson(mean, min(max(effective, tasks), max(episodes, tasks)))


def wilson(share: float, count: float) -> Estimate:
    """Wilson's 95 % score interval of a share among `count` independent trials; `count` need not be whole."""
    square = Z95**2
    centre = (share + square / (2 * count)) / (1 + square / count)
    half = Z95 / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    # Rounding must not leave the bound of a share of 0 or 1 beside it.
    low, high = (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)
    return Estimate(share, max(low, 0.0), min(high, 1.0))


def paired_difference(
    before: Iterable[Trajectory],
    after: Iterable[Trajectory],
    *,
    value: Callable[[Trajectory], float] = lambda trajectory: float(trajectory.success),
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """What `after` gained over `before`, task by task, by default in success.

    Each task counts by the difference of its means, so that a task's own difficulty drops out. The interval is the
    percentile bootstrap over tasks, with a fixed seed.

    Raises:
        UsageError: the two are not over the same tasks, or no task has a usable episode in both.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    old, new = _by_task(before), _by_task(after)
    if unpaired := sorted(set(old) ^ set(new)):
        raise UsageError(
            f"a paired comparison needs the same tasks on both sides; {len(unpaired)} of "
            f"{len(set(old) | set(new))} are on one side only, for example {unpaired[0][1]!r}"
        )
    gains = [_mean(new[key], value) - _mean(old[key], value) for key in sorted(old) if _usable(old[key], new[key])]
    if not gains:
        raise UsageError("there is no task with a usable episode on both sides, so there is nothing to compare")
    low, high = _bootstrap(np.array(gains), resamples, seed)
    return PairedDifference(fmean(gains), low, high, len(gains), len(old) - len(gains))


def _bootstrap(values: np.ndarray[Any, np.dtype[np.float64]], resamples: int, seed: int) -> tuple[float, float]:
    rng = np.random.Generator(np.random.PCG64(seed))
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(resamples)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _measure(episodes: Sequence[Trajectory], env_id: str | None, group: str | None) -> Metrics:
    usable = [episode for episode in episodes if episode.usable]
    tasks = _by_task(usable)
    turns = [turn for episode in usable for turn in episode.turns]
    invalid = sum(turn.info.get("invalid_action") is not None for turn in turns)
    return Metrics(
        env_id=env_id,
        group=group,
        tasks=len(tasks),
        episodes=len(usable),
        excluded=len(episodes) - len(usable),
        success=_estimate(tasks, lambda t: float(t.success)),
        score=_estimate(tasks, lambda t: t.score),
        turns=fmean(_means(tasks, lambda t: len(t.turns))) if tasks else None,
        invalid_actions=invalid / len(turns) if turns else None,
        stop_reasons=dict(sorted(Counter(episode.stop_reason for episode in episodes).items())),
    )


def _estimate(tasks: _Tasks, value: Callable[[Trajectory], float]) -> Estimate | None:
    return interval(_means(tasks, value), sum(map(len, tasks.values()))) if tasks else None


def _means(tasks: _Tasks, value: Callable[[Trajectory], float]) -> list[float]:
    return [_mean(tasks[key], value) for key in sorted(tasks)]


def _mean(episodes: Sequence[Trajectory], value: Callable[[Trajectory], float]) -> float:
    return fmean(value(episode) for episode in episodes if episode.usable)


def _usable(*sides: Sequence[Trajectory]) -> bool:
    return all(any(episode.usable for episode in side) for side in sides)


def _by_task(trajectories: Iterable[Trajectory]) -> _Tasks:
    tasks: _Tasks = {}
    for trajectory in trajectories:
        tasks.setdefault((trajectory.env_id, trajectory.task.id), []).append(trajectory)
    return tasks


def _split(trajectories: Iterable[Trajectory], key: Callable[[Trajectory], str]) -> dict[str, list[Trajectory]]:
    parts: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        parts.setdefault(key(trajectory), []).append(trajectory)
    return parts


def _place(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)
