"""Positions on the map: kilometres in the country's plane, degrees, and the outlines of what lies there."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
_NORTH, _WEST = 48.6, -33.4
"""Where the country's corner would be on Earth: in an ocean."""
_KM_PER_LATITUDE, _KM_PER_LONGITUDE = 111.2, 75.6


def degrees(point: Point) -> tuple[float, float]:
    """Latitude and longitude of a position, to a metre."""
    x, y = point
    return round(_NORTH - y / _KM_PER_LATITUDE, 5), round(_WEST + x / _KM_PER_LONGITUDE, 5)


def position(latitude: float, longitude: float) -> Point:
    """The position of a latitude and longitude."""
    return round((longitude - _WEST) * _KM_PER_LONGITUDE, 4), round((_NORTH - latitude) * _KM_PER_LATITUDE, 4)


def distance(one: Point, other: Point) -> float:
    """As the crow flies, in kilometres."""
    return math.hypot(one[0] - other[0], one[1] - other[1])


def between(one: Point, other: Point, share: float) -> Point:
    """The point that a share of the way from one to the other leads to."""
    return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])


def beside(one: Point, other: Point, share: float, away: float) -> Point:
    """Such a point, moved to the right of the way, seen from above with y downwards, by `away` kilometres."""
    x, y = between(one, other, share)
    length = distance(one, other) or 1.0
    return x - away * (other[1] - one[1]) / length, y + away * (other[0] - one[0]) / length


def projected(point: Point, one: Point, other: Point) -> tuple[float, float]:
    """How far a point is from the line between two others, and the share of it at which it is nearest."""
    x, y = other[0] - one[0], other[1] - one[1]
    share = ((point[0] - one[0]) * x + (point[1] - one[1]) * y) / ((x * x + y * y) or 1.0)
    share = min(max(share, 0.0), 1.0)
    return distance(point, between(one, other, share)), share


def bearing(one: Point, other: Point) -> float:
    """The direction from one to the other in degrees, clockwise from north."""
    return math.degrees(math.atan2(other[0] - one[0], one[1] - other[1])) % 360


def rounded(point: Point) -> Point:
    """A position to the metre."""
    return round(point[0], 3), round(point[1], 3)


def blob(rng: random.Random, centre: Point, radius: float, corners: int = 14) -> list[Point]:
    """An outline without order, about so large, longer than wide."""
    tilt, flat = rng.uniform(0, math.pi), rng.uniform(0.45, 0.9)
    points = []
    for corner in range(corners):
        angle = math.tau * corner / corners
        reach = radius * rng.uniform(0.72, 1.15)
        along, across = reach * math.cos(angle), flat * reach * math.sin(angle)
        x = centre[0] + along * math.cos(tilt) - across * math.sin(tilt)
        y = centre[1] + along * math.sin(tilt) + across * math.cos(tilt)
        points.append((x, y))
    return points


def hull(points: Sequence[Point]) -> list[Point]:
    """The convex outline around points."""
    ordered = sorted(points)

    def half(way: Sequence[Point]) -> list[Point]:
        found: list[Point] = []
        for point in way:
            while len(found) > 1 and _turn(found[-2], found[-1], point) <= 0:
                found.pop()
            found.append(point)
        return found[:-1]

    return half(ordered) + half(ordered[::-1])


def clipped(outline: Sequence[Point], inside: Callable[[Point], float]) -> list[Point]:
    """The part of an outline where `inside`, which has to be linear, is not negative."""
    kept: list[Point] = []
    for one, other in zip(outline, [*outline[1:], outline[0]], strict=True):
        first, second = inside(one), inside(other)
        if first >= 0:
            kept.append(one)
        if first * second < 0:
            kept.append(between(one, other, first / (first - second)))
    return kept


def grown(outline: Sequence[Point], away: float) -> list[Point]:
    """An outline with its corners moved away from its middle."""
    x, y = (sum(point[axis] for point in outline) / len(outline) for axis in (0, 1))
    return [between((x, y), point, 1 + away / (distance((x, y), point) or 1.0)) for point in outline]


def _turn(one: Point, two: Point, three: Point) -> float:
    return (two[0] - one[0]) * (three[1] - one[1]) - (two[1] - one[1]) * (three[0] - one[0])
