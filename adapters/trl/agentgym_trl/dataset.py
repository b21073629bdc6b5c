"""Datasets of tasks for TRL: one row is one group of episodes (same task, same seed)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from datasets import Dataset

from agentgym_envs.core import TextEnv
from agentgym_envs.task import Task
from agentgym_trl.rollout import prompt_of


def make_dataset(
    env: TextEnv,
    count: int | None = None,
    *,
    split: str | None = "train",
    groups: Sequence[str] | None = None,
    seed: int = 0,
    max_prompt_chars: int | None = None,
) -> Any:
    """`count` tasks of `env`, in an order that `seed` decides; every task once if `count` is None.

    More rows than a table has tasks repeat the tasks with new seeds, so that other distractors are drawn. Tasks whose
    first observation is longer than `max_prompt_chars` characters are left out.
    Columns: `prompt` (what `make_rollout_func` reads), `task`, `group`, `seed`.
    """
    rng = np.random.default_rng(seed)
    drawn = ((task, int(rng.integers(2**31))) for task in _tasks(env, count, split, groups, rng))
    kept = ((t, s) for t, s in drawn if max_prompt_chars is None or prompt_chars(env, t, s) <= max_prompt_chars)
    return Dataset.from_list([_row(task, task_seed) for task, task_seed in islice(kept, count)])


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


def _row(task: Task, seed: int) -> dict[str, Any]:
    return {"prompt": prompt_of(task.id, seed, task.goal), "task": task.id, "group": task.group, "seed": seed}
