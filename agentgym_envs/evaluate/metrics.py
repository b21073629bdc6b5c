"""Trajectories to metrics: the only place where one is defined. `docs/metrics.md` has the formulas.

An episode that says nothing of the policy (the environment failed, or it was left before its first turn) is counted
apart and enters no metric but AgentGym-RL's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Any

from agentgym_envs.evaluate.episodes import Facts, facts_of, split
from agentgym_envs.evaluate.estimates import Column, Estimate, estimates, share
from agentgym_envs.evaluate.samples import pass_at_k, pass_hat_k
from agentgym_envs.trajectory import Trajectory

_Tasks = Sequence[Sequence[Facts]]


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a set of episodes shows. `env_id` and `group` are None where the set spans several.

    `tasks` counts those with an episode that is usable, `episodes` these episodes, `excluded` the others.
    `stop_reasons` counts all episodes, the excluded ones as well.

    Means over tasks, None without a usable episode: `success`, `score` in [0, 1]; `turns` of an episode, those of a
    reflecting agent's earlier tries included (`turns_estimate`: the same with its interval, None of fewer than three
    tasks); `tokens`, those that the policy wrote in an episode, over the `tokens_known` episodes where they were
    counted (`tokens_estimate`: as for turns). `invalid_actions` is the share of all turns,
    `invalid_actions_estimate` the same with its interval.

    By k from 1 to `samples`, the most usable episodes that a task has: `avg_at_k` the mean score of k episodes,
    `pass_at_k` the chance that one of k succeeds, `pass_hat_k` that all do; `fewer_than_k` counts the tasks that have
    fewer than k and are left out there.

    `agentgym_rl` is what AgentGym-RL would print, in our range of scores: `avg@n`, the mean score of all episodes,
    where one that the machine failed counts 0; `pass@n`, the share of tasks that ever had any positive score.
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
    samples: int
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
        """The largest k for which every task has k usable episodes; 0 without any."""
        return max((k for k, left_out in self.fewer_than_k.items() if not left_out), default=0)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; the keys k become text."""
        return {name: _with_text_keys(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics over everything, for each environment, and for each group of tasks of each environment."""

    overall: Metrics
    environments: tuple[Metrics, ...]
    groups: tuple[Metrics, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON objects and lists, for a file."""
        return {
            "overall": self.overall.to_json(),
            "environments": [row.to_json() for row in self.environments],
            "groups": [row.to_json() for row in self.groups],
        }


def evaluate(trajectories: Iterable[Trajectory], *, group_order: Sequence[str] = ()) -> Evaluation:
    """The metrics of a set of episodes; the result does not depend on their order.

    `group_order` says in which order groups are reported; those that it does not name follow by name.
    """
    episodes = [facts_of(trajectory) for trajectory in trajectories]
    by_env = split(episodes, lambda facts: facts.key[0])
    environments, groups = [], []
    for env_id, found in sorted(by_env.items()):
        by_group = split(found, lambda facts: facts.group)
        names = sorted(by_group, key=lambda name: _place(name, group_order))
        own = [measure(by_group[name], env_id, name) for name in names]
        environments.append(_named(own[0], env_id) if len(own) == 1 else measure(found, env_id, None))
        groups += own
    overall = environments[0] if len(environments) == 1 else measure(episodes, None, None)
    return Evaluation(overall, tuple(environments), tuple(groups))


def measure(episodes: Sequence[Facts], env_id: str | None, group: str | None) -> Metrics:
    """The metrics of all the episodes together."""
    by_task = split((episode for episode in episodes if episode.usable), lambda facts: facts.key)
    tasks = [by_task[key] for key in sorted(by_task)]
    samples = max(map(len, tasks), default=0)
    counted = [known for task in tasks if (known := [facts for facts in task if facts.tokens is not None])]
    found = estimates(_columns(tasks, counted, samples))
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
        samples=samples,
        avg_at_k=_by_k(found, "avg", samples),
        pass_at_k=_by_k(found, "pass", samples),
        pass_hat_k=_by_k(found, "hat", samples),
        fewer_than_k={k: sum(len(task) < k for task in tasks) for k in range(1, samples + 1)},
        turns_estimate=found["turns", 0],
        invalid_actions_estimate=invalid,
        tokens=fmean(_means(counted, _tokens)) if counted else None,
        tokens_estimate=found["tokens", 0],
        tokens_known=sum(map(len, counted)),
        agentgym_rl=_agentgym_rl(episodes),
    )


def _columns(tasks: _Tasks, counted: _Tasks, samples: int) -> dict[tuple[str, int], Column]:
    """What is estimated, by name and k; `counted` are the episodes of which the tokens are known."""
    columns = {
        ("success", 0): _column(tasks, lambda facts: float(facts.success), "rate"),
        ("turns", 0): _column(tasks, lambda facts: facts.turns, "count"),
        ("tokens", 0): _column(counted, _tokens, "count"),
    }
    for _, ks in groupby(range(1, samples + 1), key=lambda k: sum(len(task) >= k for task in tasks)):
        columns |= _columns_of_k(tasks, list(ks))
    return columns


def _columns_of_k(tasks: _Tasks, ks: Sequence[int]) -> dict[tuple[str, int], Column]:
    """The columns of some k for which the same tasks have enough episodes."""
    enough = [task for task in tasks if len(task) >= ks[0]]
    plays = [(len(task), sum(facts.success for facts in task)) for task in enough]
    scores = _column(enough, lambda facts: facts.score, "bounded")
    if all(facts.score in (0, 1) for task in enough for facts in task):
        scores = scores._replace(kind="rate")
    columns = {}
    for k in ks:
        columns["avg", k] = scores
        columns["pass", k] = _chances([pass_at_k(n, c, k) for n, c in plays], scores.episodes, k)
        columns["hat", k] = _chances([pass_hat_k(n, c, k) for n, c in plays], scores.episodes, k)
    return columns


def _chances(values: Sequence[float], episodes: int, k: int) -> Column:
    """Chances of tasks. With k of 1, or of all that were played, they are rates."""
    if k == 1:
        return Column(values, episodes, "rate")
    if all(value in (0, 1) for value in values):
        return Column(values, len(values), "rate")
    return Column(values, episodes, "bounded")


def _column(tasks: _Tasks, value: Callable[[Facts], float], kind: Any) -> Column:
    return Column(_means(tasks, value), sum(map(len, tasks)), kind)


def _means(tasks: _Tasks, value: Callable[[Facts], float]) -> list[float]:
    return [fmean(map(value, task)) for task in tasks]


def _tokens(facts: Facts) -> int:
    return facts.tokens or 0


def _turns(tasks: _Tasks) -> tuple[list[float], list[float]]:
    """Of each task, the invalid turns and all turns."""
    invalid = [float(sum(facts.invalid for facts in task)) for task in tasks]
    return invalid, [float(sum(facts.turns for facts in task)) for task in tasks]


def _by_k(found: Mapping[tuple[str, int], Estimate | None], name: str, samples: int) -> dict[int, Estimate]:
    return {k: estimate for k in range(1, samples + 1) if (estimate := found[name, k]) is not None}


def _agentgym_rl(episodes: Sequence[Facts]) -> dict[str, float | None]:
    by_task = split(episodes, lambda facts: facts.key)
    if not by_task:
        return {"avg@n": None, "pass@n": None}
    scores = {key: [facts.score if facts.usable else 0.0 for facts in task] for key, task in by_task.items()}
    return {
        "avg@n": fmean(score for key in sorted(scores) for score in sorted(scores[key])),
        "pass@n": fmean(max(task) > 0 for task in scores.values()),
    }


def _named(row: Metrics, env_id: str) -> Metrics:
    """The row of an environment's only group as that of the environment."""
    return replace(row, env_id=env_id, group=None)


def _with_text_keys(value: Any) -> Any:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else value


def _place(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)
