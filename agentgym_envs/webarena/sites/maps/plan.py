"""The road network while it is laid out, and houses along its roads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from agentgym_envs.webarena.sites.maps.geometry import Point, beside, distance, projected, rounded

HOUSES = 181
"""Houses are numbered evenly along a street, up to one less than this; odd ones stand on its left."""


class Kind(NamedTuple):
    """What goes for all roads of a kind, unless one is said to differ."""

    speed: int
    walk: bool
    cycle: bool
    lanes: int


KINDS = {
    "motorway": Kind(120, False, False, 4),
    "link": Kind(60, False, False, 2),
    "primary": Kind(90, True, True, 2),
    "secondary": Kind(70, True, True, 2),
    "tertiary": Kind(50, True, True, 2),
    "residential": Kind(30, True, True, 2),
    "pedestrian": Kind(0, True, False, 0),
    "path": Kind(0, True, True, 0),
}


class Junction(NamedTuple):
    """Where segments meet or end."""

    point: Point
    town: int | None
    name: str | None


class Road(NamedTuple):
    """A road of a name; its segments are in `Plan.chains`."""

    name: str
    kind: str
    town: int | None
    speed: int
    cycle: bool


class Segment(NamedTuple):
    """A piece of a road from one junction to the next."""

    road: int
    source: int
    target: int
    length: int


class Spot(NamedTuple):
    """A place at a road: `along` its segment from 0 to 1, and where it is itself."""

    segment: int
    along: float
    point: Point


@dataclass(slots=True)
class Plan:
    """Junctions, roads and segments by their numbers, which count from 1; `chains` are the segments of each road."""

    junctions: dict[int, Junction] = field(default_factory=dict)
    roads: dict[int, Road] = field(default_factory=dict)
    segments: dict[int, Segment] = field(default_factory=dict)
    chains: dict[int, list[int]] = field(default_factory=dict)

    def junction(self, point: Point, town: int | None = None, name: str | None = None) -> int:
        """A new junction's number."""
        number = len(self.junctions) + 1
        self.junctions[number] = Junction(rounded(point), town, name)
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
        """A new road's number; it leads from junction to junction."""
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
        """How long a road is, in metres."""
        return sum(self.segments[segment].length for segment in self.chains[road])

    def ends(self, segment: int) -> tuple[Point, Point]:
        """Where a segment begins and ends."""
        piece = self.segments[segment]
        return self.junctions[piece.source].point, self.junctions[piece.target].point

    def nearest(self, road: int, point: Point) -> Spot:
        """The spot of a road that is nearest to a point; it lies at the point itself."""
        found = [(*projected(point, *self.ends(segment)), segment) for segment in self.chains[road]]
        _, along, segment = min(found)
        return Spot(segment, round(along, 4), rounded(point))

    def house(self, road: int, number: int) -> Spot:
        """Where a house of a street is."""
        return house_on(self, road, number)


class Piece(Protocol):
    """What a segment is here."""

    @property
    def length(self) -> int:
        """In metres."""


class Chained(Protocol):
    """Roads that are chains of segments."""

    @property
    def chains(self) -> Mapping[int, Sequence[int]]:
        """The segments of each road."""

    @property
    def segments(self) -> Mapping[int, Piece]:
        """By their numbers."""

    def ends(self, segment: int) -> tuple[Point, Point]:
        """Where a segment begins and ends."""

    def length(self, road: int) -> int:
        """How long a road is, in metres."""


def spot_on(net: Chained, road: int, share: float, away: float) -> Spot:
    """Where a share of a road's length leads to, `away` kilometres to the right of it."""
    left = share * net.length(road)
    for segment in net.chains[road]:
        length = net.segments[segment].length
        if left <= length:
            break
        left -= length
    along = round(min(left / length, 1.0), 4)
    return Spot(segment, along, rounded(beside(*net.ends(segment), along, away)))


def house_on(net: Chained, road: int, number: int) -> Spot:
    """Where a house of a street is."""
    return spot_on(net, road, number / HOUSES, -0.018 if number % 2 else 0.018)
