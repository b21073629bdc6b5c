"""The table of environments. Adding a scenario is adding a row."""

from __future__ import annotations

from typing import NamedTuple

import gymnasium as gym


class Registration(NamedTuple):
    """One environment id."""

    id: str
    entry_point: str
    summary: str


REGISTRATIONS = (
    Registration("AgentGym/TextCraft-v0", "agentgym_envs.textcraft.env:TextCraftEnv", "craft an item from recipes"),
)


def env_ids() -> tuple[str, ...]:
    """Every id of this suite that `gym.make` knows."""
    return tuple(row.id for row in REGISTRATIONS)


def register_all() -> None:
    """Register every id with Gymnasium; doing so twice is fine.

    Gymnasium's passive checker and order enforcement are off: `TextEnv` refuses a step without a reset itself, and
    the two wrappers would cost more than a step.
    """
    for row in REGISTRATIONS:
        if row.id not in gym.registry:
            gym.register(row.id, row.entry_point, disable_env_checker=True, order_enforce=False)
