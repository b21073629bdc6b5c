"""The rooms of ScienceWorld's house, which are the same in all of its tasks, and the ways between them."""

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
_ROOM_TOLD = re.compile(r"(?:is called the|You (?:move|teleport) to the) ([a-z ]+)\.")


def room_told(observation: str) -> str | None:
    """The room that a look at it, or the way into it, tells of."""
    found = _ROOM_TOLD.match(observation) or _ROOM_TOLD.search(observation.split("\n", 1)[0])
    return found[1] if found and found[1] in _DOORS else None


def way(start: str, end: str) -> list[str]:
    """The rooms on the shortest way, without the first."""
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
    """The rooms on a way through all of them, without the first: always on to the nearest new one."""
    walked = [start]
    while new := [room for room in ROOMS if room not in walked]:
        nearest = min(new, key=lambda room: len(way(walked[-1], room)))
        walked += way(walked[-1], nearest)
    return walked[1:]


def walk(rooms: list[str]) -> list[str]:
    """The commands to go from room to room; to open a door that is open does no harm."""
    return [command for room in rooms for command in (f"open door to {room}", f"go to {room}")]
