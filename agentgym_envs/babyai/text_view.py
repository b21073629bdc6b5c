"""The text view of a state: the objects in sight and their names, the possible actions, and the effect of each.

The sentences are those of AgentGym's BabyAI server (commit 3ef9235), so some of them end in two spaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from agentgym_envs.babyai.commands import CHECK, ParsedCommand, Verb
from agentgym_envs.babyai.view import HOME, SIZE, VisibleObject, beside, look
from agentgym_envs.babyai.world import GridAction, GridWorld, Thing

Actions = Literal["macro", "primitive"]
Numbering = Literal["nearest", "stable"]
ACTIONS: tuple[Actions, ...] = get_args(Actions)
NUMBERINGS: tuple[Numbering, ...] = get_args(Numbering)
FRONT = HOME + SIZE
"""The cell of the view in front of the agent."""

PRIMITIVES = {
    Verb.LEFT: GridAction.LEFT,
    Verb.RIGHT: GridAction.RIGHT,
    Verb.FORWARD: GridAction.FORWARD,
    Verb.PICKUP: GridAction.PICKUP,
    Verb.DROP: GridAction.DROP,
    Verb.TOGGLE: GridAction.TOGGLE,
    Verb.DONE: GridAction.DONE,
}
"""The verbs that are single actions if they name no object."""
Plan = list[GridAction] | str
"""The primitive actions that carry out a command, or the reason why it is impossible."""


class ObjectNames:
    """Names the objects in sight, for example `red closed door 1`.

    The number counts objects of the same name from the nearest on. If `numbering` is "stable", it counts objects of the
    same colour and type in the order in which they were first seen in the episode.
    """

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.known: dict[int, int] = {}
        self._last: dict[str, int] = {}

    def copy(self) -> ObjectNames:
        """Return an independent copy with the same numbers."""
        names = ObjectNames(self.numbering)
        names.known, names._last = dict(self.known), dict(self._last)
        return names

    def assign(self, seen: Sequence[VisibleObject]) -> dict[str, VisibleObject]:
        """Return the objects by name, in the same order."""
        if self.numbering == "stable":
            return {f"{kind(s.thing)} {self._number(s.thing)}": s for s in seen}
        counts: dict[str, int] = {}
        named = {}
        for s in seen:
            name = kind(s.thing)
            counts[name] = number = counts.get(name, 0) + 1
            named[f"{name} {number}"] = s
        return named

    def _number(self, thing: Thing) -> int:
        number = self.known.get(thing.serial)
        if number is None:
            like = f"{thing.color} {thing.type}"
            number = self.known[thing.serial] = self._last[like] = self._last.get(like, 0) + 1
        return number


class TextView:
    """The text view of the current state of a world. Later changes of the world do not affect it."""

    def __init__(self, world: GridWorld, names: ObjectNames, actions: Actions) -> None:
        self.view = look(world)
        self.named = names.assign(self.view.seen)
        self.carrying: Thing | None = world.carrying
        self.front: Thing | None = world.in_front()
        self.actions = actions
        self.near = beside(self.view.reach())
        self.available = list(self._offer()) if actions == "macro" else [verb.value for verb in PRIMITIVES]

    def describe(self) -> str:
        """Describe the objects in sight, the wall or box ahead, and the carried object."""
        things = "".join([f"There is a {name} {_POSITION[seen.cell]} " for name, seen in self.named.items()])
        if things:
            things = f"In front of you in this room, you can see several objects: {things}"
        else:
            things = "You cannot see any objects within sight. "
        barrier = self.view.barrier
        facing = f"You are facing a {barrier[0]} {barrier[1]} steps away. " if barrier else ""
        held = "not carrying anything" if self.carrying is None else f"carrying a {kind(self.carrying)}"
        return f"{things}The room has walls around you. {facing}You are {held}."

    def offer(self) -> str:
        """Return the line with the possible actions."""
        return 'Available actions: ["' + '", "'.join(self.available) + '"]'

    def plan(self, command: ParsedCommand) -> Plan | None:
        """Plan how to carry out a command. Returns the reason if it is impossible, and None if it is unknown."""
        if self.actions == "primitive":
            action = None if command.target else PRIMITIVES.get(command.verb)
            return None if action is None else [action]
        if command.target:
            return self._plan_with(command.verb, command.target)
        return self._plan_alone(command.verb)

    def find(self, name: str) -> list[str]:
        """Return the full names of the objects in sight that match a name; all but the type may be left out."""
        return [name] if name in self.named else [full for full in self.named if _fits(name, full)]

    def _offer(self) -> Iterator[str]:
        yield from ("turn left", "turn right")
        front, free = self.front, self.carrying is None
        if self._is_open(front):
            yield "move forward"
        if free:
            for name, seen in self.named.items():
                if seen.thing.type != "door" and self._reachable(seen):
                    yield f"pickup {name}"
        elif front is None:
            yield "drop"
        for name, seen in self.named.items():
            if seen.thing.type == "door" and self._reachable(seen):
                if self._unlockable(seen.thing):
                    yield f"{'go' if seen.thing.is_open else 'toggle and go'} through {name}"
                if seen.cell == FRONT and self._unlockable(seen.thing):
                    yield "toggle"
        if front is not None and front.type == "box":
            yield "toggle"
        for name, seen in self.named.items():
            if seen.cell != FRONT and self._reachable(seen):
                yield f"go to {name}"
        yield CHECK

    def _plan_alone(self, verb: Verb) -> Plan | None:
        front = self.front
        match verb:
            case Verb.LEFT | Verb.RIGHT:
                return [PRIMITIVES[verb]]
            case Verb.FORWARD:
                return [GridAction.FORWARD] if self._is_open(front) else _BARRIER
            case Verb.PICKUP:
                return self._pick_up_front(front)
            case Verb.DROP:
                return self._drop(front)
            case Verb.TOGGLE:
                return self._toggle_front(front)
        return None

    def _pick_up_front(self, front: Thing | None) -> Plan:
        if front is None or not front.can_pickup():
            return "There is nothing in front of you that you could pickup."
        if self.carrying is not None:
            return f"You cannot pickup anything, as you are carrying a {kind(self.carrying)}. Drop it first."
        return [GridAction.PICKUP]

    def _drop(self, front: Thing | None) -> Plan:
        if self.carrying is None:
            return "You cannot drop the object, as you are not carrying anything."
        if front is not None:
            return "You cannot drop the object, as there is already an object in front of you."
        return [GridAction.DROP]

    def _drop_named(self, name: str) -> Plan:
        held = self.carrying
        if held is not None and name not in ("it", kind(held)) and name.rpartition(" ")[0] != kind(held):
            return f"You cannot drop {name:.80}, as you are carrying a {kind(held)}."
        return self._drop(self.front)

    def _toggle_front(self, front: Thing | None) -> Plan:
        if front is None or front.type not in ("door", "box"):
            return "There is no door or box in front of you to toggle."
        if front.type == "door" and not self._unlockable(front):
            return f"You cannot toggle the {kind(front)}{self._why_locked(front)}"
        return [GridAction.TOGGLE]

    def _plan_with(self, verb: Verb, target: str) -> Plan | None:
        if verb is Verb.DROP:
            return self._drop_named(target)
        if verb not in _WITH_TARGET:
            return None
        found = self.find(target)
        if len(found) != 1:
            which = f"Several things fit {target:.80}: {', '.join(found)}. Say which."
            return which if found else f"There is no {target:.80} in sight."
        name, seen = found[0], self.named[found[0]]
        if why := self._refusal(verb, seen):
            return f"You cannot {verb} {name}{why}"
        onto = verb is Verb.GO_THROUGH
        path = self.view.path(seen.cell, onto=onto) if self._reachable(seen) else None
        if path is None:
            return f"You cannot {verb} {name}, as there is no path leading to it."
        return path + _WITH_TARGET[verb] or "No change in state."

    def _refusal(self, verb: Verb, seen: VisibleObject) -> str | None:
        """Return the reason why a verb cannot be applied to an object, except for a missing path."""
        thing, is_door = seen.thing, seen.thing.type == "door"
        if verb is Verb.PICKUP:
            if is_door:
                return ", as a door cannot be carried."
            held = self.carrying
            return None if held is None else f", as you are carrying a {kind(held)}. Drop it first."
        if verb is Verb.TOGGLE:
            if not is_door and thing.type != "box":
                return ", as it is neither a door nor a box."
            if seen.cell != FRONT:
                return ", as it is not right in front of you. Go to it first."
            return self._why_locked(thing) if is_door and not self._unlockable(thing) else None
        if verb in (Verb.GO_THROUGH, Verb.TOGGLE_THROUGH) and not is_door:
            return ", as it is not a door."
        if verb is Verb.GO_THROUGH and not thing.is_open:
            return ", as it is closed. You should toggle it first."
        if verb is Verb.TOGGLE_THROUGH:
            if thing.is_open:
                return ", as it is open already. You can go through it."
            return None if self._unlockable(thing) else self._why_locked(thing)
        return None

    def _is_open(self, front: Thing | None) -> bool:
        return front is None or front.can_overlap()

    def _reachable(self, seen: VisibleObject) -> bool:
        return bool(self.near >> seen.cell & 1)

    def _unlockable(self, door: Thing) -> bool:
        held = self.carrying
        return not door.is_locked or (held is not None and held.type == "key" and held.color == door.color)

    def _why_locked(self, door: Thing) -> str:
        if self.carrying is None or self.carrying.type != "key":
            return ", as you are not carrying a key."
        return ", as the color of the key you are carrying does not match the color of door."


def kind(thing: Thing) -> str:
    """Return the colour, the state (of a door) and the type: `red closed door`."""
    if thing.type != "door":
        return f"{thing.color} {thing.type}"
    state = "open" if thing.is_open else "locked" if thing.is_locked else "closed"
    return f"{thing.color} {state} door"


def _fits(name: str, full: str) -> bool:
    """Return true if a name is the full name with its colour, state or number left out."""
    words, rest = name.split(), iter(full.split())
    return full.split()[-2] in words and all(word in rest for word in words)


def _position(cell: int) -> str:
    ahead, column = divmod(cell, SIZE)
    if column == HOME:
        return f"right in front of you {ahead} steps away. "
    side = f"{column - HOME} steps to your right" if column > HOME else f"{HOME - column} steps to your left"
    return f"{ahead} steps in front of you and {side}. "


_POSITION = [_position(cell) for cell in range(SIZE * SIZE)]
_BARRIER = "There is a barrier in front of you, you can't move forward."
_WITH_TARGET: dict[Verb, list[GridAction]] = {
    Verb.GO_TO: [],
    Verb.PICKUP: [GridAction.PICKUP],
    Verb.TOGGLE: [GridAction.TOGGLE],
    Verb.GO_THROUGH: [],
    Verb.TOGGLE_THROUGH: [GridAction.TOGGLE, GridAction.FORWARD],
}
"""The verbs that take an object, and the actions once the agent faces it (or is on it, for `go through`)."""
