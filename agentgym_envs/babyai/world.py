"""`GridWorld`: a running level. Rooms, missions, steps and verification are minigrid's; its observations are not used.

Source: minigrid 3.2 (https://github.com/Farama-Foundation/Minigrid), after BabyAI (arXiv 1810.08272).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cache, lru_cache, partial
from itertools import count as counting
from typing import Any, NamedTuple

import numpy as np

from agentgym_envs.babyai.levels import blank_level

Thing = Any
"""A `minigrid.core.world_object.WorldObj` that is not a wall, with a unique number in `serial`."""
AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""The (x, y) offset of each direction: right, down, left, up."""
INSTRUCTION_PARTS = ("instr_a", "instr_b")
DESCRIPTIONS = ("desc", "desc_move", "desc_fixed")
"""Attributes of a clause that may hold descriptions of objects."""
_MOST_PLACEMENTS = 10_000


class GridAction(IntEnum):
    """BabyAI's seven primitive actions; `DONE` only takes a step."""

    LEFT = 0
    RIGHT = 1
    FORWARD = 2
    PICKUP = 3
    DROP = 4
    TOGGLE = 5
    DONE = 6


class StepOutcome(NamedTuple):
    """The outcome of a primitive action. `reward` is minigrid's; `terminated` means success if it is above 0."""

    reward: float
    terminated: bool
    truncated: bool


class GridWorld:
    """A level generated from a seed. Positions are (x, y) with (0, 0) at the upper left."""

    __slots__ = ("level", "levelname", "seed")

    def __init__(self, levelname: str, seed: int, level: Any) -> None:
        self.levelname, self.seed, self.level = levelname, seed, level

    @property
    def mission(self) -> str:
        """The goal, in BabyAI's language."""
        return str(self.level.mission)

    @property
    def position(self) -> tuple[int, int]:
        """The position of the agent."""
        x, y = self.level.agent_pos
        return int(x), int(y)

    @property
    def direction(self) -> int:
        """The direction of the agent: an index into `AHEAD`."""
        return int(self.level.agent_dir)

    @property
    def carrying(self) -> Thing | None:
        """The object that the agent carries."""
        return self.level.carrying

    @property
    def steps(self) -> int:
        """The number of primitive actions taken."""
        return int(self.level.step_count)

    @property
    def max_steps(self) -> int:
        """The largest number of primitive actions."""
        return int(self.level.max_steps)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in cells."""
        return self.level.width, self.level.height

    @property
    def cells(self) -> list[Thing | None]:
        """The grid, row by row: None, a wall or a thing."""
        cells: list[Thing | None] = self.level.grid.grid
        return cells

    def at(self, x: int, y: int) -> Thing | None:
        """Return the content of a cell inside the grid."""
        return self.level.grid.grid[y * self.level.width + x]

    def in_front(self) -> Thing | None:
        """Return the content of the cell in front of the agent."""
        (x, y), (dx, dy) = self.position, AHEAD[self.direction]
        return self.at(x + dx, y + dy)

    def step(self, action: int) -> StepOutcome:
        """Take a primitive action and verify the mission."""
        if action == GridAction.DROP:
            self.level.update_objs_poss = partial(_track, self.level)
        _, reward, terminated, truncated, _ = self.level.step(action)
        self.level.__dict__.pop("update_objs_poss", None)  # a copy would update the positions of this level
        return StepOutcome(float(reward), bool(terminated), bool(truncated))

    def run(self, actions: Sequence[int]) -> StepOutcome:
        """Take primitive actions, at least one, until the episode ends. Returns the last outcome."""
        for action in actions:
            outcome = self.step(action)
            if outcome.terminated or outcome.truncated:
                break
        return outcome

    def copy(self) -> GridWorld:
        """Return an independent world in the same state."""
        level, clones = _shallow(self.level), dict[int, Thing]()
        level.grid = _shallow(self.level.grid)
        level.grid.grid = [
            cell if cell is None or cell.type == "wall" else _clone(cell, clones) for cell in self.level.grid.grid
        ]
        level.carrying = None if level.carrying is None else _clone(level.carrying, clones)
        level.instrs = _clone_instruction(self.level.instrs, level, clones)
        return GridWorld(self.levelname, self.seed, level)

    def copy_agent(self) -> GridWorld:
        """Return a copy that shares all objects with this world: for steps that only turn and walk."""
        level = _shallow(self.level)
        level.instrs = _share_instruction(self.level.instrs, level)
        return GridWorld(self.levelname, self.seed, level)

    def things(self) -> Iterator[tuple[int, int, Thing]]:
        """Yield every object in the grid, row by row, as (x, y, thing)."""
        width = self.level.width
        for number, thing in enumerate(self.level.grid.grid):
            if thing is not None and thing.type != "wall":
                yield number % width, number // width, thing

    def image(self, tile: int = 32) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return minigrid's image, (height * tile, width * tile, 3), with the agent's field of view highlighted."""
        image: np.ndarray[Any, np.dtype[np.uint8]] = self.level.get_frame(highlight=True, tile_size=tile)
        return image

    def describe_things(self) -> str:
        """Describe all objects, equally for equal states: the part of `state_key` without the agent."""
        held = "" if self.carrying is None else self.carrying.serial
        placed = [f"{x},{y}:{thing.serial}{_doorstate(thing)}" for x, y, thing in self.things()]
        return f"{held} {' '.join(placed)}"

    def progress(self) -> str:
        """Describe the fulfilled clauses of the mission and the rest of the verifier's state."""
        return _progress(self.level.instrs)


def make_world(levelname: str, seed: int) -> GridWorld:
    """Generate the world of a level and a seed (0 to 2**32 - 1), which is always the same for a version of minigrid."""
    return generated_world(levelname, seed).copy()


@lru_cache(maxsize=64)
def generated_world(levelname: str, seed: int) -> GridWorld:
    """Return the same world, shared and read-only. It is cached because groups of episodes start in the same world."""
    level = copy.copy(blank_level(levelname))
    level.gen_obs = _no_observation
    level._gen_grid = partial(_generate_quietly, level)
    level.reset(seed=seed)
    del level._gen_grid  # otherwise every copy would hold a reference to this level
    level.grid.grid = [_wall() if cell is not None and cell.type == "wall" else cell for cell in level.grid.grid]
    world = GridWorld(levelname, seed, level)
    _number(world)
    return world


@cache
def _wall() -> Any:
    """Return the wall that all worlds share: hundreds of wall objects per world would slow the garbage collector."""
    from minigrid.core.world_object import Wall

    return Wall()


def _no_observation() -> None:
    """Replaces minigrid's `gen_obs`, which takes nine tenths of the time of a step."""


def _generate_quietly(level: Any, width: int, height: int) -> None:
    """Generate a level like `RoomGridLevel._gen_grid`, which prints each mission that it rejects.

    The original also loops for ever if there is no free cell for the agent, as in SynthS5R2 with seed 9736. Here such a
    mission is rejected.
    """
    from minigrid.core.roomgrid import RoomGrid
    from minigrid.envs.babyai.core.roomgrid_level import RejectSampling

    while True:
        level.place_obj = _bounded(partial(type(level).place_obj, level))
        try:
            RoomGrid._gen_grid(level, width, height)  # type: ignore[no-untyped-call]
            level.gen_mission()
            level.validate_instrs(level.instrs)
            break
        except (RejectSampling, RecursionError):
            continue
    del level.place_obj
    level.surface = level.mission = level.instrs.surface(level)


def _bounded(generate: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `generate` so that it raises RecursionError after more calls than any mission needs."""
    calls = counting()

    def place_or_give_up(*arguments: Any, **options: Any) -> Any:
        if next(calls) > _MOST_PLACEMENTS:
            raise RecursionError("there is no room for everything")
        return generate(*arguments, **options)

    return place_or_give_up


def _track(level: Any) -> None:
    """Replaces minigrid's `update_objs_poss`, which visits each cell of the grid with several calls."""
    cells, width = level.grid.grid, level.width
    for description in _descriptions(level.instrs):
        wanted = {id(thing) for thing in description.obj_set}
        found = [divmod(number, width) for number, cell in enumerate(cells) if id(cell) in wanted]
        description.obj_poss = sorted((x, y) for y, x in found)


def _descriptions(instruction: Any) -> Iterator[Any]:
    """Yield the descriptions of objects in a mission."""
    for part in INSTRUCTION_PARTS:
        if hasattr(instruction, part):
            yield from _descriptions(getattr(instruction, part))
    for name in DESCRIPTIONS:
        if hasattr(instruction, name):
            yield getattr(instruction, name)


def _number(world: GridWorld) -> None:
    """Number all objects; copies keep the number. An object in a box comes after its box."""
    serial = 0
    carried = [] if world.carrying is None else [world.carrying]
    for thing in [*(thing for _, _, thing in world.things()), *carried]:
        while thing is not None:
            thing.serial = serial
            serial, thing = serial + 1, thing.contains


def _doorstate(thing: Thing) -> str:
    if thing.type != "door":
        return ""
    return "o" if thing.is_open else "l" if thing.is_locked else "c"


def _progress(instruction: Any) -> str:
    if hasattr(instruction, "instr_a"):
        done = ["+" if part == "success" else "-" for part in (instruction.a_done, instruction.b_done)]
        return f"({''.join(done)} {_progress(instruction.instr_a)} {_progress(instruction.instr_b)})"
    held = getattr(instruction, "preCarrying", None)
    positions = [getattr(instruction, name).obj_poss for name in DESCRIPTIONS if hasattr(instruction, name)]
    return f"{'' if held is None else held.serial}{positions}"  # the positions as of the last drop


def _clone(thing: Thing, clones: dict[int, Thing]) -> Thing:
    if thing.type == "wall":  # walls match a mission's "a grey object"
        return _wall()
    found = clones.get(id(thing))
    if found is None:
        found = clones[id(thing)] = _shallow(thing)
        if thing.contains is not None:
            found.contains = _clone(thing.contains, clones)
    return found


def _clone_instruction(instruction: Any, level: Any, clones: dict[int, Thing]) -> Any:
    clone = _shallow(instruction)
    clone.env = level
    for part in INSTRUCTION_PARTS:
        if hasattr(clone, part):
            setattr(clone, part, _clone_instruction(getattr(clone, part), level, clones))
    for name in DESCRIPTIONS:
        if hasattr(clone, name):
            setattr(clone, name, _clone_description(getattr(clone, name), clones))
    if getattr(clone, "preCarrying", None) is not None:
        clone.preCarrying = _clone(clone.preCarrying, clones)
    return clone


def _share_instruction(instruction: Any, level: Any) -> Any:
    """Clone the verifier's state, but not the objects of the mission."""
    clone = _shallow(instruction)
    clone.env = level
    for part in INSTRUCTION_PARTS:
        if hasattr(clone, part):
            setattr(clone, part, _share_instruction(getattr(clone, part), level))
    return clone


def _clone_description(description: Any, clones: dict[int, Thing]) -> Any:
    clone = _shallow(description)
    clone.obj_set = [_clone(thing, clones) for thing in description.obj_set]
    clone.obj_poss = list(description.obj_poss)
    return clone


def _shallow(thing: Any) -> Any:
    """Copy an object with a `__dict__`, four times as fast as `copy.copy`."""
    clone = object.__new__(type(thing))
    clone.__dict__.update(thing.__dict__)
    return clone
