"""Why a mission cannot be fulfilled: proofs that hold whatever the agent does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agentgym_envs.babyai.pathfinding import pose_of, strides
from agentgym_envs.babyai.world import Thing, World

_FAILS_AT_ONCE = "to open the first door is a failure, as it is not the second one"
_AWAY = "what the mission asks for is gone, or behind locked doors without a key to them"


def hopeless(world: World) -> str:
    """Why no sequence of actions fulfils what is left of a mission; "" if that is not proven."""
    mission = world.level.instrs
    if _contradicts_itself(mission):
        return _FAILS_AT_ONCE
    if all(thing is None or thing.type != "door" or not thing.is_locked for thing in world.cells) and world.steps == 0:
        return ""
    reach = _Reach(world)
    return "" if all(reach.allows(clause) for clause in _left(mission)) else _AWAY


def _contradicts_itself(mission: Any) -> bool:
    """Whether two doors are to be opened in order and the second clause is strict.

    The toggle that fulfils the first clause is shown to the second one as well, and that one fails the mission unless
    the door is also its own.
    """
    kind = type(mission).__name__
    if kind not in ("BeforeInstr", "AfterInstr"):
        return False
    first, second = mission.instr_a, mission.instr_b
    if kind == "AfterInstr":
        first, second = second, first
    both_doors = type(first).__name__ == type(second).__name__ == "OpenInstr"
    return both_doors and second.strict and not any(door in first.desc.obj_set for door in second.desc.obj_set)


class _Reach:
    """What the agent could come to face if only walls and locked doors were in its way: at least all that it ever can.

    Every key that it could face, in a box or not, opens the doors of its colour.
    """

    def __init__(self, world: World) -> None:
        self.world, self.strides = world, strides(world)
        self.keys = set(_key_colors(world.carrying))
        self.touched = self._touch()
        while found := {color for cell in sorted(self.touched) for color in _key_colors(world.cells[cell])} - self.keys:
            self.keys |= found
            self.touched = self._touch()

    def allows(self, clause: Any) -> bool:
        """Whether nothing speaks against fulfilling a clause."""
        width = self.world.size[0]
        match type(clause).__name__:
            case "GoToInstr":
                places = {int(y) * width + int(x) for x, y in clause.desc.obj_poss}
                return not places.isdisjoint(self.touched) or self._any(clause.desc.obj_set)
            case "OpenInstr":
                return self._any(door for door in clause.desc.obj_set if not door.is_locked or door.color in self.keys)
            case "PutNextInstr":
                return self._any(clause.desc_move.obj_set) and self._any(clause.desc_fixed.obj_set)
        return self._any(clause.desc.obj_set)

    def _any(self, things: Iterable[Thing]) -> bool:
        cells, wanted = self.world.cells, [id(thing) for thing in things]
        present = {id(cells[cell]) for cell in self.touched} | {id(self.world.carrying)}
        return any(thing in present for thing in wanted)

    def _touch(self) -> set[int]:
        """The cells that could be stood on or faced, with the keys so far."""
        cells, start = self.world.cells, pose_of(self.world) >> 2
        touched, waiting = {start}, [start]
        for cell in waiting:
            for stride in self.strides:
                thing = cells[cell + stride]
                if cell + stride not in touched:
                    touched.add(cell + stride)
                    if thing is None or self._gives_way(thing):
                        waiting.append(cell + stride)
        return touched

    def _gives_way(self, thing: Thing) -> bool:
        if thing.type == "door":
            return not thing.is_locked or thing.color in self.keys
        return bool(thing.type != "wall")


def _key_colors(thing: Thing | None) -> Iterator[str]:
    """The colours of the keys that a thing is or holds."""
    while thing is not None:
        if thing.type == "key":
            yield thing.color
        thing = thing.contains


def _left(instruction: Any) -> Iterator[Any]:
    """The clauses that are not fulfilled yet."""
    if not hasattr(instruction, "instr_a"):
        yield instruction
        return
    for part, done in (instruction.instr_a, instruction.a_done), (instruction.instr_b, instruction.b_done):
        if done != "success":
            yield from _left(part)
