"""`World`: a level in play. Rooms, missions, steps and verification are minigrid's; its observations are left out.

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
"""A `minigrid.core.world_object.WorldObj` that is not a wall, with its number in `serial`."""
AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Where a direction leads: right, down, left, up."""
_INSTRUCTION_PARTS = ("instr_a", "instr_b")
DESCRIPTIONS = ("desc", "desc_move", "desc_fixed")
"""Where a clause of a mission holds its descriptions of things, as far as it has them."""
_MOST_PLACEMENTS = 10_000


class Action(IntEnum):
    """BabyAI's seven primitive actions; `DONE` does nothing but takes a step."""

    LEFT = 0
    RIGHT = 1
    FORWARD = 2
    PICKUP = 3
    DROP = 4
    TOGGLE = 5
    DONE = 6


class Outcome(NamedTuple):
    """What a primitive action led to. `reward` is minigrid's; `terminated` is success if it is above 0."""

    reward: float
    terminated: bool
    truncated: bool


class World:
    """A level that was generated from a seed. Positions are (x, y) with (0, 0) at the upper left."""

    __slots__ = ("level", "levelname", "seed")

    def __init__(self, levelname: str, seed: int, level: Any) -> None:
        self.levelname, self.seed, self.level = levelname, seed, level

    @property
    def mission(self) -> str:
        """The goal, in BabyAI's language."""
        return str(self.level.mission)

    @property
    def position(self) -> tuple[int, int]:
        """Where the agent stands."""
        x, y = self.level.agent_pos
        return int(x), int(y)

    @property
    def direction(self) -> int:
        """Where the agent looks: an index into `AHEAD`."""
        return int(self.level.agent_dir)

    @property
    def carrying(self) -> Thing | None:
        """What the agent holds."""
        return self.level.carrying

    @property
    def steps(self) -> int:
        """How many primitive actions were taken."""
        return int(self.level.step_count)

    @property
    def max_steps(self) -> int:
        """How many primitive actions may be taken."""
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
        """What lies at a cell inside the grid."""
        return self.level.grid.grid[y * self.level.width + x]

    def in_front(self) -> Thing | None:
        """What lies right before the agent."""
        (x, y), (dx, dy) = self.position, AHEAD[self.direction]
        return self.at(x + dx, y + dy)

    def step(self, action: int) -> Outcome:
        """Take a primitive action and let the mission's verifier look at it."""
        _, reward, terminated, truncated, _ = self.level.step(action)
        return Outcome(float(reward), bool(terminated), bool(truncated))

    def take(self, actions: Sequence[int]) -> Outcome:
        """Take primitive actions, at least one, until the episode ends; the last one's outcome."""
        for action in actions:
            outcome = self.step(action)
            if outcome.terminated or outcome.truncated:
                break
        return outcome

    def copy(self) -> World:
        """A world of its own in the same state."""
        level, clones = _shallow(self.level), dict[int, Thing]()
        level.grid = _shallow(self.level.grid)
        level.grid.grid = [
            cell if cell is None or cell.type == "wall" else _clone(cell, clones) for cell in self.level.grid.grid
        ]
        level.carrying = None if level.carrying is None else _clone(level.carrying, clones)
        level.instrs = _clone_instruction(self.level.instrs, level, clones)
        return World(self.levelname, self.seed, level)

    def things(self) -> Iterator[tuple[int, int, Thing]]:
        """Every thing that lies somewhere, row by row, as (x, y, thing)."""
        width = self.level.width
        for place, cell in enumerate(self.level.grid.grid):
            if cell is not None and cell.type != "wall":
                yield place % width, place // width, cell

    def picture(self, tile: int = 32) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The picture that minigrid draws, (height * tile, width * tile, 3), with the agent's field of view lit."""
        picture: np.ndarray[Any, np.dtype[np.uint8]] = self.level.get_frame(highlight=True, tile_size=tile)
        return picture

    def describe_things(self) -> str:
        """Where every thing is and how, equal for equal states: what `state_key` is made of, but for the agent."""
        held = "" if self.carrying is None else self.carrying.serial
        lie = [f"{x},{y}:{thing.serial}{_doorstate(thing)}" for x, y, thing in self.things()]
        return f"{held} {' '.join(lie)}"

    def progress(self) -> str:
        """Which clauses of the mission are fulfilled, and what else its verifier remembers."""
        return _progress(self.level.instrs)


def make_world(levelname: str, seed: int) -> World:
    """The world of a level and a seed (0 to 2**32 - 1): the same on every machine for one version of minigrid."""
    return generated_world(levelname, seed).copy()


@lru_cache(maxsize=64)
def generated_world(levelname: str, seed: int) -> World:
    """The same, to look at only: it is kept, since groups of episodes begin in the same one."""
    level = copy.copy(blank_level(levelname))
    level.gen_obs = _see_nothing
    level._gen_grid = partial(_generate_quietly, level)
    level.reset(seed=seed)
    del level._gen_grid  # it would keep a reference to this level in every copy
    level.grid.grid = [_wall() if cell is not None and cell.type == "wall" else cell for cell in level.grid.grid]
    world = World(levelname, seed, level)
    _number(world)
    return world


@cache
def _wall() -> Any:
    """The wall that all worlds share: a world of hundreds of objects is a burden on the garbage collector."""
    from minigrid.core.world_object import Wall

    return Wall()


def _see_nothing() -> None:
    """Stands for minigrid's `gen_obs`, which takes nine tenths of a step."""


def _generate_quietly(level: Any, width: int, height: int) -> None:
    """What `RoomGridLevel._gen_grid` does, which prints each mission that it rejects.

    It also looks for ever for a place for the agent where all places are taken, as in SynthS5R2 with seed 9736. Here
    that is a reason to reject a mission.
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


def _bounded(place: Callable[..., Any]) -> Callable[..., Any]:
    """`place`, which raises RecursionError from a number of calls on that no mission needs."""
    calls = counting()

    def place_or_give_up(*arguments: Any, **options: Any) -> Any:
        if next(calls) > _MOST_PLACEMENTS:
            raise RecursionError("there is no room for everything")
        return place(*arguments, **options)

    return place_or_give_up


def _number(world: World) -> None:
    """Give every thing its number, which its copies keep; a thing in a box comes after its box."""
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
    places = [getattr(instruction, name).obj_poss for name in DESCRIPTIONS if hasattr(instruction, name)]
    return f"{'' if held is None else held.serial}{places}"  # the places are as of the last drop


def _clone(thing: Thing, clones: dict[int, Thing]) -> Thing:
    if thing.type == "wall":  # a mission on "a grey object" counts the walls among them
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
    for part in _INSTRUCTION_PARTS:
        if hasattr(clone, part):
            setattr(clone, part, _clone_instruction(getattr(clone, part), level, clones))
    for name in DESCRIPTIONS:
        if hasattr(clone, name):
            setattr(clone, name, _clone_description(getattr(clone, name), clones))
    if getattr(clone, "preCarrying", None) is not None:
        clone.preCarrying = _clone(clone.preCarrying, clones)
    return clone


def _clone_description(description: Any, clones: dict[int, Thing]) -> Any:
    clone = _shallow(description)
    clone.obj_set = [_clone(thing, clones) for thing in description.obj_set]
    clone.obj_poss = list(description.obj_poss)
    return clone


def _shallow(thing: Any) -> Any:
    """`copy.copy` of an object with a `__dict__`, at a quarter of its cost."""
    clone = object.__new__(type(thing))
    clone.__dict__.update(thing.__dict__)
    return clone
