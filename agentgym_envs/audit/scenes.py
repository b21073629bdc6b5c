"""Scenes: the sampled tasks with what the oracle and the honest policies earn on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from agentgym_envs.audit.attempts import AuditScene
from agentgym_envs.audit.detours import detour
from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.registration import env_class
from agentgym_envs.task import SPLITS, Task
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


def sample_tasks(env: TextEnv, groups: Sequence[str], count: int, seed: int) -> dict[str, list[Task]]:
    """Tasks of each group, of all splits in turn."""
    found: dict[str, list[Task]] = {}
    for group in groups:
        tasks: dict[str, Task] = {}
        for number in range(len(SPLITS) * count):
            if len(tasks) < count and (task := _one(env, group, SPLITS[number % len(SPLITS)], seed + number)):
                tasks[task.id] = task
        found[group] = list(tasks.values())
    return found


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
        next((number for number, step in enumerate(oracle.steps, 1) if step.reward), len(plan)),
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
