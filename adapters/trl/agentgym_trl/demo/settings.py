"""What the quick start does, in numbers. All were chosen on validation worlds; test worlds were only measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

ENV_ID = "AgentGym/TextCraft-v0"
GROUPS = ("depth-1",)


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """One run. Token numbers count a small model's words, of which an action has about six."""

    seed: int = 0
    demonstrations: int = 800
    warm_steps: int = 240
    warm_batch: int = 64
    warm_learning_rate: float = 3e-3
    steps: int = 120
    tasks_per_step: int = 8
    group_size: int = 8
    micro_batch: int = 16
    learning_rate: float = 2e-4
    rounds: str = "3,4,6,8"
    every: int = 30
    max_tokens: int = 224
    max_turn_tokens: int = 28
    eval_turns: int = 8
    eval_worlds: int = 320
    real_samples: int = 8

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Fictional worlds: every item goes by the name of another, so that names cannot be learned by heart.

        No system prompt: the small model is trained on the game alone and needs no rules in English.
        """
        return {"worlds": "fictional", "groups": GROUPS, "max_distractors": 0, "instructions": ""}

    @property
    def real_env_kwargs(self) -> dict[str, Any]:
        """The same game with the real names, which the agent never sees in training."""
        return {**self.env_kwargs, "worlds": "real"}


def quick(settings: DemoSettings) -> DemoSettings:
    """The same path in little: for a look, and for CI. Too short to learn much."""
    return replace(
        settings,
        demonstrations=200,
        warm_steps=40,
        warm_batch=32,
        steps=6,
        tasks_per_step=4,
        rounds="2,3",
        every=3,
        eval_worlds=32,
        real_samples=1,
    )
