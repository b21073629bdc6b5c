"""The difficulty of BabyAI's tasks: the oracle's turns with macro actions, and counts in the first state."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from agentgym_envs.babyai.oracle import solve
from agentgym_envs.babyai.text_view import ObjectNames, TextView
from agentgym_envs.babyai.world import DESCRIPTIONS, INSTRUCTION_PARTS, GridWorld, make_world
from agentgym_envs.errors import NoOracle
from agentgym_envs.task import Difficulty

_MOVABLE = ("key", "ball", "box")


@lru_cache(maxsize=10_000)
def measure(level: str, seed: int) -> Difficulty | None:
    """Measure a world, in about a millisecond; None if the oracle does not solve it."""
    world, names = make_world(level, seed), ObjectNames("nearest")
    view = TextView(world, names, "macro")
    text = f"Your goal: {world.mission}\n{view.describe()}\n{view.offer()}"
    try:
        turns = len(solve(world, names, "macro"))
    except NoOracle:
        return None
    return Difficulty(turns, float(len(view.available)), _count_distractors(world), len(text))


def _count_distractors(world: GridWorld) -> int:
    """The number of objects in the world that no clause of the mission names."""
    named = {id(thing) for thing in _named(world.level.instrs)}
    return sum(cell is not None and cell.type in _MOVABLE and id(cell) not in named for cell in world.cells)


def _named(instruction: Any) -> Iterator[Any]:
    for part in INSTRUCTION_PARTS:
        if hasattr(instruction, part):
            yield from _named(getattr(instruction, part))
    for name in DESCRIPTIONS:
        if getattr(instruction, name, None) is not None:
            yield from getattr(instruction, name).obj_set
