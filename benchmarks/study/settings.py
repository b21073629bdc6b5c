"""The numbers of the study. `docs/study.md` explains how they were chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym

from agentgym_envs.errors import UsageError
from benchmarks.study import links
from benchmarks.study.recipes import DEPTHS, RECIPES

HORIZONS = ("short", "long", "scalinginter")
"""The limits of the GPU part."""
STARTS = ("all lengths", "short only")
"""The warm starts, by the distances to the goal in their demonstrations."""


FIRST_SEED = 101
"""Seeds below it are pilots and are evaluated on other tasks."""
GOALS = {"textcraft": 75, "babyai": 75, "search": 55}
"""The success in per cent that "tokens to" is about, chosen on pilot seeds."""
PAIRS = (
    ("growing", "short"),
    ("growing", "middle"),
    ("growing", "long"),
    ("growing", "very long"),
    ("growing, gated", "growing"),
)
"""The comparisons that were planned before the runs."""


class Kind(NamedTuple):
    """Tasks of a group by the number of turns of the oracle; about one in `draws` tasks of the group has it."""

    group: str
    turns: int
    draws: int = 1
    is_short: bool = False
    """True if the warm start "short only" has seen such tasks."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"{self.turns} turns"


@dataclass(frozen=True, slots=True)
class StudySettings:
    """One scenario: kinds of tasks with different distances to the goal, as many of each, and how they are learned.

    `budget` and what ends with `tokens` count a small model's tokens. Counts of tasks and demonstrations are for each
    kind. `tasks` are played in this order, the same for all arms, and from the beginning again if they do not suffice.
    The teacher of the warm starts wastes a share `idle` of its turns.
    """

    scenario: str
    env_id: str
    kinds: tuple[Kind, ...]
    env_kwargs: Mapping[str, Any]
    env_files: Callable[[], Mapping[str, Any]] = dict
    """More options of the environment, which are files or made from files; not recorded."""
    eval_split: str = "test"
    pilot_split: str = "validation"
    seed: int = 0
    short: int = 4
    middle: int = 8
    long: int = 12
    very_long: int = 20
    budget: int = 160_000
    marks: int = 4
    idle: float = 0.5
    teacher_turns: int = 40
    demonstrations: int = 150
    warm_steps: int = 1000
    warm_batch: int = 8
    warm_learning_rate: float = 4e-3
    hidden_size: int = 64
    layers: int = 2
    heads: int = 2
    embedding_std: float = 0.2
    tasks: int = 150
    tasks_per_step: int = 12
    group_size: int = 8
    micro_batch: int = 96
    learning_rate: float = 1e-3
    max_tokens: int = 512
    max_turn_tokens: int = 24
    max_prompt_chars: int | None = None
    eval_tasks: int = 60
    save_steps: int = 20

    @property
    def make(self) -> Any:
        """Makes an environment."""
        return partial(gym.make, self.env_id, **self.env_kwargs, **self.env_files())

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the tasks are drawn from."""
        return tuple(dict.fromkeys(kind.group for kind in self.kinds))

    @property
    def limits(self) -> tuple[int, ...]:
        """The turn limits within which success is reported."""
        return self.short, self.middle, self.long, self.very_long


TEXTCRAFT = StudySettings(
    "textcraft",
    "AgentGym/TextCraft-v0",
    tuple(Kind(f"depth-{d}", d + 1, is_short=d < 4) for d in DEPTHS),
    {"max_distractors": 2, "instructions": ""},
    lambda: {"recipe_table": str(RECIPES)},
    eval_split="train",  # known goals in new prompts
    pilot_split="train",
)
BABYAI = StudySettings(
    "babyai",
    "AgentGym/BabyAI-v0",
    (
        Kind("GoTo", 2, draws=4, is_short=True),
        Kind("Unlock", 4, draws=14, is_short=True),
        Kind("Unlock", 6, draws=10),
        Kind("Unlock", 8, draws=18),
    ),
    {"levels": ["GoToObj", "UnlockLocal", "UnlockPickup"], "instructions": ""},
    max_tokens=4096,
    max_turn_tokens=16,
)
SEARCH = StudySettings(
    "search",
    "AgentGym/Search-v0",
    tuple(Kind(f"links-{distance}", distance, is_short=distance <= 4) for distance in links.DISTANCES),
    {"top_k": 1, "format": "plain", "instructions": ""},
    lambda: {"questions": links.questions(), "index": links.index()},
    max_tokens=1024,
)
SCENARIOS = {settings.scenario: settings for settings in (TEXTCRAFT, BABYAI, SEARCH)}


def choose(names: Sequence[str] | None, changes: Mapping[str, Any]) -> list[StudySettings]:
    """The scenarios of these names (all by default) with other values for some settings. Raises UsageError."""
    fixed = ("scenario", "env_id", "kinds", "env_kwargs", "env_files", "seed")
    known = [one.name for one in fields(StudySettings) if one.name not in fixed]
    if wrong := [name for name in changes if name not in known]:
        raise UsageError(f"--set changes {', '.join(wrong)}, which it cannot; it can change {', '.join(known)}")
    return [replace(SCENARIOS[name], **changes) for name in names or SCENARIOS]


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """One scenario for a chat model: the options of `agentgym train` and `agentgym eval` that differ."""

    scenario: str
    env_id: str
    groups: tuple[str, ...]
    max_turns: Mapping[str, str]
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    every: int = 20
    demonstrations: int = 400
    warm_steps: int = 150
    max_tokens: int = 1024
    max_turn_tokens: int = 48
    eval_tasks: int = 60


GPU = {
    settings.scenario: settings
    for settings in (
        GpuSettings(
            "textcraft",
            "AgentGym/TextCraft-v0",
            ("depth-1", "depth-2"),
            {"short": "4", "long": "10", "scalinginter": "4,7,10"},
            {"max_distractors": 4},
        ),
        GpuSettings(
            "babyai",
            "AgentGym/BabyAI-v0",
            ("GoTo", "Unlock"),
            {"short": "3", "long": "8", "scalinginter": "3,5,8"},
            {"levels": ["GoToObj", "UnlockLocal"]},
            max_tokens=2048,
            max_turn_tokens=24,
        ),
        GpuSettings(
            "search",
            "AgentGym/Search-v0",
            ("1hop-country", "1hop-airport", "1hop-element"),
            {"short": "2", "long": "5", "scalinginter": "2,3,5"},
            {"top_k": 1, "max_chars": 600},
            max_tokens=1536,
            max_turn_tokens=64,
        ),
    )
}
