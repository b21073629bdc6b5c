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
    """The tasks that `draw_from` draws of `env`.

    Columns: `prompt` (what `make_rollout_func` reads), `task`, `group`, `seed`, `env`.

    Raises:
        UsageError: as `draw_from`.
    """
    return as_dataset(
        draw_from(env, count, split=split, groups=groups, seed=seed, max_prompt_chars=max_prompt_chars, name=name)
    )


def as_dataset(drawn: Sequence[DrawnTask]) -> Any:
    """A row for each task that was drawn, as by `draw_tasks` of several environments; columns as in `make_dataset`."""
    return Dataset.from_list([_row(one) for one in drawn])


def _row(one: DrawnTask) -> dict[str, Any]:
    prompt = prompt_of(one.task.id, one.seed, one.task.goal, one.env)
    return {"prompt": prompt, "task": one.task.id, "group": one.task.group, "seed": one.seed, "env": one.env}
