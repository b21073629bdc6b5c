"""Datasets of tasks for TRL: one row is one group of episodes (same task, same seed)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from datasets import Dataset, concatenate_datasets

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.task import Task
from agentgym_trl.columns import prompt_of


def make_dataset(
    env: TextEnv,
    count: int | None = None,
    *,
    split: str | None = "train",
    groups: Sequence[str] | None = None,
    seed: int = 0,
    max_prompt_chars: int | None = None,
    name: str = "",
) -> Any:
    """`count` tasks of `env`, in an order that `seed` decides; every task once if `count` is None.

    More rows than a table has tasks repeat the tasks with new seeds, so that other distractors are drawn. Tasks whose
    first observation is longer than `max_prompt_chars` characters are left out. `name` is the environment's, in a run
    that has several.
    Columns: `prompt` (what `make_rollout_func` reads), `task`, `group`, `seed`, `env`.
    """
    rng = np.random.default_rng(seed)
    drawn = ((task, int(rng.integers(2**31))) for task in _tasks(env, count, split, groups, rng))
    kept = ((t, s) for t, s in drawn if max_prompt_chars is None or prompt_chars(env, t, s) <= max_prompt_chars)
    return Dataset.from_list([_row(task, task_seed, name) for task, task_seed in islice(kept, count)])


def mixed_dataset(
    envs: Mapping[str, TextEnv],
    weights: Mapping[str, float],
    count: int | None = None,
    *,
    enough: int,
    split: str | None = "train",
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> Any:
    """`count` tasks of several environments in proportion to `weights`, in random order.

    If `count` is None, every task of every table is there at least once; sets without end give `enough` rows, or
    their share of what the tables need. With several environments, those that know none of `groups` give all of theirs.

    Raises:
        UsageError: no environment knows one of the groups.
    """
    chosen = _chosen_groups(envs, groups)
    shares = {name: weights[name] / sum(weights.values()) for name in envs}
    sizes = {name: _size(env, split, chosen[name]) for name, env in envs.items()}
    if count is None:
        count = round(max((size / shares[name] for name, size in sizes.items() if size), default=enough))
    rows = {name: max(1, round(count * share)) for name, share in shares.items()}
    parts = [
        make_dataset(
            env,
            # A table that is wanted as often as it is large gives each task once.
            None if rows[name] == sizes[name] else rows[name],
            split=split,
            groups=chosen[name],
            seed=seed + number,
            name=name if len(envs) > 1 else "",
        )
        for number, (name, env) in enumerate(envs.items())
    ]
    return concatenate_datasets(parts).shuffle(seed=seed) if len(parts) > 1 else parts[0]


def _size(env: TextEnv, split: str | None, groups: Sequence[str] | None) -> int | None:
    """The number of tasks of that kind, None if the set has no end."""
    try:
        return len(env.tasks.take(split=split, groups=groups))
    except UsageError as error:
        if isinstance(error, UnknownTask):
            raise
        return None


def _chosen_groups(envs: Mapping[str, TextEnv], groups: Sequence[str] | None) -> dict[str, Sequence[str] | None]:
    if groups is None or len(envs) == 1:
        return dict.fromkeys(envs, groups)
    known = {name: [group for group in groups if group in env.tasks.groups] for name, env in envs.items()}
    if lost := set(groups) - {group for own in known.values() for group in own}:
        raise UsageError(f"no environment of this run has the groups {', '.join(sorted(lost))}")
    return {name: own or None for name, own in known.items()}


def prompt_chars(env: TextEnv, task: Task, seed: int) -> int:
    """The length of the first observation of a task."""
    return len(env.reset(seed=seed, options={"task": task.id})[0])


def _tasks(
    env: TextEnv, count: int | None, split: str | None, groups: Sequence[str] | None, rng: np.random.Generator
) -> Iterator[Task]:
    """Every task once in random order, or an endless draw of which the caller takes `count`."""
    if count is None:
        tasks = env.tasks.take(split=split, groups=groups)
        yield from (tasks[place] for place in rng.permutation(len(tasks)))
    while count is not None:
        yield env.tasks.draw(int(rng.integers(2**63)), split=split, groups=groups)


def _row(task: Task, seed: int, env: str) -> dict[str, Any]:
    prompt = prompt_of(task.id, seed, task.goal, env)
    return {"prompt": prompt, "task": task.id, "group": task.group, "seed": seed, "env": env}
