"""The numbers of the study. `docs/study.md` explains how they were chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym

from agentgym_envs.errors import UsageError

HORIZONS = ("short", "long", "scalinginter")
Stages = tuple[tuple[float, int], ...]
"""Shares of the token budget from which each turn limit applies."""


class Kind(NamedTuple):
    """Tasks of a group with a given oracle length; about one in `draws` tasks of the group has it."""

    name: str
    group: str
    minimum: int = 1
    maximum: int = 99
    draws: int = 3


@dataclass(frozen=True, slots=True)
class StudySettings:
    """One scenario: a short and a long kind of task, half of each, and how they are learned.

    `budget` and what ends with `tokens` count a small model's tokens: words, letter pairs, punctuation. Counts of
    tasks and demonstrations are for each kind. `tasks` are played in this order, the same for all horizons, and from
    the beginning again if they do not suffice.
    """

    scenario: str
    env_id: str
    kinds: tuple[Kind, ...]
    env_kwargs: Mapping[str, Any]
    seed: int = 0
    short: int = 3
    middle: int = 5
    long: int = 8
    budget: int = 200_000
    marks: int = 5
    demonstrations: int = 300
    warm_steps: int = 300
    warm_batch: int = 16
    warm_learning_rate: float = 3e-3
    tasks: int = 600
    tasks_per_step: int = 8
    group_size: int = 8
    micro_batch: int = 32
    learning_rate: float = 4e-4
    max_tokens: int = 512
    max_turn_tokens: int = 30
    max_prompt_chars: int = 260
    eval_tasks: int = 80
    save_steps: int = 20

    @property
    def make(self) -> Any:
        """Makes an environment."""
        return partial(gym.make, self.env_id, **self.env_kwargs)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the tasks are drawn from."""
        return tuple(dict.fromkeys(kind.group for kind in self.kinds))

    def stages(self, horizon: str) -> Stages:
        """The limits of turns of one of `HORIZONS`."""
        if horizon == "scalinginter":
            return ((0.0, self.short), (0.25, self.middle), (0.5, self.long))
        return ((0.0, self.short if horizon == "short" else self.long),)

    @property
    def limits(self) -> tuple[int, ...]:
        """The turn limits within which success is reported."""
        return self.short, self.middle, self.long


TEXTCRAFT = StudySettings(
    "textcraft",
    "AgentGym/TextCraft-v0",
    (Kind("one ingredient", "depth-1", 2, 2), Kind("two or three", "depth-1", 3, 4, draws=8)),
    {"worlds": "invented", "groups": ["depth-1"], "max_distractors": 0, "instructions": ""},
    short=2,
    middle=4,
    warm_steps=400,
)
BABYAI = StudySettings(
    "babyai",
    "AgentGym/BabyAI-v0",
    (Kind("GoTo", "GoTo"), Kind("Unlock", "Unlock")),
    {"levels": ["GoToObj", "UnlockLocal"], "instructions": ""},
    budget=20_000,  # an observation has ten times as many tokens as an answer
    demonstrations=100,
    warm_steps=120,
    tasks_per_step=6,
    micro_batch=24,
    max_tokens=1536,
    max_turn_tokens=16,
    max_prompt_chars=520,
    eval_tasks=50,
)
SCENARIOS = {settings.scenario: settings for settings in (TEXTCRAFT, BABYAI)}


def choose(names: Sequence[str] | None, changes: Mapping[str, Any]) -> list[StudySettings]:
    """The scenarios of these names (all by default) with other values for some settings. Raises UsageError."""
    fixed = ("scenario", "env_id", "kinds", "env_kwargs", "seed")
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
