"""Datasets of tasks for TRL: one row is one group of episodes (same task, same seed)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from agentgym_envs.core import TextEnv
from agentgym_envs.rollout.mixture import DrawnTask, draw_from
from agentgym_trl.trl_format import prompt_of


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
    """A dataset of `count` tasks of `env`, in an order that depends on `seed`. Without `count`, every task once.

    Columns: `prompt` (read by `make_rollout_func`), `task`, `group`, `seed`, `env`.

    Args:
        env: the unwrapped environment, as in `gym.make(id).unwrapped`.
        count: number of rows. A table repeats its tasks, with new seeds, once all were drawn.
        split: split of the tasks; None for all splits.
        groups: groups of the tasks; None for all groups.
        seed: seed of the draw.
        max_prompt_chars: skip tasks whose first observation is longer.
        name: name of the environment in a run with several.

    Raises:
        UsageError: `count` is below 1, or missing for an unlimited set of tasks, or every prompt is too long.
    """
    return as_dataset(
        draw_from(env, count, split=split, groups=groups, seed=seed, max_prompt_chars=max_prompt_chars, name=name)
    )


def as_dataset(drawn: Sequence[DrawnTask]) -> Any:
    """One row per drawn task, for example from `draw_tasks` with several environments; columns as in `make_dataset`."""
    return Dataset.from_list([_row(item) for item in drawn])


def _row(item: DrawnTask) -> dict[str, Any]:
    prompt = prompt_of(item.task.id, item.seed, item.task.goal, item.env)
    return {"prompt": prompt, "task": item.task.id, "group": item.task.group, "seed": item.seed, "env": item.env}
