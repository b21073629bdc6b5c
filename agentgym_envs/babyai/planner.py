"""What to do next for a clause of a mission, with the whole world known: one way to go, and what to do at its end.

Nothing is remembered from one decision to the next. What lies in the way is moved and doors are unlocked before the
thing that has to be carried that way is picked up, so that a decision is not taken back by the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.babyai.pathfinding import FAR, Ground, Route, Search, pose_of, spots, strides
from agentgym_envs.babyai.world import DESCRIPTIONS, Action, Thing, World

Clause = Any
"""One of minigrid's `ActionInstr`."""
_DEEPEST = 12


class Stuck(Exception):
    """There is no way on; says why."""


class Prices(NamedTuple):
    """What moving a thing out of the way is taken to cost, in steps, with free hands or not; and unlocking a door."""

    lift: int = 4
    swap: int = 7
    unlock: int = 25


class Chain(NamedTuple):
    """What a decision is for: cells that should be kept free, and things that are being cleared out of the way."""

    keep: frozenset[int] = frozenset()
    clearing: tuple[int, ...] = ()

    def reserve(self, route: Route) -> Chain:
        """The same with the cells of a way to be kept free too."""
        return self._replace(keep=self.keep | route.cells)


class Decision:
    """The next way to go for a clause in a world as it is now; `detour` says whether that is to clear a way."""

    def __init__(self, world: World, clause: Clause, prices: Prices, *, last: bool) -> None:
        """`last`: whether the mission is fulfilled with that clause."""
        self.world, self.clause, self.prices, self.last = world, clause, prices, last
        self.cells, self.hand = world.cells, world.carrying
        self.start, self.strides = pose_of(world), strides(world)
        self.strict = type(clause).__name__ if getattr(clause, "strict", False) else ""
        self.precious = {thing.serial for thing in _mentioned(world.level.instrs)}
        self.places, self.boxed = _locate(self.cells)
        self.detour = False
        self._grounds: dict[tuple[int, tuple[int, ...], int], Ground] = {}

    def route(self) -> Route:
        """The way, with what to do at its end; without any step if the agent faces what it should go to.

        Raises Stuck.
        """
        match type(self.clause).__name__:
            case "GoToInstr":
                return self._go_to()
            case "PickupInstr":
                return self._pick_up()
            case "OpenInstr":
                return self._open()
        return self._put_next()

    def _go_to(self) -> Route:
        width = self.world.size[0]
        faces = {int(y) * width + int(x): 0 for x, y in self.clause.desc.obj_poss}
        walk = self._walk(faces, Chain())
        if self._holds(self.clause.desc.obj_set) and (walk is None or walk.blocked or walk.cost > 1):
            return self._put_down(Chain(), anywhere=True)
        return self._clear_or_go(self._need(walk), Chain())

    def _pick_up(self) -> Route:
        if self._holds(self.clause.desc.obj_set):
            return self._put_down(Chain(), anywhere=True)
        return self._fetch([thing for thing in self.clause.desc.obj_set if thing.can_pickup()], Chain())

    def _open(self) -> Route:
        doors = {self.places[door.serial]: door for door in self.clause.desc.obj_set}
        prices = {cell: self._unlock_price(door) if door.is_locked else door.is_open for cell, door in doors.items()}
        route = self._need(self._walk({cell: price for cell, price in prices.items() if price >= 0}, Chain()))
        door = doors[route.faced]
        if not route.blocked and door.is_locked and not _opens(self.hand, door):
            return self._unlock(door, Chain().reserve(route))
        return self._clear_or_go(route, Chain(), *[Action.TOGGLE] * (1 + door.is_open))

    def _put_next(self) -> Route:
        fixed = [self.places[thing.serial] for thing in self.clause.desc_fixed.obj_set if thing.serial in self.places]
        if not fixed and self._holds(self.clause.desc_fixed.obj_set):
            return self._put_down(self._deeper(self.hand, Chain()))
        sides = {cell + stride for cell in fixed for stride in self.strides}
        faces = {cell: self._drop_price(cell) for cell in sides}
        faces = {cell: price for cell, price in faces.items() if price >= 0}
        route = self._carry(self.clause.desc_move.obj_set, faces, Action.DROP, Chain())
        if route.steps[0].action is Action.DROP and self.clause.preCarrying is not self.hand:
            turned = self.start - (self.start & 3) + (self.start - 1 & 3)
            return route._replace(steps=[route.steps[0]._replace(action=Action.LEFT, pose=turned)])
        return route

    def _fetch(self, things: Iterable[Thing], chain: Chain) -> Route:
        """Pick up the nearest of some things, or open the box that one is in."""
        faces = {self.places[thing.serial]: 0 for thing in things if thing.serial in self.places}
        boxes = {self.boxed[thing.serial]: 2 for thing in things if thing.serial in self.boxed}
        if boxes and not faces:
            return self._clear_or_go(self._need(self._walk(boxes, chain)), chain, Action.TOGGLE)
        return self._clear_or_go(self._need(self._approach(faces, chain)), chain, Action.PICKUP)

    def _approach(self, faces: Mapping[int, int], chain: Chain) -> Route | None:
        """The way to face one of some cells with free hands."""
        if self.hand is None:
            return self._walk(faces, chain)
        grounds = [self._ground(self.hand, chain), self._ground(None, chain)]
        return Search(self.strides, grounds, self._drops(chain)).find(self.start, faces)

    def _carry(self, things: Collection[Thing], faces: Mapping[int, int], final: Action, chain: Chain) -> Route:
        """Bring one of some things before one of the cells, and do something there."""
        if self.hand is not None and any(thing is self.hand.contains for thing in things):
            return self._put_down(chain)
        best: tuple[int, Thing, Route] | None = None
        for thing in things:
            best = self._way(thing, faces, chain, FAR if best is None else best[0]) or best
        if best is None:
            raise Stuck("there is no way to bring a thing to where it should go")
        _, thing, onward = best
        blocked = onward.blocked + [onward.faced] * (final is Action.DROP and not self._empty(onward.faced, thing))
        chain = chain.reserve(onward)
        if thing is self.hand:
            return self._put_down(chain) if blocked else onward.then(final)
        return self._clear(blocked[0], chain) if blocked else self._fetch([thing], chain)

    def _way(self, thing: Thing, faces: Mapping[int, int], chain: Chain, most: int) -> tuple[int, Thing, Route] | None:
        """What it costs to get a thing and bring it before one of the cells, and the way for the second part.

        None if that cannot be, or not for less than `most`.
        """
        spent, place, start = 0, -1, self.start
        if thing is not self.hand:
            place = self.places.get(thing.serial, self.boxed.get(thing.serial, -1))
            approach = self._walk({place: 0}, chain, most)
            if approach is None:
                return None
            spent, start = approach.cost, approach.end
        faces = {cell: 0 if cell == place else price for cell, price in faces.items()}
        onward = Search(self.strides, [self._ground(thing, chain, place)]).find(start, faces, most - spent)
        return None if onward is None else (spent + onward.cost, thing, onward)

    def _unlock(self, door: Thing, chain: Chain) -> Route:
        chain = self._deeper(door, chain)
        keys = [thing for thing in self._all_things() if _opens(thing, door)]
        return self._carry(keys, {self.places[door.serial]: 0}, Action.TOGGLE, chain)

    def _put_down(self, chain: Chain, *, anywhere: bool = False) -> Route:
        """Put down what is held where it is least in the way; anywhere, if it is picked up again at once."""
        self.detour |= not anywhere
        drops, ground = self._drops(chain), self._ground(self.hand, chain)
        free = [-1 if cell in ground.blocked else price for cell, price in enumerate(ground.enter)]
        search = Search(self.strides, [ground._replace(enter=free)])
        route = search.find(self.start, dict.fromkeys(drops, 0) if anywhere else drops)
        if route is None:
            raise Stuck("there is no room to put a thing down")
        return route.then(Action.DROP)

    def _drops(self, chain: Chain) -> dict[int, int]:
        """Where what is held may be put down, at a price for what it would be in the way of, unless nothing follows."""
        drops = spots(self.world, chain.keep)
        return dict.fromkeys(drops, 0) if self.last and chain == Chain() else drops

    def _clear_or_go(self, route: Route, chain: Chain, *final: Action) -> Route:
        return self._clear(route.blocked[0], chain.reserve(route)) if route.blocked else route.then(*final)

    def _clear(self, cell: int, chain: Chain) -> Route:
        """Take away what lies in a cell, or unlock the door there."""
        self.detour, thing = True, self.cells[cell]
        assert thing is not None, "nothing is in the way"
        if thing.type == "door":
            return self._unlock(thing, chain)
        return self._fetch([thing], self._deeper(thing, chain))

    def _deeper(self, thing: Thing, chain: Chain) -> Chain:
        if thing.serial in chain.clearing or len(chain.clearing) > _DEEPEST:
            raise Stuck(f"the {thing.color} {thing.type} is in the way to what would clear it")
        return chain._replace(clearing=(*chain.clearing, thing.serial))

    def _walk(self, faces: Mapping[int, int], chain: Chain, most: int = FAR) -> Route | None:
        """The way for less than `most` to face one of some cells, with what is held."""
        return Search(self.strides, [self._ground(self.hand, chain)]).find(self.start, faces, most)

    def _need(self, route: Route | None) -> Route:
        if route is None:
            raise Stuck("there is no way to what the mission asks for")
        return route

    def _holds(self, things: Iterable[Thing]) -> bool:
        return any(thing is self.hand for thing in things)

    def _empty(self, cell: int, lifted: Thing) -> bool:
        return self.cells[cell] is None or self.cells[cell] is lifted

    def _all_things(self) -> Iterator[Thing]:
        """Everything that can be picked up, in whatever box it may be, held or not."""
        outer = [thing for thing in self.cells if thing is not None and thing.can_pickup()]
        for thing in [*outer, self.hand]:
            yield from _unpack(thing)

    def _ground(self, hand: Thing | None, chain: Chain, gone: int = -1) -> Ground:
        """What steps cost with something in hand, with the cell `gone` empty, and past what is to be cleared."""
        key = -1 if hand is None else hand.serial, chain.clearing, gone
        if key not in self._grounds:
            self._grounds[key] = self._survey(hand, chain.clearing, gone)
        return self._grounds[key]

    def _survey(self, hand: Thing | None, shut: Collection[int], gone: int) -> Ground:
        enter, toggles, blocked = [0] * len(self.cells), set[int](), set[int]()
        for cell, thing in enumerate(self.cells):
            if thing is None or cell == gone:
                continue
            if thing.type == "wall" or (thing.serial in shut and not thing.can_overlap()):
                enter[cell] = -1
            elif self._can_toggle(thing, hand):
                toggles.add(cell)
                enter[cell] = 1
            elif not thing.can_overlap():
                blocked.add(cell)
                enter[cell] = self._unlock_price(thing) if thing.type == "door" else self._lift_price(hand)
        return Ground(enter, frozenset(toggles), frozenset(blocked))

    def _can_toggle(self, thing: Thing, hand: Thing | None) -> bool:
        """Whether a thing can be got out of the way by toggling it; a box vanishes, so not one that is asked for."""
        if thing.type == "door":
            return not thing.is_open and self.strict != "OpenInstr" and (not thing.is_locked or _opens(hand, thing))
        return thing.type == "box" and thing.contains is None and thing.serial not in self.precious

    def _unlock_price(self, door: Thing) -> int:
        if _opens(self.hand, door):
            return 1
        fits = any(_opens(thing, door) for thing in self._all_things())
        return self.prices.unlock if fits and self.strict != "OpenInstr" else -1

    def _lift_price(self, hand: Thing | None) -> int:
        if self.strict == "PickupInstr":
            return -1
        return self.prices.lift if hand is None else self.prices.swap

    def _drop_price(self, cell: int) -> int:
        thing = self.cells[cell]
        return 0 if thing is None else self.prices.swap if thing.can_pickup() else -1


def _locate(cells: Sequence[Thing | None]) -> tuple[dict[int, int], dict[int, int]]:
    """The cells of things that lie about, by their numbers; and those of the boxes that things are in."""
    places, boxed = dict[int, int](), dict[int, int]()
    for cell, thing in enumerate(cells):
        if thing is not None and thing.type != "wall":
            places[thing.serial] = cell
            boxed |= {inner.serial: cell for inner in _unpack(thing.contains)}
    return places, boxed


def _unpack(thing: Thing | None) -> Iterator[Thing]:
    """A thing and what is in it."""
    while thing is not None:
        yield thing
        thing = thing.contains


def _mentioned(instruction: Any) -> Iterator[Thing]:
    """Every thing that a mission speaks of."""
    if hasattr(instruction, "instr_a"):
        yield from _mentioned(instruction.instr_a)
        yield from _mentioned(instruction.instr_b)
        return
    for name in DESCRIPTIONS:
        if hasattr(instruction, name):  # a grey object may be a wall
            yield from (thing for thing in getattr(instruction, name).obj_set if thing.type != "wall")


def _opens(key: Thing | None, door: Thing) -> bool:
    """Whether a thing is the key to a locked door."""
    return key is not None and key.type == "key" and key.color == door.color
