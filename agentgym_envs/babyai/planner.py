"""Planning the next step towards a clause of a mission, with full knowledge of the world: a path and a final action.

The planner has no memory between plans. It clears obstacles and unlocks doors before it picks up an object that must be
carried past them, so that one plan does not undo the previous one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.babyai.pathfinding import FAR, GridPath, PathSearch, TerrainCosts, drop_costs, pose_of, strides
from agentgym_envs.babyai.world import DESCRIPTIONS, GridAction, GridWorld, Thing

Clause = Any
"""One of minigrid's `ActionInstr`."""
_DEEPEST = 12


class PlanningFailed(Exception):
    """Raised when planning cannot continue; the message says why."""


class MoveCosts(NamedTuple):
    """Estimated steps to move an object out of the way (`swap` while carrying another), and to unlock a door."""

    lift: int = 4
    swap: int = 7
    unlock: int = 25


class Constraints(NamedTuple):
    """Constraints of a plan: cells that should stay free, and objects that are being cleared out of the way."""

    keep: frozenset[int] = frozenset()
    clearing: tuple[int, ...] = ()

    def reserve(self, path: GridPath) -> Constraints:
        """Also keep the cells of a path free."""
        return self._replace(keep=self.keep | path.cells)


class ClausePlanner:
    """Plans the next path towards a clause. `detour` is true if the path serves to clear another one."""

    def __init__(self, world: GridWorld, clause: Clause, costs: MoveCosts, *, last: bool) -> None:
        """Take the current state; `last` is true if the clause completes the mission."""
        self.world, self.clause, self.costs, self.last = world, clause, costs, last
        self.cells, self.carried = world.cells, world.carrying
        self.start, self.strides = pose_of(world), strides(world)
        self.strict = type(clause).__name__ if getattr(clause, "strict", False) else ""
        self.precious = {thing.serial for thing in _mentioned(world.level.instrs)}
        self.cell_of, self.box_of = _locate(self.cells)
        self.detour = False
        self._grounds: dict[tuple[int, tuple[int, ...], int], TerrainCosts] = {}

    def plan(self) -> GridPath:
        """Return a path with its final actions; without steps if the agent already faces the target.

        Raises PlanningFailed.
        """
        match type(self.clause).__name__:
            case "GoToInstr":
                return self._go_to()
            case "PickupInstr":
                return self._pick_up()
            case "OpenInstr":
                return self._open()
        return self._put_next()

    def _go_to(self) -> GridPath:
        width = self.world.size[0]
        faces = {int(y) * width + int(x): 0 for x, y in self.clause.desc.obj_poss}
        walk = self._walk(faces, Constraints())
        if self._holds(self.clause.desc.obj_set) and (walk is None or walk.blocked or walk.cost > 1):
            return self._put_down(Constraints(), anywhere=True)
        return self._clear_or_go(self._need(walk), Constraints())

    def _pick_up(self) -> GridPath:
        if self._holds(self.clause.desc.obj_set):
            return self._put_down(Constraints(), anywhere=True)
        return self._fetch([thing for thing in self.clause.desc.obj_set if thing.can_pickup()], Constraints())

    def _open(self) -> GridPath:
        doors = {self.cell_of[door.serial]: door for door in self.clause.desc.obj_set}
        costs = {cell: self._unlock_cost(door) if door.is_locked else door.is_open for cell, door in doors.items()}
        path = self._need(self._walk({cell: cost for cell, cost in costs.items() if cost >= 0}, Constraints()))
        door = doors[path.faced]
        if not path.blocked and door.is_locked and not _opens(self.carried, door):
            return self._unlock(door, Constraints().reserve(path))
        return self._clear_or_go(path, Constraints(), *[GridAction.TOGGLE] * (1 + door.is_open))

    def _put_next(self) -> GridPath:
        fixed = [self.cell_of[thing.serial] for thing in self.clause.desc_fixed.obj_set if thing.serial in self.cell_of]
        if not fixed and self._holds(self.clause.desc_fixed.obj_set):
            return self._put_down(self._deeper(self.carried, Constraints()))
        sides = {cell + stride for cell in fixed for stride in self.strides}
        faces = {cell: self._drop_cost(cell) for cell in sides}
        faces = {cell: cost for cell, cost in faces.items() if cost >= 0}
        path = self._carry(self.clause.desc_move.obj_set, faces, GridAction.DROP, Constraints())
        if path.steps[0].action is GridAction.DROP and self.clause.preCarrying is not self.carried:
            turned = self.start - (self.start & 3) + (self.start - 1 & 3)
            return path._replace(steps=[path.steps[0]._replace(action=GridAction.LEFT, pose=turned)])
        return path

    def _fetch(self, things: Iterable[Thing], constraints: Constraints) -> GridPath:
        """Pick up the nearest of some objects, or open a box with one of them."""
        faces = {self.cell_of[thing.serial]: 0 for thing in things if thing.serial in self.cell_of}
        boxes = {self.box_of[thing.serial]: 2 for thing in things if thing.serial in self.box_of}
        if boxes and not faces:
            return self._clear_or_go(self._need(self._walk(boxes, constraints)), constraints, GridAction.TOGGLE)
        return self._clear_or_go(self._need(self._approach(faces, constraints)), constraints, GridAction.PICKUP)

    def _approach(self, faces: Mapping[int, int], constraints: Constraints) -> GridPath | None:
        """Return the path to face one of some cells with free hands."""
        if self.carried is None:
            return self._walk(faces, constraints)
        grounds = [self._ground(self.carried, constraints), self._ground(None, constraints)]
        return PathSearch(self.strides, grounds, self._drops(constraints)).find(self.start, faces)

    def _carry(
        self, things: Collection[Thing], faces: Mapping[int, int], final: GridAction, constraints: Constraints
    ) -> GridPath:
        """Carry one of some objects to face one of the cells, and take the final action there."""
        if self.carried is not None and any(thing is self.carried.contains for thing in things):
            return self._put_down(constraints)
        best: tuple[int, Thing, GridPath] | None = None
        for thing in things:
            best = self._delivery(thing, faces, constraints, FAR if best is None else best[0]) or best
        if best is None:
            raise PlanningFailed("there is no path to bring an object to its target")
        _, thing, onward = best
        blocked = onward.blocked + [onward.faced] * (final is GridAction.DROP and not self._empty(onward.faced, thing))
        constraints = constraints.reserve(onward)
        if thing is self.carried:
            return self._put_down(constraints) if blocked else onward.then(final)
        return self._clear(blocked[0], constraints) if blocked else self._fetch([thing], constraints)

    def _delivery(
        self, thing: Thing, faces: Mapping[int, int], constraints: Constraints, max_cost: int
    ) -> tuple[int, Thing, GridPath] | None:
        """Return the cost to fetch an object and carry it to face one of the cells, and the path of the second part.

        Returns None if it is impossible, or costs `max_cost` or more.
        """
        spent, origin, start = 0, -1, self.start
        if thing is not self.carried:
            origin = self.cell_of.get(thing.serial, self.box_of.get(thing.serial, -1))
            approach = self._walk({origin: 0}, constraints, max_cost)
            if approach is None:
                return None
            spent, start = approach.cost, approach.end
        faces = {cell: 0 if cell == origin else cost for cell, cost in faces.items()}
        onward = PathSearch(self.strides, [self._ground(thing, constraints, origin)]).find(
            start, faces, max_cost - spent
        )
        return None if onward is None else (spent + onward.cost, thing, onward)

    def _unlock(self, door: Thing, constraints: Constraints) -> GridPath:
        constraints = self._deeper(door, constraints)
        keys = [thing for thing in self._all_things() if _opens(thing, door)]
        return self._carry(keys, {self.cell_of[door.serial]: 0}, GridAction.TOGGLE, constraints)

    def _put_down(self, constraints: Constraints, *, anywhere: bool = False) -> GridPath:
        """Put down the carried object where it blocks least, or anywhere if it is picked up again immediately."""
        self.detour |= not anywhere
        drops, ground = self._drops(constraints), self._ground(self.carried, constraints)
        free = [-1 if cell in ground.blocked else cost for cell, cost in enumerate(ground.enter)]
        search = PathSearch(self.strides, [ground._replace(enter=free)])
        path = search.find(self.start, dict.fromkeys(drops, 0) if anywhere else drops)
        if path is None:
            raise PlanningFailed("there is no room to put an object down")
        return path.then(GridAction.DROP)

    def _drops(self, constraints: Constraints) -> dict[int, int]:
        """Return the cells for the carried object, with a penalty for blocking, unless nothing is left to do after."""
        drops = drop_costs(self.world, constraints.keep)
        return dict.fromkeys(drops, 0) if self.last and constraints == Constraints() else drops

    def _clear_or_go(self, path: GridPath, constraints: Constraints, *final: GridAction) -> GridPath:
        return self._clear(path.blocked[0], constraints.reserve(path)) if path.blocked else path.then(*final)

    def _clear(self, cell: int, constraints: Constraints) -> GridPath:
        """Remove the object in a cell, or unlock the door there."""
        self.detour, thing = True, self.cells[cell]
        assert thing is not None, "the cell is empty"
        if thing.type == "door":
            return self._unlock(thing, constraints)
        return self._fetch([thing], self._deeper(thing, constraints))

    def _deeper(self, thing: Thing, constraints: Constraints) -> Constraints:
        if thing.serial in constraints.clearing or len(constraints.clearing) > _DEEPEST:
            raise PlanningFailed(f"the {thing.color} {thing.type} blocks the path that would clear it")
        return constraints._replace(clearing=(*constraints.clearing, thing.serial))

    def _walk(self, faces: Mapping[int, int], constraints: Constraints, max_cost: int = FAR) -> GridPath | None:
        """Return the path to face one of some cells with the carried object, if it costs less than `max_cost`."""
        return PathSearch(self.strides, [self._ground(self.carried, constraints)]).find(self.start, faces, max_cost)

    def _need(self, path: GridPath | None) -> GridPath:
        if path is None:
            raise PlanningFailed("there is no path to an object of the mission")
        return path

    def _holds(self, things: Iterable[Thing]) -> bool:
        return any(thing is self.carried for thing in things)

    def _empty(self, cell: int, lifted: Thing) -> bool:
        return self.cells[cell] is None or self.cells[cell] is lifted

    def _all_things(self) -> Iterator[Thing]:
        """Yield all objects that can be picked up, including those in boxes and the carried one."""
        outer = [thing for thing in self.cells if thing is not None and thing.can_pickup()]
        for thing in [*outer, self.carried]:
            yield from _unpack(thing)

    def _ground(self, carried: Thing | None, constraints: Constraints, gone: int = -1) -> TerrainCosts:
        """Return the terrain for a carried object, with the cell `gone` empty and without entering cells to clear."""
        key = -1 if carried is None else carried.serial, constraints.clearing, gone
        if key not in self._grounds:
            self._grounds[key] = self._survey(carried, constraints.clearing, gone)
        return self._grounds[key]

    def _survey(self, carried: Thing | None, shut: Collection[int], gone: int) -> TerrainCosts:
        enter, toggles, blocked = [0] * len(self.cells), set[int](), set[int]()
        for cell, thing in enumerate(self.cells):
            if thing is None or cell == gone:
                continue
            if thing.type == "wall" or (thing.serial in shut and not thing.can_overlap()):
                enter[cell] = -1
            elif self._can_toggle(thing, carried):
                toggles.add(cell)
                enter[cell] = 1
            elif not thing.can_overlap():
                blocked.add(cell)
                enter[cell] = self._unlock_cost(thing) if thing.type == "door" else self._lift_cost(carried)
        return TerrainCosts(enter, frozenset(toggles), frozenset(blocked))

    def _can_toggle(self, thing: Thing, carried: Thing | None) -> bool:
        """Return true if toggling clears an object. A box vanishes, so objects of the mission are excluded."""
        if thing.type == "door":
            return not thing.is_open and self.strict != "OpenInstr" and (not thing.is_locked or _opens(carried, thing))
        return thing.type == "box" and thing.contains is None and thing.serial not in self.precious

    def _unlock_cost(self, door: Thing) -> int:
        if _opens(self.carried, door):
            return 1
        fits = any(_opens(thing, door) for thing in self._all_things())
        return self.costs.unlock if fits and self.strict != "OpenInstr" else -1

    def _lift_cost(self, carried: Thing | None) -> int:
        if self.strict == "PickupInstr":
            return -1
        return self.costs.lift if carried is None else self.costs.swap

    def _drop_cost(self, cell: int) -> int:
        thing = self.cells[cell]
        return 0 if thing is None else self.costs.swap if thing.can_pickup() else -1


def _locate(cells: Sequence[Thing | None]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the cells of objects, by serial number, and the cells of the boxes that contain objects."""
    cell_of, box_of = dict[int, int](), dict[int, int]()
    for cell, thing in enumerate(cells):
        if thing is not None and thing.type != "wall":
            cell_of[thing.serial] = cell
            box_of |= {inner.serial: cell for inner in _unpack(thing.contains)}
    return cell_of, box_of


def _unpack(thing: Thing | None) -> Iterator[Thing]:
    """Yield an object and everything in it."""
    while thing is not None:
        yield thing
        thing = thing.contains


def _mentioned(instruction: Any) -> Iterator[Thing]:
    """Yield every object that a mission describes."""
    if hasattr(instruction, "instr_a"):
        yield from _mentioned(instruction.instr_a)
        yield from _mentioned(instruction.instr_b)
        return
    for name in DESCRIPTIONS:
        if hasattr(instruction, name):  # a grey object may be a wall
            yield from (thing for thing in getattr(instruction, name).obj_set if thing.type != "wall")


def _opens(key: Thing | None, door: Thing) -> bool:
    """Return true if an object is the key to a locked door."""
    return key is not None and key.type == "key" and key.color == door.color
