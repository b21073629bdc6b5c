"""Datasets of tasks for TRL: one row is one group of episodes (same task, same seed)."""

from __future__ import annotations

from collections.abc import Sequence
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
) -> Any:
    """`count` tasks of `env`, in an order that `seed` decides; every task once if `count` is None.

    More rows than a table has tasks repeat the tasks with new seeds, so that other distractors are drawn.
    Columns: `prompt` (what `make_rollout_func` reads), `task`, `group`, `seed`.
    """
    rng = np.random.default_rng(seed)
    tasks = _tasks(env, count, split, groups, rng)
    return Dataset.from_list([_row(task, int(rng.integers(2**31))) for task in tasks])


def _tasks(
    env: TextEnv, count: int | None, split: str | None, groups: Sequence[str] | None, rng: np.random.Generator
) -> list[Task]:
    if count is None:
        tasks = env.tasks.take(split=split, groups=groups)
        return [tasks[place] for place in rng.permutation(len(tasks))]
    tickets = rng.integers(2**63, size=count)
    return [env.tasks.draw(int(ticket), split=split, groups=groups) for ticket in tickets]


def _row(task: Task, seed: int) -> dict[str, Any]:
    return {"prompt": prompt_of(task.id, seed, task.goal), "task": task.id, "group": task.group, "seed": seed}
