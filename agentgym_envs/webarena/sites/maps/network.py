"""The road network of a world, for routing. It does not change during episodes, so each process reads it once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from agentgym_envs.webarena.sites.maps.geometry import Point, distance

MODES = {"car": "Car", "bicycle": "Bicycle", "foot": "Foot"}
_WORLDS = 16
_TOWN_TRAFFIC = 1.25
_KM_PER_HOUR = {"bicycle": 16, "foot": 5}
_Arrays: TypeAlias = npt.NDArray[np.float64]
_T = TypeVar("_T")


class NetworkRoad(NamedTuple):
    """A row of `map_roads`."""

    name: str
    kind: str
    town: int | None
    speed: int
    walk: int
    cycle: int

    def takes(self, mode: str) -> bool:
        """Return True if the road is open to this mode."""
        return bool({"car": self.speed, "bicycle": self.cycle, "foot": self.walk}[mode])


class NetworkSegment(NamedTuple):
    """A row of `map_segments`."""

    road: int
    source: int
    target: int
    length: int


class Way(NamedTuple):
    """An edge from a junction to a neighbour; `cost` in milliseconds."""

    to: int
    cost: int
    segment: int


@dataclass(frozen=True, slots=True)
class _Lines:
    """All segments that are open to a mode, as arrays."""

    numbers: npt.NDArray[np.int64]
    start: _Arrays
    step: _Arrays
    square: _Arrays


@dataclass(frozen=True, slots=True)
class Network:
    """Junctions, roads and segments by id. `ways` are the edges of each junction by mode."""

    towns: Mapping[int, str]
    points: Mapping[int, Point]
    exits: Mapping[int, str]
    roads: Mapping[int, NetworkRoad]
    segments: Mapping[int, NetworkSegment]
    chains: Mapping[int, Sequence[int]]
    ways: Mapping[str, Mapping[int, Sequence[Way]]]
    lines: Mapping[str, _Lines]

    def called(self, road: int, *, town: bool = False) -> str:
        """Return the name of a road for a sentence: "the A21", "Mill Street" or "Mill Street in Foxford"."""
        one = self.roads[road]
        if one.town is None:
            return f"the {one.name}"
        return f"{one.name} in {self.towns[one.town]}" if town else one.name

    def ends(self, segment: int) -> tuple[Point, Point]:
        """Return the positions of the ends of a segment."""
        piece = self.segments[segment]
        return self.points[piece.source], self.points[piece.target]

    def cost(self, segment: int, mode: str) -> int:
        """Return the time to travel a segment in milliseconds."""
        return _cost(self.segments[segment].length, self.roads[self.segments[segment].road], mode)

    def snap(self, point: Point, mode: str) -> tuple[int, float]:
        """Return the nearest segment that is open to the mode, and the fraction at its nearest point."""
        lines = self.lines[mode]
        offset = np.array(point) - lines.start
        share = np.clip((offset * lines.step).sum(axis=1) / lines.square, 0.0, 1.0)
        away = ((offset - share[:, None] * lines.step) ** 2).sum(axis=1)
        best = int(away.argmin())
        return int(lines.numbers[best]), float(share[best])

    def length(self, road: int) -> int:
        """Return the length of a road in metres."""
        return sum(self.segments[segment].length for segment in self.chains[road])


def cached_per_world(make: Callable[[sqlite3.Connection], _T]) -> Callable[[sqlite3.Connection], _T]:
    """Cache the result of a function that depends on the tables of the network only, for the last few worlds."""
    cache: dict[str, _T] = {}

    def get(database: sqlite3.Connection) -> _T:
        key: str = database.execute("SELECT network FROM map_country").fetchone()[0]
        if key not in cache:
            if len(cache) >= _WORLDS:
                cache.pop(next(iter(cache)))
            cache[key] = make(database)
        return cache[key]

    return get


@cached_per_world
def network(database: sqlite3.Connection) -> Network:
    """Return the network of a world."""
    towns = dict(_rows(database, "SELECT id, name FROM map_towns"))
    points = {number: (x, y) for number, x, y in _rows(database, "SELECT id, x, y FROM map_junctions")}
    exits = dict(_rows(database, "SELECT id, name FROM map_junctions WHERE name IS NOT NULL"))
    columns = "id, name, kind, town, speed, walk, cycle"
    roads = {row[0]: NetworkRoad(*row[1:]) for row in _rows(database, f"SELECT {columns} FROM map_roads")}
    query = "SELECT id, road, source, target, length FROM map_segments ORDER BY id"
    segments = {row[0]: NetworkSegment(*row[1:]) for row in _rows(database, query)}
    chains: dict[int, list[int]] = {number: [] for number in roads}
    for number, segment in segments.items():
        chains[segment.road].append(number)
    ways = {mode: _ways(points, roads, segments, mode) for mode in MODES}
    return Network(
        towns,
        points,
        exits,
        roads,
        segments,
        chains,
        ways,
        {mode: _lines(points, roads, segments, mode) for mode in MODES},
    )


def _ways(
    points: Mapping[int, Point], roads: Mapping[int, NetworkRoad], segments: Mapping[int, NetworkSegment], mode: str
) -> dict[int, list[Way]]:
    ways: dict[int, list[Way]] = {junction: [] for junction in points}
    for number, segment in segments.items():
        road = roads[segment.road]
        if road.takes(mode):
            cost = _cost(segment.length, road, mode)
            ways[segment.source].append(Way(segment.target, cost, number))
            ways[segment.target].append(Way(segment.source, cost, number))
    return ways


def _cost(length: int, road: NetworkRoad, mode: str) -> int:
    """Return the travel time. Cars are slower in towns, bicycles on paths."""
    if mode == "car":
        return round(3600 * length / (road.speed or 5) * (_TOWN_TRAFFIC if road.town else 1))
    speed = 12 if mode == "bicycle" and road.kind == "path" else _KM_PER_HOUR[mode]
    return round(3600 * length / speed)


def _lines(
    points: Mapping[int, Point], roads: Mapping[int, NetworkRoad], segments: Mapping[int, NetworkSegment], mode: str
) -> _Lines:
    taken = [(number, one) for number, one in segments.items() if roads[one.road].takes(mode)]
    start = np.array([points[one.source] for _, one in taken])
    step = np.array([points[one.target] for _, one in taken]) - start
    square = np.maximum((step**2).sum(axis=1), 1e-12)
    return _Lines(np.array([number for number, _ in taken]), start, step, square)


def _rows(database: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in database.execute(query)]


def point_on_segment(network: Network, segment: int, share: float) -> Point:
    """Return the position at a fraction of a segment."""
    (x, y), (a, b) = network.ends(segment)
    return x + share * (a - x), y + share * (b - y)


def metres_between(one: Point, other: Point) -> int:
    """Return the straight-line distance in metres."""
    return round(1000 * distance(one, other))
