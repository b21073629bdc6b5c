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
    """Draw tasks of `env` with `draw_from`, which documents the arguments.

    Columns: `prompt` (read by `make_rollout_func`), `task`, `group`, `seed`, `env`.

    Raises:
        UsageError: as `draw_from`.
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
