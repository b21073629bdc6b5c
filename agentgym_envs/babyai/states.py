"""States of a search: worlds that share everything but the agent's pose, so that a walk costs arithmetic and no copy.

Only for missions with one clause. There a step that turns or walks changes the pose, ends a mission to go to
something, and lets the verifier note the carried object; nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.babyai.pathfinding import advance, faced_cell, pose_of, strides
from agentgym_envs.babyai.text_view import ObjectNames, TextView
from agentgym_envs.babyai.world import GridAction, GridWorld

MOVES_THINGS = frozenset({GridAction.PICKUP, GridAction.DROP, GridAction.TOGGLE})


class Arrangement:
    """All objects, the carried one, and the verifier's state: a state without the pose of the agent."""

    __slots__ = ("effects", "goals", "strides", "things", "views", "walked", "world")

    def __init__(self, world: GridWorld, things: str) -> None:
        """Take a world that nothing else changes, and its `describe_things`."""
        self.world, self.things, self.strides = world, things, strides(world)
        self.goals = _goals(world)
        self.walked: Arrangement | None = None
        self.effects: dict[tuple[int, tuple[GridAction, ...]], Reached] = {}
        self.views: dict[int, TextView] = {}

    def view(self, pose: int, names: ObjectNames) -> TextView:
        """Return the text view from a pose. It is kept if it depends on nothing else."""
        if pose in self.views:
            return self.views[pose]
        place(self.world, pose)
        view = TextView(self.world, names, "macro")
        if names.numbering == "nearest":
            self.views[pose] = view
        return view


class Reached(NamedTuple):
    """The result of some actions: an arrangement and a pose, and how the episode ended if it did."""

    arrangement: Arrangement
    pose: int
    ended: bool = False
    success: bool = False


class States:
    """Arrangements that were reached from the same start; equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Arrangement] = {}

    def __len__(self) -> int:
        """The number of arrangements."""
        return len(self._known)

    def arrange(self, world: GridWorld, things: str | None = None) -> Arrangement:
        """Return the arrangement of a world that nothing else changes."""
        things = world.describe_things() if things is None else things
        key = things, world.progress()
        if key not in self._known:
            self._known[key] = Arrangement(world, things)
        return self._known[key]

    def run(self, arrangement: Arrangement, pose: int, plan: Sequence[GridAction]) -> Reached:
        """Take actions, at least one, until the episode ends. Nothing may block a walk before the first change."""
        for done, action in enumerate(plan):
            if action in MOVES_THINGS:
                return self._change(arrangement, pose, tuple(plan[done:]))
            pose = advance(pose, action, arrangement.strides)
            if faced_cell(pose, arrangement.strides) in arrangement.goals:
                return Reached(arrangement, pose, ended=True, success=True)
            arrangement = arrangement.walked or self._walk(arrangement)
        return Reached(arrangement, pose)

    def _walk(self, arrangement: Arrangement) -> Arrangement:
        """Return the arrangement after a step that moves nothing: the verifier has noted the carried object."""
        world = arrangement.world.copy_agent()
        world.step(GridAction.DONE)
        arrangement.walked = self.arrange(world, arrangement.things)
        return arrangement.walked

    def _change(self, arrangement: Arrangement, pose: int, actions: tuple[GridAction, ...]) -> Reached:
        """Take actions that begin with a change of an object or a door."""
        key = pose, actions
        if key not in arrangement.effects:
            world = arrangement.world.copy()
            place(world, pose)
            outcome = world.run(actions)
            success = outcome.terminated and outcome.reward > 0
            arrangement.effects[key] = Reached(self.arrange(world), pose_of(world), outcome.terminated, success)
        return arrangement.effects[key]


def place(world: GridWorld, pose: int) -> None:
    """Move the agent of a world."""
    y, x = divmod(pose >> 2, world.size[0])
    world.level.agent_pos, world.level.agent_dir = (x, y), pose & 3


def _goals(world: GridWorld) -> frozenset[int]:
    """Return the cells that complete a mission to go to something."""
    clause, width = world.level.instrs, world.size[0]
    if type(clause).__name__ != "GoToInstr":
        return frozenset()
    return frozenset(int(y) * width + int(x) for x, y in clause.desc.obj_poss)
