"""The settings of the quick start, chosen on validation worlds and not on test worlds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

ENV_ID = "AgentGym/TextCraft-v0"
GROUPS = ("depth-1",)


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """The settings of one run. The small model's tokens are words and letter pairs; an action has about ten."""

    seed: int = 0
    demonstrations: int = 300
    warm_steps: int = 200
    warm_batch: int = 16
    warm_learning_rate: float = 3e-3
    steps: int = 110
    tasks_per_step: int = 16
    group_size: int = 8
    micro_batch: int = 32
    learning_rate: float = 4e-4
    max_turns: str = "3,4,6"
    every: int = 40
    max_tokens: int = 256
    max_turn_tokens: int = 30
    max_prompt_chars: int = 260
    eval_turns: int = 6
    eval_tokens: int = 512
    eval_turn_tokens: int = 56
    eval_worlds: int = 320
    real_samples: int = 4

    @property
    def env_id(self) -> str:
        """The id of the environment."""
        return ENV_ID

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of tasks."""
        return GROUPS

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Invented worlds: every item has a made-up name, a different one in each world, to prevent memorisation.

        Without a system prompt: the small model does not know English.
        """
        return {"worlds": "invented", "groups": self.groups, "max_distractors": 0, "instructions": ""}

    @property
    def real_env_kwargs(self) -> dict[str, Any]:
        """The same game with the real names, which do not occur in training."""
        return {**self.env_kwargs, "worlds": "real"}


def quick(settings: DemoSettings) -> DemoSettings:
    """A short version of all stages, for a first look and for CI; the model learns little."""
    return replace(
        settings,
        warm_steps=140,
        steps=6,
        tasks_per_step=4,
        max_turns="2,3",
        every=3,
        eval_worlds=32,
        real_samples=1,
    )
