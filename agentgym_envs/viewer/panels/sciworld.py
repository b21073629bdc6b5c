"""SciWorld's panel: the house and where the agent is in it, what it sees there and carries, and how far the task is.

The simulator tells all of that for nothing, so the episode is played again where Java is there, within `SECONDS`. Else
the panel shows what the observations tell: the room, what a look at it listed, and what `inventory` answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.panels.replay import CannotReplay, observations, replay

SECONDS = 12.0
MOST_TURNS = 400
"""A longer episode is not played again: the simulator would be busy for long."""
_DOOR = re.compile(r"A door to the ([a-z ]+) \(that is (open|closed)\)")
_GOAL_LINE = re.compile(r"\d+\t(true|false)\t\s*(\S+)\t(.*)")
_ROOM = re.compile(r"is called the ([a-z ]+)\.")
_LISTED = re.compile(r"^\t(.+)$", re.MULTILINE)
_CARRIED = re.compile(r"In your inventory, you see:\s*\n")
_TAKEN, _LEFT = re.compile(r"You move the (.+?) to the inventory\."), re.compile(r"You move the (.+?) to the ")
_UNTOLD = ("the agent", "a substance called air")
_MOST_THINGS, _MOST_NAME = 60, 300
_HEAD = 3_000
"""Where an observation names its room, the task before it included."""

State = dict[str, Any]


def from_world(trajectory: Trajectory) -> list[State]:
    """`shared`: `ways`, the pairs of rooms with a door between them; `rooms`.

    A state holds `room` (None if unknown), `doors` (the open ones that were seen, as pairs), `things` (in the room),
    `inventory`, `goals` (each `text`, `done`, `main`: whether it is a step of the way, not an aid), `score`, `moves`
    and `fresh` (whether `things` and `inventory` are of this state, not older). Raises CannotReplay.
    """
    if len(trajectory.turns) > MOST_TURNS:
        raise CannotReplay(f"The episode is too long ({len(trajectory.turns)} turns) to be played again.")

    def look(env: Any, _: str | None) -> State:
        state = _seen(env.world.look())
        state["inventory"] = _things(env.world.inventory())
        state["goals"] = list(_goals(env.world.goal_progress()))
        return {**state, "score": env.status()["score"], "fresh": True}

    states = replay(trajectory, look, seconds=SECONDS)
    return _finish(states, trajectory)


def from_record(trajectory: Trajectory) -> tuple[list[State], str | None]:
    """The same from the observations; without `goals`, which only the simulator tells."""
    states = list[State]()
    last: State = {"room": None, "here": {}, "things": [], "inventory": []}
    for text in observations(trajectory):
        last = {**last, **_news(text, last), "goals": []}
        states.append({**last, "score": None, "fresh": False})
    return _finish(states, trajectory), None


def _finish(states: list[State], trajectory: Trajectory) -> list[State]:
    """With the doors that are known to be open, the numbers of the record, and what all states share."""
    from agentgym_envs.sciworld.rooms import ROOMS, route

    doors = dict[tuple[str, str], bool]()
    for number, state in enumerate(states):
        for room, is_open in state.pop("here").items():
            if state["room"] is not None:
                doors[min(room, state["room"]), max(room, state["room"])] = is_open
        state["doors"] = [list(pair) for pair, is_open in doors.items() if is_open]
        info = trajectory.turns[number - 1].info if number else {}
        state["moves"] = info.get("moves")
        state["score"] = info.get("score", 0.0 if number == 0 else state["score"])
    ways = [[a, b] for a in ROOMS for b in ROOMS if a < b and len(route(a, b)) == 1]
    states[0]["shared"] = {"rooms": list(ROOMS), "ways": ways}
    return states


def _news(text: str, last: State) -> State:
    """What an observation says anew."""
    from agentgym_envs.sciworld.rooms import room_in

    if _ROOM.search(text[:_HEAD]):
        return _seen(text)
    if carried := _CARRIED.search(text):
        return {"here": {}, "inventory": _things(text[carried.end() - 1 :])}
    if moved := _TAKEN.match(text) or _LEFT.match(text):
        others = [thing for thing in last["inventory"] if thing != moved[1]]
        return {"here": {}, "inventory": [*others, moved[1]] if _TAKEN.match(text) else others}
    room = room_in(text[:_HEAD])
    return {"room": room, "here": {}, "things": []} if room and room != last["room"] else {"here": {}}


def _seen(look: str) -> State:
    """What a look at a room tells: the room, its doors, and what is in it."""
    from agentgym_envs.sciworld.rooms import ROOMS

    found = _ROOM.search(look[:_HEAD])
    inside, _, _ = look.partition("You also see:")
    doors = {room: state == "open" for room, state in _DOOR.findall(look)}
    room = found[1] if found and found[1] in ROOMS else None
    return {"room": room, "here": doors, "things": [thing for thing in _things(inside) if thing not in _UNTOLD]}


def _things(listed: str) -> list[str]:
    """The lines that are set in, which each tell of a thing and what is in it."""
    return [line[:_MOST_NAME].strip() for line in _LISTED.findall(listed)[:_MOST_THINGS]]


def _goals(progress: str) -> Iterator[State]:
    main, _, aids = progress.partition("Unordered and Optional Subgoals:")
    for part, is_main in ((main, True), (aids, False)):
        for done, _, text in _GOAL_LINE.findall(part):
            yield {"text": text.strip(), "done": done == "true", "main": is_main}
