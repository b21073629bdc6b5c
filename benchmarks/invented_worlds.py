"""The task of several benchmarks: TextCraft with made-up names, and a small model that spells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentgym_trl.demo.settings import DemoSettings, HeldOut


@dataclass(frozen=True, slots=True)
class InventedWorlds(DemoSettings):
    """A model of 0.6 million parameters, an attentive teacher, and goals of depth 1 in worlds of made-up names."""

    hidden_size: int = 128
    layers: int = 3
    heads: int = 4
    embedding_std: float = 0.05
    closed_vocabulary: bool = False
    waste_rate: float = 0.0
    teacher_turns: int = 1000
    warm_steps: int = 200
    warm_learning_rate: float = 3e-3
    steps: int = 110
    tasks_per_step: int = 16
    micro_batch: int = 32
    learning_rate: float = 4e-4
    max_turns: str = "3,4,6"
    every: int = 40
    max_turn_tokens: int = 30
    max_prompt_chars: int | None = 260
    eval_turn_tokens: int = 56

    @property
    def groups(self) -> tuple[str, ...] | None:
        """Goals that one craft makes."""
        return ("depth-1",)

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Every item has a made-up name, a different one in each world; no system prompt."""
        return {"worlds": "invented", "groups": self.groups, "max_distractors": 0, "instructions": ""}

    @property
    def held_out(self) -> tuple[HeldOut, ...]:
        """Worlds that do not occur in training."""
        return (HeldOut("held-out worlds", None, self.eval_tasks),)
