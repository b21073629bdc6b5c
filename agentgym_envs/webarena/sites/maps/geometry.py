"""Geometry on the map: positions in kilometres, coordinates in degrees, and outlines."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
_NORTH, _WEST = 48.6, -33.4
"""Coordinates of the country's north-west corner: in an ocean."""
_KM_PER_LATITUDE, _KM_PER_LONGITUDE = 111.2, 75.6


def degrees(point: Point) -> tuple[float, float]:
    """Convert a position to latitude and longitude, to a metre."""
    x, y = point
    return round(_NORTH - y / _KM_PER_LATITUDE, 5), round(_WEST + x / _KM_PER_LONGITUDE, 5)


def position(latitude: float, longitude: float) -> Point:
    """Convert latitude and longitude to a position."""
    return round((longitude - _WEST) * _KM_PER_LONGITUDE, 4), round((_NORTH - latitude) * _KM_PER_LATITUDE, 4)


def distance(one: Point, other: Point) -> float:
    """Return the straight-line distance in kilometres."""
    return math.hypot(one[0] - other[0], one[1] - other[1])


def interpolate(one: Point, other: Point, share: float) -> Point:
    """Return the point at a fraction `share` of the line from one point to another."""
    return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])


def offset_point(one: Point, other: Point, share: float, away: float) -> Point:
    """Return such a point, moved by `away` kilometres to the right of the line (with y downwards)."""
    x, y = interpolate(one, other, share)
    length = distance(one, other) or 1.0
    return x - away * (other[1] - one[1]) / length, y + away * (other[0] - one[0]) / length


def project(point: Point, one: Point, other: Point) -> tuple[float, float]:
    """Return the distance of a point to the segment between two others, and the fraction at its nearest point."""
    x, y = other[0] - one[0], other[1] - one[1]
    share = ((point[0] - one[0]) * x + (point[1] - one[1]) * y) / ((x * x + y * y) or 1.0)
    share = min(max(share, 0.0), 1.0)
    return distance(point, interpolate(one, other, share)), share


def bearing(one: Point, other: Point) -> float:
    """Return the direction from one point to another in degrees, clockwise from north."""
    return math.degrees(math.atan2(other[0] - one[0], one[1] - other[1])) % 360


def round_to_metres(point: Point) -> Point:
    """Round a position to metres."""
    return round(point[0], 3), round(point[1], 3)


def random_outline(rng: random.Random, centre: Point, radius: float, corners: int = 14) -> list[Point]:
    """Draw an irregular outline of about this radius, longer than wide."""
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


def convex_hull(points: Sequence[Point]) -> list[Point]:
    """Return the convex hull of points."""
    ordered = sorted(points)

    def half(way: Sequence[Point]) -> list[Point]:
        chain: list[Point] = []
        for point in way:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        return chain[:-1]

    return half(ordered) + half(ordered[::-1])


def clip(outline: Sequence[Point], inside: Callable[[Point], float]) -> list[Point]:
    """Clip an outline to the half-plane where the linear function `inside` is not negative."""
    kept: list[Point] = []
    for one, other in zip(outline, [*outline[1:], outline[0]], strict=True):
        first, second = inside(one), inside(other)
        if first >= 0:
            kept.append(one)
        if first * second < 0:
            kept.append(interpolate(one, other, first / (first - second)))
    return kept


def grow(outline: Sequence[Point], away: float) -> list[Point]:
    """Move the corners of an outline away from its centre."""
    x, y = (sum(point[axis] for point in outline) / len(outline) for axis in (0, 1))
    return [interpolate((x, y), point, 1 + away / (distance((x, y), point) or 1.0)) for point in outline]


def _turn(one: Point, two: Point, three: Point) -> float:
    return (two[0] - one[0]) * (three[1] - one[1]) - (two[1] - one[1]) * (three[0] - one[0])
