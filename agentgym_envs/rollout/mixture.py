"""The environments of a training run with their weights, and the tasks drawn from them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

import agentgym_envs
from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.image_observations import text_of
from agentgym_envs.task import Task

_MAX_SKIPPED = 10_000
_ENV_ID = re.compile(r"[^:]*-v[0-9]+")


@dataclass(frozen=True, slots=True)
class MixtureEnv:
    """One environment of a run, with its arguments and its share of the tasks."""

    id: str
    kwargs: Mapping[str, Any]
    weight: float = 1.0

    def make(self) -> Any:
        """Make an instance. Raises UsageError for an unknown id or unknown arguments."""
        return gym_make(self.id, self.kwargs)


class DrawnTask(NamedTuple):
    """A task to play: its environment, the task, and the seed of its episodes."""

    env: str
    task: Task
    seed: int


def read_mixture(
    names: Sequence[str], env_kwargs: Mapping[str, Any], *, option: str = "--env-kwargs"
) -> list[MixtureEnv]:
    """Read environments with weights, as in `AgentGym/TextCraft-v0:2`, where 2 is the weight.

    `env_kwargs` has the arguments of the only environment, or an object for each, keyed by id. `option` is the name of
    that option in error messages. Each environment is made once, so that wrong arguments are reported now.

    Raises:
        UsageError: an unknown or repeated environment, or wrong arguments.
    """
    weights = _weights(names)
    kwargs = _kwargs_by_id(env_kwargs, list(weights), option)
    mixture = [MixtureEnv(env_id, kwargs[env_id], weight) for env_id, weight in weights.items()]
    for env in mixture:
        env.make().close()
    return mixture


def read_env_kwargs(text: str, option: str = "--env-kwargs") -> dict[str, Any]:
    """Parse an option's JSON object. Raises UsageError."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f'{option} must be a JSON object, as in \'{{"worlds": "fictional"}}\'; got {text!r}')
    if any("token" in part for part in (value, *value.values()) if isinstance(part, dict)):
        raise UsageError(f"{option} is recorded with the run: give a server's token as AGENTGYM_TOKEN instead")
    return value


def gym_make(env_id: str, kwargs: Mapping[str, Any]) -> Any:
    """Make an environment of this suite; "module:Id" imports the module first. Raises UsageError."""
    if env_id not in gym.registry and ":" not in env_id:
        raise UsageError(
            f"there is no environment {env_id!r}; `agentgym list` shows {', '.join(agentgym_envs.env_ids())}"
        )
    try:
        env = gym.make(env_id, **kwargs)
    except TypeError as error:
        raise UsageError(f"{env_id} does not take these arguments: {error}") from None
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise UsageError(f"there is no environment {env_id!r}: {error}") from None
    text_env(env)
    return env


def draw_mixture(
    mixture: Sequence[MixtureEnv],
    count: int | None,
    *,
    enough: int,
    split: str | None = "train",
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> list[DrawnTask]:
    """Draw tasks as `draw_tasks` does. The environments are made for this and closed again."""
    with ExitStack() as stack:
        made = {env.id: stack.enter_context(closing(env.make())) for env in mixture}
        return draw_tasks(
            {name: text_env(env) for name, env in made.items()},
            {env.id: env.weight for env in mixture},
            count,
            enough=enough,
            split=split,
            groups=groups,
            seed=seed,
        )


def draw_tasks(
    envs: Mapping[str, TextEnv],
    weights: Mapping[str, float],
    count: int | None = None,
    *,
    enough: int,
    split: str | None = "train",
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> list[DrawnTask]:
    """Draw `count` tasks in proportion to `weights`, at least one from each environment, and shuffle them.

    Without `count`, every task of every table is drawn at least once; generators give `enough` tasks, or their share of
    what the tables need. With several environments, `groups` does not restrict those that have none of these groups.

    Raises:
        UsageError: a group that no environment has, or a `count` below the number of environments.
    """
    chosen = _chosen_groups(envs, groups)
    tables = {name: _table(env, split, chosen[name]) for name, env in envs.items()}
    sizes = {name: len(table) for name, table in tables.items() if table}
    counts = _counts({name: weights[name] for name in envs}, sizes, count, enough)
    parts = [
        draw_from(env, counts[name], split=split, groups=chosen[name], seed=seed + number, name=name)
        for number, (name, env) in enumerate(envs.items())
    ]
    drawn = [task for part in parts for task in part]
    if len(parts) == 1:
        return drawn
    return [drawn[index] for index in np.random.default_rng(seed).permutation(len(drawn))]


def draw_from(
    env: TextEnv,
    count: int | None = None,
    *,
    split: str | None = "train",
    groups: Sequence[str] | None = None,
    seed: int = 0,
    max_prompt_chars: int | None = None,
    name: str = "",
) -> list[DrawnTask]:
    """Draw `count` tasks of `env`, in an order that depends on `seed`. Without `count`, draw every task once.

    A table gives every task once before it repeats one, with a new seed, so that the distractors differ. A generator
    draws new tasks. Tasks whose first observation is longer than `max_prompt_chars` characters are skipped. `name` is
    the environment's name in the run.

    Raises:
        UsageError: `count` is below 1, or missing for a generator, or every prompt is too long.
    """
    _check_count(count, 1)
    rng = np.random.default_rng(seed)
    drawn = (DrawnTask(name, task, int(rng.integers(2**31))) for task in _tasks(env, count, split, groups, rng))
    found = list(islice(drawn if max_prompt_chars is None else _short(env, drawn, max_prompt_chars), count))
    if not found:
        raise UsageError(f"no task has a prompt of at most {max_prompt_chars} characters")
    return found


def prompt_chars(env: TextEnv, task: Task, seed: int) -> int:
    """The number of characters of a task's first observation."""
    return len(text_of(env.reset(seed=seed, options={"task": task.id})[0]))


def _weights(names: Sequence[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for name in names:
        env_id, colon, weight = name.rpartition(":")
        if not colon or _ENV_ID.fullmatch(weight):  # a colon of MODULE:ID, not of a weight
            env_id, weight = name, "1"
        if env_id in weights:
            raise UsageError(f"{env_id} is named twice; give it a weight instead, as in {env_id}:2")
        weights[env_id] = _weight(name, weight)
    return weights


def _weight(name: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise UsageError(
            f"the weight of an environment is a number above 0, as in AgentGym/TextCraft-v0:2; got {name!r}"
        )
    return weight


def _kwargs_by_id(kwargs: Mapping[str, Any], ids: list[str], option: str) -> dict[str, Mapping[str, Any]]:
    """The arguments of each environment: from an object keyed by id, or from one object for the only environment."""
    if any(key in ids for key in kwargs):
        if wrong := [key for key, value in kwargs.items() if key not in ids or not isinstance(value, dict)]:
            raise UsageError(f"{option} keyed by ids must hold an object for each; wrong: {', '.join(wrong)}")
        return {env_id: kwargs.get(env_id, {}) for env_id in ids}
    if kwargs and len(ids) > 1:
        raise UsageError(f"with several environments {option} is keyed by id: '{{\"{ids[0]}\": {{...}}}}'")
    return dict.fromkeys(ids, kwargs)


def _counts(weights: Mapping[str, float], sizes: Mapping[str, int], count: int | None, enough: int) -> dict[str, int]:
    """The number of tasks from each environment; `sizes` are the sizes of the tables."""
    shares = {name: weight / sum(weights.values()) for name, weight in weights.items()}
    if count is None:
        count = math.ceil(max((size / shares[name] for name, size in sizes.items()), default=enough) - 1e-6)
        return {name: max(1, math.ceil(count * share - 1e-6)) for name, share in shares.items()}
    _check_count(count, len(shares))
    counts = dict.fromkeys(shares, 1)
    for _ in range(count - len(counts)):  # Sainte-Lague: each task goes to the environment furthest below its share
        counts[max(counts, key=lambda name: shares[name] / (2 * counts[name] + 1))] += 1
    return counts


def _check_count(count: int | None, environments: int) -> None:
    if count is not None and count < environments:
        each = f", since each of {environments} environments gives one" if environments > 1 else ""
        raise UsageError(f"tasks to train on must be at least {environments}{each}; got {count}")


def _table(env: TextEnv, split: str | None, groups: Sequence[str] | None) -> list[Task] | None:
    """All tasks of that split and these groups; for a generator `None`. Raises UnknownTask."""
    try:
        return env.tasks.sample(split=split, groups=groups)
    except UnknownTask:
        raise
    except UsageError:
        return None


def _chosen_groups(envs: Mapping[str, TextEnv], groups: Sequence[str] | None) -> dict[str, Sequence[str] | None]:
    if groups is None or len(envs) == 1:
        return dict.fromkeys(envs, groups)
    known = {name: [group for group in groups if group in env.tasks.groups] for name, env in envs.items()}
    if unknown := set(groups) - {group for own in known.values() for group in own}:
        raise UsageError(f"no environment of this run has the groups {', '.join(sorted(unknown))}")
    return {name: own or None for name, own in known.items()}


def _tasks(
    env: TextEnv, count: int | None, split: str | None, groups: Sequence[str] | None, rng: np.random.Generator
) -> Iterator[Task]:
    """Every task once in random order. With a count, without end: repeated from a table, or drawn from a generator."""
    table = env.tasks.sample(split=split, groups=groups) if count is None else _table(env, split, groups)
    while table is None:
        yield env.tasks.draw(int(rng.integers(2**63)), split=split, groups=groups)
    yield from (table[index] for index in rng.permutation(len(table)))
    while count is not None:
        yield from (table[index] for index in rng.permutation(len(table)))


def _short(env: TextEnv, drawn: Iterator[DrawnTask], limit: int) -> Iterator[DrawnTask]:
    """The tasks with short prompts. Raises UsageError after too many long ones, since the search might never end."""
    skipped = 0
    for candidate in drawn:
        if prompt_chars(env, candidate.task, candidate.seed) <= limit:
            skipped = 0
            yield candidate
        elif (skipped := skipped + 1) == _MAX_SKIPPED:
            raise UsageError(f"{skipped} tasks in a row had a prompt of more than {limit} characters")
