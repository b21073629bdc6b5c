"""The rooms of ScienceWorld's house, which are the same in all tasks, and the routes between them."""

from __future__ import annotations

import re
from collections import deque

_DOORS = {
    "kitchen": ("hallway", "bathroom", "outside"),
    "hallway": ("kitchen", "bedroom", "art studio", "living room", "workshop", "greenhouse"),
    "outside": ("kitchen", "greenhouse", "foundry"),
    "greenhouse": ("hallway", "outside"),
    "bathroom": ("kitchen",),
    "bedroom": ("hallway",),
    "art studio": ("hallway",),
    "living room": ("hallway",),
    "workshop": ("hallway",),
    "foundry": ("outside",),
}
ROOMS = tuple(_DOORS)
_ROOM_PATTERN = re.compile(r"(?:is called the|You (?:move|teleport) to the) ([a-z ]+)\.")


def room_in(observation: str) -> str | None:
    """Return the room that an observation of looking around or moving names, or None."""
    found = _ROOM_PATTERN.match(observation) or _ROOM_PATTERN.search(observation.split("\n", 1)[0])
    return found[1] if found and found[1] in _DOORS else None


def route(start: str, end: str) -> list[str]:
    """Return the rooms on the shortest route, without the first one."""
    ways: dict[str, list[str]] = {start: []}
    queue = deque([start])
    while end not in ways:
        room = queue.popleft()
        for other in _DOORS[room]:
            if other not in ways:
                ways[other] = [*ways[room], other]
                queue.append(other)
    return ways[end]


def tour(start: str) -> list[str]:
    """Return the rooms on a tour of the whole house, without the first one. It always goes to the nearest new room."""
    walked = [start]
    while new := [room for room in ROOMS if room not in walked]:
        nearest = min(new, key=lambda room: len(route(walked[-1], room)))
        walked += route(walked[-1], nearest)
    return walked[1:]


def walk_commands(rooms: list[str]) -> list[str]:
    """Return the commands to go from room to room. Opening an open door has no effect."""
    return [command for room in rooms for command in (f"open door to {room}", f"go to {room}")]
