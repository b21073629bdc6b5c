"""Metrics of trajectories; all of them are defined here. `docs/metrics.md` has the formulas.

Unusable episodes (the environment failed, or there was no turn) are counted separately. Only AgentGym-RL's own metrics
include them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Any

from agentgym_envs.evaluate.episodes import EpisodeFacts, facts_of, split
from agentgym_envs.evaluate.estimates import Estimate, TaskValues, estimates, share
from agentgym_envs.evaluate.pass_at_k import pass_at_k, pass_hat_k
from agentgym_envs.trajectory import Trajectory

_Tasks = Sequence[Sequence[EpisodeFacts]]


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of a set of episodes. `env_id` and `group` are None if the set spans several.

    `tasks` is the number of tasks with a usable episode, `episodes` that of usable episodes, `excluded` that of the
    others. `stop_reasons` counts all episodes, including excluded ones.

    Means over tasks, None without a usable episode: `success`; `score` in [0, 1]; `turns` per episode, including
    earlier attempts of a reflecting agent (`turns_estimate`: with its interval, None for fewer than three tasks);
    `tokens` that the policy wrote per episode, over the `tokens_known` episodes where they were counted
    (`tokens_estimate`: as for turns). `invalid_actions` is the fraction of all turns, `invalid_actions_estimate` the
    same with its interval.

    For each k from 1 to `max_k`, the largest number of usable episodes of a task: `avg_at_k` is the mean score of k
    episodes, `pass_at_k` the probability that one of k succeeds, `pass_hat_k` that all do. `fewer_than_k` is the number
    of tasks with fewer than k episodes, which are left out.

    `agentgym_rl` has AgentGym-RL's own metrics, in our range of scores: `avg@n`, the mean score of all episodes, with 0
    for an infrastructure error; `pass@n`, the fraction of tasks with a positive score in any episode.
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
    max_k: int
    avg_at_k: Mapping[int, Estimate]
    pass_at_k: Mapping[int, Estimate]
    pass_hat_k: Mapping[int, Estimate]
    fewer_than_k: Mapping[int, int]
    turns_estimate: Estimate | None
    invalid_actions_estimate: Estimate | None
    tokens: float | None
    tokens_estimate: Estimate | None
    tokens_known: int
    agentgym_rl: Mapping[str, float | None]

    @property
    def common_k(self) -> int:
        """The largest k for which every task has k usable episodes; 0 without tasks."""
        return max((k for k, left_out in self.fewer_than_k.items() if not left_out), default=0)

    def to_json(self) -> dict[str, Any]:
        """Convert to a JSON object; the keys k become strings."""
        return {name: _with_text_keys(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics over all episodes, per environment, and per group of tasks of each environment."""

    overall: Metrics
    environments: tuple[Metrics, ...]
    groups: tuple[Metrics, ...]

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON objects and lists."""
        return {
            "overall": self.overall.to_json(),
            "environments": [row.to_json() for row in self.environments],
            "groups": [row.to_json() for row in self.groups],
        }


def evaluate(trajectories: Iterable[Trajectory], *, group_order: Sequence[str] = ()) -> Evaluation:
    """Compute the metrics of a set of episodes, in any order.

    `group_order` is the order of groups in the result; other groups follow by name.
    """
    episodes = [facts_of(trajectory) for trajectory in trajectories]
    by_env = split(episodes, lambda facts: facts.key[0])
    environments, groups = [], []
    for env_id, found in sorted(by_env.items()):
        by_group = split(found, lambda facts: facts.group)
        names = sorted(by_group, key=lambda name: _sort_key(name, group_order))
        own = [measure(by_group[name], env_id, name) for name in names]
        environments.append(_as_environment(own[0], env_id) if len(own) == 1 else measure(found, env_id, None))
        groups += own
    overall = environments[0] if len(environments) == 1 else measure(episodes, None, None)
    return Evaluation(overall, tuple(environments), tuple(groups))


def measure(
    episodes: Sequence[EpisodeFacts], env_id: str | None, group: str | None, *, at_most_k: int | None = None
) -> Metrics:
    """Compute the metrics of the episodes as one set. With `at_most_k`, larger k are left out, which saves time."""
    by_task = split((episode for episode in episodes if episode.usable), lambda facts: facts.key)
    tasks = [by_task[key] for key in sorted(by_task)]
    max_k = max(map(len, tasks), default=0)
    max_k = max_k if at_most_k is None else min(max_k, at_most_k)
    counted = [known for task in tasks if (known := [facts for facts in task if facts.tokens is not None])]
    found = estimates(_columns(tasks, counted, max_k))
    invalid = share(*_turns(tasks)) if tasks else None
    return Metrics(
        env_id=env_id,
        group=group,
        tasks=len(tasks),
        episodes=sum(map(len, tasks)),
        excluded=sum(not episode.usable for episode in episodes),
        success=found["success", 0],
        score=found.get(("avg", 1)),
        turns=fmean(_means(tasks, lambda facts: facts.turns)) if tasks else None,
        invalid_actions=invalid.mean if invalid else None,
        stop_reasons=dict(sorted(Counter(episode.stop_reason for episode in episodes).items())),
        max_k=max_k,
        avg_at_k=_by_k(found, "avg", max_k),
        pass_at_k=_by_k(found, "pass", max_k),
        pass_hat_k=_by_k(found, "hat", max_k),
        fewer_than_k={k: sum(len(task) < k for task in tasks) for k in range(1, max_k + 1)},
        turns_estimate=found["turns", 0],
        invalid_actions_estimate=invalid,
        tokens=fmean(_means(counted, _tokens)) if counted else None,
        tokens_estimate=found["tokens", 0],
        tokens_known=sum(map(len, counted)),
        agentgym_rl=_agentgym_rl(episodes),
    )


def _columns(tasks: _Tasks, counted: _Tasks, max_k: int) -> dict[tuple[str, int], TaskValues]:
    """The values to estimate, by name and k. `counted` are the episodes with known tokens."""
    columns = {
        ("success", 0): _column(tasks, lambda facts: float(facts.success), "rate"),
        ("turns", 0): _column(tasks, lambda facts: facts.turns, "count"),
        ("tokens", 0): _column(counted, _tokens, "count"),
    }
    for _, ks in groupby(range(1, max_k + 1), key=lambda k: sum(len(task) >= k for task in tasks)):
        columns |= _columns_of_k(tasks, list(ks))
    return columns


def _columns_of_k(tasks: _Tasks, ks: Sequence[int]) -> dict[tuple[str, int], TaskValues]:
    """The values for several k, for which the same tasks have enough episodes."""
    enough = [task for task in tasks if len(task) >= ks[0]]
    plays = [(len(task), sum(facts.success for facts in task)) for task in enough]
    scores = _column(enough, lambda facts: facts.score, "bounded")
    if all(facts.score in (0, 1) for task in enough for facts in task):
        scores = scores._replace(kind="rate")
    columns = {}
    for k in ks:
        columns["avg", k] = scores
        columns["pass", k] = _probabilities([pass_at_k(n, c, k) for n, c in plays], scores.episodes, k)
        columns["hat", k] = _probabilities([pass_hat_k(n, c, k) for n, c in plays], scores.episodes, k)
    return columns


def _probabilities(values: Sequence[float], episodes: int, k: int) -> TaskValues:
    """Probabilities per task. They are rates if k is 1, or the number of episodes of each task."""
    if k == 1:
        return TaskValues(values, episodes, "rate")
    if all(value in (0, 1) for value in values):
        return TaskValues(values, len(values), "rate")
    return TaskValues(values, episodes, "bounded")


def _column(tasks: _Tasks, value: Callable[[EpisodeFacts], float], kind: Any) -> TaskValues:
    return TaskValues(_means(tasks, value), sum(map(len, tasks)), kind)


def _means(tasks: _Tasks, value: Callable[[EpisodeFacts], float]) -> list[float]:
    return [fmean(map(value, task)) for task in tasks]


def _tokens(facts: EpisodeFacts) -> int:
    return facts.tokens or 0


def _turns(tasks: _Tasks) -> tuple[list[float], list[float]]:
    """The number of invalid turns and of all turns, per task."""
    invalid = [float(sum(facts.invalid for facts in task)) for task in tasks]
    return invalid, [float(sum(facts.turns for facts in task)) for task in tasks]


def _by_k(found: Mapping[tuple[str, int], Estimate | None], name: str, max_k: int) -> dict[int, Estimate]:
    return {k: estimate for k in range(1, max_k + 1) if (estimate := found[name, k]) is not None}


def _agentgym_rl(episodes: Sequence[EpisodeFacts]) -> dict[str, float | None]:
    by_task = split(episodes, lambda facts: facts.key)
    if not by_task:
        return {"avg@n": None, "pass@n": None}
    scores = {key: [facts.score if facts.usable else 0.0 for facts in task] for key, task in by_task.items()}
    return {
        "avg@n": fmean(score for key in sorted(scores) for score in sorted(scores[key])),
        "pass@n": fmean(max(task) > 0 for task in scores.values()),
    }


def _as_environment(row: Metrics, env_id: str) -> Metrics:
    """The metrics of an environment's only group, as those of the environment."""
    return replace(row, env_id=env_id, group=None)


def _with_text_keys(value: Any) -> Any:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else value


def _sort_key(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)
