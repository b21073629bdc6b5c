"""The road network during generation, and the positions of houses."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from agentgym_envs.webarena.sites.maps.geometry import Point, distance, offset_point, project, round_to_metres

HOUSES = 181
"""Houses are numbered evenly along a street from 1 to one less than this; odd numbers are on the left side."""


class RoadKind(NamedTuple):
    """Defaults for roads of one kind."""

    speed: int
    walk: bool
    cycle: bool
    lanes: int


KINDS = {
    "motorway": RoadKind(120, False, False, 4),
    "link": RoadKind(60, False, False, 2),
    "primary": RoadKind(90, True, True, 2),
    "secondary": RoadKind(70, True, True, 2),
    "tertiary": RoadKind(50, True, True, 2),
    "residential": RoadKind(30, True, True, 2),
    "pedestrian": RoadKind(0, True, False, 0),
    "path": RoadKind(0, True, True, 0),
}


class Junction(NamedTuple):
    """A point where segments meet or end."""

    point: Point
    town: int | None
    name: str | None


class Road(NamedTuple):
    """A road; its segments are in `RoadPlan.chains`."""

    name: str
    kind: str
    town: int | None
    speed: int
    cycle: bool


class Segment(NamedTuple):
    """A part of a road between two neighbouring junctions."""

    road: int
    source: int
    target: int
    length: int


class Spot(NamedTuple):
    """A position at a road: the fraction `along` its segment from 0 to 1, and the point itself."""

    segment: int
    along: float
    point: Point


@dataclass(slots=True)
class RoadPlan:
    """Junctions, roads and segments by id, counted from 1. `chains` are the segments of each road in order."""

    junctions: dict[int, Junction] = field(default_factory=dict)
    roads: dict[int, Road] = field(default_factory=dict)
    segments: dict[int, Segment] = field(default_factory=dict)
    chains: dict[int, list[int]] = field(default_factory=dict)

    def junction(self, point: Point, town: int | None = None, name: str | None = None) -> int:
        """Add a junction; return its id."""
        number = len(self.junctions) + 1
        self.junctions[number] = Junction(round_to_metres(point), town, name)
        return number

    def road(
        self,
        name: str,
        kind: str,
        junctions: Sequence[int],
        *,
        town: int | None = None,
        speed: int | None = None,
        cycle: bool | None = None,
    ) -> int:
        """Add a road along these junctions; return its id."""
        number = len(self.roads) + 1
        usual = KINDS[kind]
        self.roads[number] = Road(
            name, kind, town, usual.speed if speed is None else speed, usual.cycle if cycle is None else cycle
        )
        self.chains[number] = []
        for source, target in itertools.pairwise(junctions):
            length = round(1000 * distance(self.junctions[source].point, self.junctions[target].point))
            self.segments[len(self.segments) + 1] = Segment(number, source, target, max(length, 1))
            self.chains[number].append(len(self.segments))
        return number

    def length(self, road: int) -> int:
        """Return the length of a road in metres."""
        return sum(self.segments[segment].length for segment in self.chains[road])

    def ends(self, segment: int) -> tuple[Point, Point]:
        """Return the positions of the ends of a segment."""
        piece = self.segments[segment]
        return self.junctions[piece.source].point, self.junctions[piece.target].point

    def nearest(self, road: int, point: Point) -> Spot:
        """Return the given point as a spot at the nearest segment of a road."""
        candidates = [(*project(point, *self.ends(segment)), segment) for segment in self.chains[road]]
        _, along, segment = min(candidates)
        return Spot(segment, round(along, 4), round_to_metres(point))

    def house(self, road: int, number: int) -> Spot:
        """Return the position of a house in a street."""
        return house_on(self, road, number)


class SegmentLike(Protocol):
    """A segment, whether planned or read from the database."""

    @property
    def length(self) -> int:
        """Length in metres."""


class RoadNetworkLike(Protocol):
    """A road network, whether planned or read from the database."""

    @property
    def chains(self) -> Mapping[int, Sequence[int]]:
        """Segments of each road."""

    @property
    def segments(self) -> Mapping[int, SegmentLike]:
        """Segments by id."""

    def ends(self, segment: int) -> tuple[Point, Point]:
        """Return the positions of the ends of a segment."""

    def length(self, road: int) -> int:
        """Return the length of a road in metres."""


def spot_on(net: RoadNetworkLike, road: int, share: float, away: float) -> Spot:
    """Return the spot at a fraction of a road's length, `away` kilometres to its right."""
    left = share * net.length(road)
    for segment in net.chains[road]:
        length = net.segments[segment].length
        if left <= length:
            break
        left -= length
    along = round(min(left / length, 1.0), 4)
    return Spot(segment, along, round_to_metres(offset_point(*net.ends(segment), along, away)))


def house_on(net: RoadNetworkLike, road: int, number: int) -> Spot:
    """Return the position of a house in a street."""
    return spot_on(net, road, number / HOUSES, -0.018 if number % 2 else 0.018)
