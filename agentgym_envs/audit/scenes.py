"""Scenes: the sampled tasks with what the oracle and the honest policies earn on them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from agentgym_envs.audit.attempts import AuditScene
from agentgym_envs.audit.detours import detour
from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.registration import env_class
from agentgym_envs.task import SPLITS, Task, TaskTable
from agentgym_envs.validate.episodes import (
    EpisodeStart,
    RecordedEpisode,
    acting_randomly,
    play,
    play_oracle,
    repeating,
    replaying,
    shown_text,
)

Env = gym.Env[Any, Any]
_FEWEST_TURNS, _MOST_TURNS = 6, 40
_SLOW_TURNS = 8
_MOST_LISTED = 5_000
"""Larger groups of questions that are made on request are sampled."""
_COMMON = frozenset({"task_id", "state_key", "stop_reason"})


@dataclass
class MeasuredScene:
    """A scene, and the honest episodes of its task.

    `rate` is the stated chance that a guess solves the task, None if the scenario states none.
    """

    scene: AuditScene
    group: str
    rate: float | None
    oracle: RecordedEpisode
    idle: RecordedEpisode
    random: list[RecordedEpisode]
    detours: list[RecordedEpisode] = field(default_factory=list)

    @property
    def random_score(self) -> float:
        """The mean score of the random policy."""
        return sum(episode.score for episode in self.random) / max(1, len(self.random))


def sample_tasks(env: TextEnv, groups: Sequence[str], count: int, seed: int, skip: int = 0) -> dict[str, list[Task]]:
    """Tasks of each group, spread over its templates or levels; `skip` leaves out the first ones of that order."""
    return {group: _spread(_candidates(env, group, skip + count, seed), skip, count) for group in groups}


def kind_of(task: Task) -> str:
    """The template, level or experiment of a task, by the ids of this suite; a task of another form is its own."""
    return task.id.partition("/")[2].rpartition("/")[0].split("/")[0] or task.id


def _candidates(env: TextEnv, group: str, wanted: int, seed: int) -> list[Task]:
    """Different tasks of a group, in random order: all of a table, else some of all splits in turn."""
    size = sum((env.tasks.counts() or {}).get(group, {}).values())
    if isinstance(env.tasks, TaskTable) or 0 < size <= _MOST_LISTED:
        found = env.tasks.sample(groups=(group,))
        return random.Random(seed).sample(found, len(found))
    draws = range(len(SPLITS) * wanted)
    tasks = (_one(env, group, SPLITS[number % len(SPLITS)], seed + number) for number in draws)
    return list({task.id: task for task in tasks if task is not None}.values())


def _spread(tasks: Sequence[Task], skip: int, count: int) -> list[Task]:
    """The first tasks of each kind, then the second ones, and so on."""
    seen: Counter[str] = Counter()
    ranked = []
    for task in tasks:
        seen[kind_of(task)] += 1
        ranked.append((seen[kind_of(task)], task))
    return [task for _, task in sorted(ranked, key=lambda pair: pair[0])][skip : skip + count]


def _one(env: TextEnv, group: str, split: str, seed: int) -> Task | None:
    try:
        return env.tasks.sample(1, split=split, groups=(group,), seed=seed)[0]
    except UsageError:
        return None  # no such task


def measure(env: Env, task: Task, seed: int, sizes: tuple[int, int]) -> MeasuredScene:
    """Play the oracle, nothing, the random policy and detours on a task; `sizes` are the numbers of the last two."""
    base, start = text_env(env), EpisodeStart(seed, task.id, task.group)
    oracle = play_oracle(env, start)
    plan = oracle.plan or ()
    most = _SLOW_TURNS if base.blocking or base.heavy else _MOST_TURNS
    turns = min(max(_FEWEST_TURNS, 2 * len(plan)), most)
    idle = play(env, start, repeating(""), turns)
    scene = AuditScene(
        base,
        class_of(base),
        start,
        task.goal,
        shown_text(oracle.observation),
        tuple(_texts(oracle.info)),
        plan,
        oracle.score,
        idle.score,
        tuple(float(step.reward) for step in oracle.steps),
        tuple(str(step.info["url"]) for step in oracle.steps if "url" in step.info),
        turns,
    )
    randomly, detours = sizes
    measured = MeasuredScene(scene, task.group, rate_of(scene.kind, task.group), oracle, idle, [])
    measured.random = [play(env, start, acting_randomly(seed + number), turns) for number in range(randomly)]
    if oracle.success:
        for number in range(detours):
            messages = detour(scene, number)
            measured.detours.append(play(env, start, replaying(messages), len(messages)))
    return measured


def _texts(info: Any) -> Iterator[str]:
    """The texts in an info, without those of every environment."""
    values = info.items() if isinstance(info, dict) else enumerate(info)
    for name, value in values:
        if isinstance(value, str) and name not in _COMMON:
            yield value
        elif isinstance(value, dict | list | tuple):
            yield from _texts(value)


def rate_of(kind: type[TextEnv], group: str) -> float | None:
    """The stated chance of a guess in a group."""
    rates = kind.guess_rates
    return None if rates is None else rates.get(group, rates.get(""))


def class_of(env: TextEnv) -> type[TextEnv]:
    """The class of an environment, for a remote one that of its id if it is known here."""
    if env.spec is not None:
        try:
            return env_class(env.spec.id)
        except (gym.error.Error, ImportError, UsageError):
            pass
    return type(env)
