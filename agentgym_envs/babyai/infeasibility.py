"""Proofs that a mission cannot be fulfilled, whatever the agent does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agentgym_envs.babyai.pathfinding import pose_of, strides
from agentgym_envs.babyai.world import GridWorld, Thing

_FAILS_AT_ONCE = "opening the first door is a failure, since it is not the second one"
_HOLDS_KEYS = ("key", "box")
_UNREACHABLE = "an object of the mission is gone, or behind locked doors without a key"


def why_unsolvable(world: GridWorld) -> str:
    """Explain why no sequence of actions fulfils the rest of a mission; "" if there is no proof."""
    mission = world.level.instrs
    if _contradicts_itself(mission):
        return _FAILS_AT_ONCE
    if all(thing is None or thing.type != "door" or not thing.is_locked for thing in world.cells) and world.steps == 0:
        return ""
    reachable = _Reachable(world)
    return "" if all(reachable.allows(clause) for clause in _pending_clauses(mission)) else _UNREACHABLE


def _contradicts_itself(mission: Any) -> bool:
    """Return true if two doors must be opened in order and the second clause is strict.

    Both clauses see the toggle that fulfils the first one. A strict second clause then fails the mission, unless the
    door also matches its own description.
    """
    kind = type(mission).__name__
    if kind not in ("BeforeInstr", "AfterInstr"):
        return False
    first, second = mission.instr_a, mission.instr_b
    if kind == "AfterInstr":
        first, second = second, first
    both_doors = type(first).__name__ == type(second).__name__ == "OpenInstr"
    return both_doors and second.strict and not any(door in first.desc.obj_set for door in second.desc.obj_set)


class _Reachable:
    """The cells that the agent could reach or face if only walls and locked doors blocked it: an upper bound.

    Every key that it could face, in a box or not, opens the doors of its colour.
    """

    def __init__(self, world: GridWorld) -> None:
        self.world, self.strides = world, strides(world)
        self.keys = set(_key_colors(world.carrying))
        self.touched = self._touch()
        while found := self._touched_keys() - self.keys:
            self.keys |= found
            self.touched = self._touch()

    def allows(self, clause: Any) -> bool:
        """Return false if a clause cannot be fulfilled."""
        width = self.world.size[0]
        match type(clause).__name__:
            case "GoToInstr":
                targets = {int(y) * width + int(x) for x, y in clause.desc.obj_poss}
                return not targets.isdisjoint(self.touched) or self._any(clause.desc.obj_set)
            case "OpenInstr":
                return self._any(door for door in clause.desc.obj_set if not door.is_locked or door.color in self.keys)
            case "PutNextInstr":
                return self._any(clause.desc_move.obj_set) and self._any(clause.desc_fixed.obj_set)
        return self._any(clause.desc.obj_set)

    def _any(self, things: Iterable[Thing]) -> bool:
        cells, wanted = self.world.cells, [id(thing) for thing in things]
        present = {id(cells[cell]) for cell in self.touched} | {id(self.world.carrying)}
        return any(thing in present for thing in wanted)

    def _touched_keys(self) -> set[str]:
        cells = self.world.cells
        things = [thing for cell in self.touched if (thing := cells[cell]) is not None and thing.type in _HOLDS_KEYS]
        return {color for thing in things for color in _key_colors(thing)}

    def _touch(self) -> set[int]:
        """Cells that could be reached or faced with the keys found so far."""
        cells, start = self.world.cells, pose_of(self.world) >> 2
        touched, waiting = {start}, [start]
        for cell in waiting:
            for stride in self.strides:
                if (beside := cell + stride) not in touched:
                    touched.add(beside)
                    if (thing := cells[beside]) is None or self._is_passable(thing):
                        waiting.append(beside)
        return touched

    def _is_passable(self, thing: Thing) -> bool:
        if thing.type == "door":
            return not thing.is_locked or thing.color in self.keys
        return bool(thing.type != "wall")


def _key_colors(thing: Thing | None) -> Iterator[str]:
    """Yield the colours of the keys that a thing is or contains."""
    while thing is not None:
        if thing.type == "key":
            yield thing.color
        thing = thing.contains


def _pending_clauses(instruction: Any) -> Iterator[Any]:
    """Yield the clauses that are not fulfilled yet."""
    if not hasattr(instruction, "instr_a"):
        yield instruction
        return
    for part, done in (instruction.instr_a, instruction.a_done), (instruction.instr_b, instruction.b_done):
        if done != "success":
            yield from _pending_clauses(part)
