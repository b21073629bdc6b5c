"""Rows of verl's datasets: one row per group of episodes (same task, same seed)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.registration import short_names
from agentgym_verl import AGENT_NAME


@dataclass(frozen=True, slots=True)
class TaskRow:
    """An environment with its arguments, a task and a seed; `evaluation` is true for validation."""

    env_id: str
    task: str
    seed: int
    group: str = ""
    split: str = "train"
    evaluation: bool = False
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    goal: str = ""

    def with_default_grammar(self, grammar: str) -> TaskRow:
        """The row with this grammar as an argument of its environment, unless it has one."""
        return replace(self, env_kwargs={"grammar": grammar, **self.env_kwargs})

    @property
    def kind(self) -> str:
        """A key of the environment and its arguments; episodes of one kind share environments."""
        return json.dumps([self.env_id, self.env_kwargs], sort_keys=True)

    def as_columns(self, index: int) -> dict[str, Any]:
        """The row of a parquet file, with the same fields for every environment.

        verl reports validation by `data_source`, which is the environment's short name. verl requires a `prompt`; the
        conversation itself starts with the environment's first observation.
        """
        return {
            "data_source": short_name(self.env_id),
            "agent_name": AGENT_NAME,
            "prompt": [{"role": "user", "content": self.goal or self.task}],
            "reward_model": {"style": "env", "ground_truth": ""},
            "extra_info": {
                "index": index,
                "env_id": self.env_id,
                "task": self.task,
                "seed": self.seed,
                "group": self.group,
                "split": self.split,
                "evaluation": self.evaluation,
                "env_kwargs": json.dumps(dict(self.env_kwargs), sort_keys=True),
            },
        }


def read_row(columns: Mapping[str, Any]) -> TaskRow:
    """Read the row that verl passes to an agent loop. Raises UsageError if `agentgym verl data` did not write it."""
    try:
        info = columns["extra_info"]
        return TaskRow(
            str(info["env_id"]),
            str(info["task"]),
            int(info["seed"]),
            str(info["group"]),
            str(info["split"]),
            bool(info["evaluation"]),
            dict(json.loads(info["env_kwargs"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"a row of the dataset is not of `agentgym verl data`: {type(error).__name__} {error} in extra_info"
        ) from None


def short_name(env_id: str) -> str:
    """`AgentGym/TextCraft-v0` as `TextCraft`."""
    return short_names([env_id])[env_id]
