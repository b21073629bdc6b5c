"""SciWorld's panel: the house and the agent's room, the things there, the inventory, and the progress of the task.

The simulator reports all of this without using a turn, so the episode is replayed within `SECONDS` if Java is there.
Otherwise the panel shows what the observations contain: the room, its listed things, and replies to `inventory`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentgym_envs.rollout.replay import CannotReplay, observations, replay
from agentgym_envs.trajectory import Trajectory

SECONDS = 12.0
MAX_TURNS = 400
"""Longer episodes are not replayed, as that takes the simulator too long."""
_DOOR = re.compile(r"A door to the ([a-z ]+) \(that is (open|closed)\)")
_GOAL_LINE = re.compile(r"\d+\t(true|false)\t\s*(\S+)\t(.*)")
_ROOM = re.compile(r"is called the ([a-z ]+)\.")
_LISTED = re.compile(r"^\t(.+)$", re.MULTILINE)
_CARRIED = re.compile(r"In your inventory, you see:\s*\n")
_TAKEN, _LEFT = re.compile(r"You move the (.+?) to the inventory\."), re.compile(r"You move the (.+?) to the ")
_HIDDEN_THINGS = ("the agent", "a substance called air")
_MAX_THINGS, _MAX_NAME_CHARS = 60, 300
_HEAD = 3_000
"""The first characters of an observation, in which its room is named, even after the task."""

State = dict[str, Any]


def from_world(trajectory: Trajectory) -> list[State]:
    """Replay the episode for the states of the simulator. Raises CannotReplay.

    `shared`: `rooms`, and `ways`, the pairs of rooms with a door between them.

    A state has `room` (None if unknown), `doors` (pairs of rooms with a seen open door), `things` (in the room),
    `inventory`, `goals` (each with `text`, `done`, and `main` for required steps), `score`, `moves`, and `fresh`, which
    is True if `things` and `inventory` belong to this state and not to an older one.
    """
    if len(trajectory.turns) > MAX_TURNS:
        raise CannotReplay(f"The episode is too long ({len(trajectory.turns)} turns) to be replayed.")

    def look(env: Any, _: str | None) -> State:
        state = _seen(env.world.look())
        state["inventory"] = _things(env.world.inventory())
        state["goals"] = list(_goals(env.world.goal_progress()))
        return {**state, "score": env.status()["score"], "fresh": True}

    states = replay(trajectory, look, seconds=SECONDS)
    return _finish(states, trajectory)


def from_record(trajectory: Trajectory) -> tuple[list[State], str | None]:
    """States from the observations; without `goals`, which only the simulator reports."""
    states = list[State]()
    last: State = {"room": None, "here": {}, "things": [], "inventory": []}
    for text in observations(trajectory):
        last = {**last, **_news(text, last), "goals": []}
        states.append({**last, "score": None, "fresh": False})
    return _finish(states, trajectory), None


def _finish(states: list[State], trajectory: Trajectory) -> list[State]:
    """Add the known open doors, the numbers of the record, and the shared part."""
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
    """The changes of the state in an observation."""
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
    """Parse the description of a room: its name, doors and things."""
    from agentgym_envs.sciworld.rooms import ROOMS

    found = _ROOM.search(look[:_HEAD])
    inside, _, _ = look.partition("You also see:")
    doors = {room: state == "open" for room, state in _DOOR.findall(look)}
    room = found[1] if found and found[1] in ROOMS else None
    return {"room": room, "here": doors, "things": [thing for thing in _things(inside) if thing not in _HIDDEN_THINGS]}


def _things(listed: str) -> list[str]:
    """The indented lines, one for each thing and its contents."""
    return [line[:_MAX_NAME_CHARS].strip() for line in _LISTED.findall(listed)[:_MAX_THINGS]]


def _goals(progress: str) -> Iterator[State]:
    main, _, aids = progress.partition("Unordered and Optional Subgoals:")
    for part, is_main in ((main, True), (aids, False)):
        for done, _, text in _GOAL_LINE.findall(part):
            yield {"text": text.strip(), "done": done == "true", "main": is_main}
