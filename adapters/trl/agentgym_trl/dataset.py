"""Datasets of tasks for TRL: one row is one group of episodes (same task, same seed)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from datasets import Dataset, concatenate_datasets

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.task import Task
from agentgym_trl.columns import prompt_of

_TRIES = 10_000


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

    A table gives every task once before it gives one again, with a new seed, so that other distractors are drawn; a
    set without end is drawn from. Tasks whose first observation is longer than `max_prompt_chars` characters are left
    out. `name` is the environment's among those that a run makes by name.
    Columns: `prompt` (what `make_rollout_func` reads), `task`, `group`, `seed`, `env`.

    Raises:
        UsageError: `count` is less than 1, or None for a set without end, or every prompt is too long.
    """
    _check_count(count, 1)
    rng = np.random.default_rng(seed)
    drawn = ((task, int(rng.integers(2**31))) for task in _tasks(env, count, split, groups, rng))
    kept = drawn if max_prompt_chars is None else _short(env, drawn, max_prompt_chars)
    rows = [_row(task, task_seed, name) for task, task_seed in islice(kept, count)]
    if not rows:
        raise UsageError(f"no task has a prompt of at most {max_prompt_chars} characters")
    return Dataset.from_list(rows)


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
    """`count` tasks of one environment or several, in proportion to `weights` and at least one of each, shuffled.

    If `count` is None, every task of every table is there at least once; sets without end give `enough` rows, or
    their share of what the tables need. With several environments, those that know none of `groups` give all of theirs.

    Raises:
        UsageError: no environment knows one of the groups, or `count` is less than the number of environments.
    """
    chosen = _chosen_groups(envs, groups)
    tables = {name: _table(env, split, chosen[name]) for name, env in envs.items()}
    rows = _rows({name: weights[name] for name in envs}, {n: len(t) for n, t in tables.items() if t}, count, enough)
    parts = [
        make_dataset(env, rows[name], split=split, groups=chosen[name], seed=seed + number, name=name)
        for number, (name, env) in enumerate(envs.items())
    ]
    return concatenate_datasets(parts).shuffle(seed=seed) if len(parts) > 1 else parts[0]


def _rows(weights: Mapping[str, float], sizes: Mapping[str, int], count: int | None, enough: int) -> dict[str, int]:
    """How many rows each environment gives; `sizes` are those of the tables."""
    shares = {name: weight / sum(weights.values()) for name, weight in weights.items()}
    if count is None:
        count = math.ceil(max((size / shares[name] for name, size in sizes.items()), default=enough) - 1e-6)
        return {name: max(1, math.ceil(count * share - 1e-6)) for name, share in shares.items()}
    _check_count(count, len(shares))
    rows = dict.fromkeys(shares, 1)
    for _ in range(count - len(rows)):  # the next row goes to the one that is furthest behind (Sainte-Lague)
        rows[max(rows, key=lambda name: shares[name] / (2 * rows[name] + 1))] += 1
    return rows


def _check_count(count: int | None, environments: int) -> None:
    if count is not None and count < environments:
        each = f", since each of {environments} environments gives one" if environments > 1 else ""
        raise UsageError(f"tasks to train on must be at least {environments}{each}; got {count}")


def _table(env: TextEnv, split: str | None, groups: Sequence[str] | None) -> list[Task] | None:
    """All tasks of that kind, None if the set has no end. Raises UnknownTask."""
    try:
        return env.tasks.take(split=split, groups=groups)
    except UnknownTask:
        raise
    except UsageError:
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
    """Every task once in random order; if a count is wanted, without end: again and again, or drawn from a set."""
    table = env.tasks.take(split=split, groups=groups) if count is None else _table(env, split, groups)
    while table is None:
        yield env.tasks.draw(int(rng.integers(2**63)), split=split, groups=groups)
    yield from (table[place] for place in rng.permutation(len(table)))
    while count is not None:
        yield from (table[place] for place in rng.permutation(len(table)))


def _short(env: TextEnv, drawn: Iterator[tuple[Task, int]], limit: int) -> Iterator[tuple[Task, int]]:
    """Those with short prompts. Raises UsageError if there are none, since looking for them would never end."""
    missed = 0
    for task, seed in drawn:
        if prompt_chars(env, task, seed) <= limit:
            missed = 0
            yield task, seed
        elif (missed := missed + 1) == _TRIES:
            raise UsageError(f"of {_TRIES} tasks in a row none has a prompt of at most {limit} characters")


def _row(task: Task, seed: int, env: str) -> dict[str, Any]:
    prompt = prompt_of(task.id, seed, task.goal, env)
    return {"prompt": prompt, "task": task.id, "group": task.group, "seed": seed, "env": env}
