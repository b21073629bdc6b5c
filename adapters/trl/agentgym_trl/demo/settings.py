"""The settings of the quick start. They were chosen on validation tasks and pilot seeds, not on test tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

RECIPES = Path(__file__).with_name("recipes.json")


class HeldOut(NamedTuple):
    """Tasks to evaluate on, by name. `split` is "train" for known tasks in new states, and None for the split asked."""

    name: str
    split: str | None
    size: int


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """The settings of one run; every arm of the comparison uses about the same CPU time.

    The teacher wastes a share of its turns (`waste_rate`) and its episodes may take `teacher_turns` turns. The agent is
    trained and evaluated with a tight limit, `max_turns`.
    """

    seed: int = 0
    depths: tuple[str, ...] = ("depth-2", "depth-3")
    hidden_size: int = 64
    layers: int = 2
    heads: int = 2
    embedding_std: float = 0.2
    closed_vocabulary: bool = True
    demonstrations: int = 300
    waste_rate: float = 0.75
    teacher_turns: int = 16
    warm_steps: int = 900
    warm_batch: int = 8
    warm_learning_rate: float = 4e-3
    steps: int = 40
    tasks_per_step: int = 12
    group_size: int = 8
    micro_batch: int = 96
    learning_rate: float = 1e-3
    max_turns: str = "6"
    every: int = 1000
    max_tokens: int = 256
    max_turn_tokens: int = 24
    max_prompt_chars: int | None = None
    imitation_steps: int = 850
    won_steps: int = 1300
    imitation_learning_rate: float = 1e-3
    evol_rounds: int = 3
    evol_tasks: int | None = None
    evol_episodes_per_task: int = 20
    evol_steps: int = 240
    eval_turns: int = 6
    eval_turn_tokens: int = 24
    eval_tokens: int = 512
    eval_tasks: int = 320

    @property
    def env_id(self) -> str:
        """The id of the environment."""
        return "AgentGym/TextCraft-v0"

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The groups of tasks."""
        return self.depths

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """A small recipe table with few words; without a system prompt, since the small model knows no English."""
        return {"recipe_table": str(RECIPES), "groups": self.groups, "max_distractors": 2, "instructions": ""}

    @property
    def held_out(self) -> tuple[HeldOut, ...]:
        """The sets of tasks to evaluate on, the most important one first."""
        return (
            HeldOut("known goals, new prompts", "train", self.eval_tasks),
            HeldOut("held-out goals", None, self.eval_tasks // 4),
        )


@dataclass(frozen=True, slots=True)
class BabyAISettings(DemoSettings):
    """A room with one object to go to: turn until it is in sight, then go to it. Every world is another one."""

    waste_rate: float = 0.7
    teacher_turns: int = 12
    warm_steps: int = 450
    steps: int = 30
    max_turns: str = "4"
    max_tokens: int = 768
    imitation_steps: int = 450
    won_steps: int = 950
    evol_steps: int = 190
    evol_tasks: int | None = 300
    evol_episodes_per_task: int = 1
    eval_turns: int = 4
    eval_tokens: int = 768

    @property
    def env_id(self) -> str:
        """The id of the environment."""
        return "AgentGym/BabyAI-v0"

    @property
    def groups(self) -> tuple[str, ...] | None:
        """All groups: the level belongs to one."""
        return None

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """One level, without a system prompt."""
        return {"levels": "GoToObj", "instructions": ""}

    @property
    def held_out(self) -> tuple[HeldOut, ...]:
        """Worlds that do not occur in training."""
        return (HeldOut("held-out worlds", None, self.eval_tasks),)


SCENARIOS: dict[str, type[DemoSettings]] = {"textcraft": DemoSettings, "babyai": BabyAISettings}


def quick(settings: DemoSettings) -> DemoSettings:
    """A short version: goals of depth 2 only, a tighter limit, fewer steps, and no AgentEvol."""
    return replace(
        settings,
        depths=("depth-2",),
        waste_rate=0.6,
        demonstrations=150,
        warm_steps=320,
        steps=18,
        tasks_per_step=10,
        micro_batch=80,
        max_turns="5",
        eval_turns=5,
        imitation_steps=160,
        won_steps=220,
        evol_rounds=0,
        eval_tasks=160,
    )
