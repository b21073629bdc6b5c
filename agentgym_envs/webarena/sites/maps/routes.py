"""Directions: the fastest route by car, bicycle or on foot, and its description in steps."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.webarena.sites.maps.geometry import Point, bearing
from agentgym_envs.webarena.sites.maps.network import Network, point_on_segment

_COMPASS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")


class RouteStep(NamedTuple):
    """An instruction, and the distance to the next one."""

    text: str
    metres: int


class MapRoute(NamedTuple):
    """A route: length, duration, points and steps."""

    metres: int
    seconds: int
    points: list[Point]
    steps: list[RouteStep]


class _Piece(NamedTuple):
    """The part of a route on one road."""

    road: int
    points: list[Point]
    metres: float


_PartialSegment = tuple[int, float, float]
"""A segment, and the fractions at which the route enters and leaves it."""


def find_route(network: Network, mode: str, start: Point, end: Point, arrival: str = "your destination") -> MapRoute:
    """Return the fastest route between two positions.

    A route exists for every mode, since the roads other than motorways form one connected network.
    """
    first, last = network.snap(start, mode), network.snap(end, mode)
    parts = _search(network, mode, first, last)
    pieces = _merged(network, parts)
    cost = sum(abs(to - begin) * network.cost(segment, mode) for segment, begin, to in parts)
    metres = sum(abs(to - begin) * network.segments[segment].length for segment, begin, to in parts)
    points = [point for piece in pieces for point in piece.points]
    return MapRoute(round(metres), round(cost / 1000), points, _steps(network, pieces, arrival))


def _search(network: Network, mode: str, first: tuple[int, float], last: tuple[int, float]) -> list[_PartialSegment]:
    """Search with Dijkstra's algorithm from a spot on a segment to another one."""
    start, begin = first
    goal, stop = last
    ends = _costs_to_ends(network, mode, goal, stop)
    best, best_junction = (float("inf"), 0)
    if start == goal:
        best, best_junction = abs(stop - begin) * network.cost(start, mode), -1
    costs: dict[int, float] = {}
    previous: dict[int, tuple[int, int]] = {}
    queue = [(cost, junction) for junction, cost in _costs_to_ends(network, mode, start, begin).items()]
    costs = {junction: cost for cost, junction in queue}
    heapq.heapify(queue)
    ways = network.ways[mode]
    while queue:
        cost, junction = heapq.heappop(queue)
        if cost >= best:
            break
        if cost > costs[junction]:
            continue
        if junction in ends and cost + ends[junction] < best:
            best, best_junction = cost + ends[junction], junction
        for way in ways[junction]:
            total = cost + way.cost
            if total < costs.get(way.to, float("inf")):
                costs[way.to] = total
                previous[way.to] = junction, way.segment
                heapq.heappush(queue, (total, way.to))
    return [(start, begin, stop)] if best_junction == -1 else _backtrack(network, previous, first, last, best_junction)


def _costs_to_ends(network: Network, mode: str, segment: int, share: float) -> dict[int, float]:
    """Return the costs from a spot on a segment to its ends."""
    piece, cost = network.segments[segment], network.cost(segment, mode)
    return {piece.source: share * cost, piece.target: (1 - share) * cost}


def _backtrack(
    network: Network,
    previous: dict[int, tuple[int, int]],
    first: tuple[int, float],
    last: tuple[int, float],
    junction: int,
) -> list[_PartialSegment]:
    """Return the path to the last junction of the search, with the partial segments at both ends."""
    goal, stop = last
    parts = [(goal, 0.0 if network.segments[goal].source == junction else 1.0, stop)]
    while junction in previous:
        before, segment = previous[junction]
        forth = network.segments[segment].source == before
        parts.append((segment, 0.0, 1.0) if forth else (segment, 1.0, 0.0))
        junction = before
    start, begin = first
    parts.append((start, begin, 0.0 if network.segments[start].source == junction else 1.0))
    return parts[::-1]


def _merged(network: Network, parts: Sequence[_PartialSegment]) -> list[_Piece]:
    """Merge consecutive parts on the same road."""
    pieces: list[_Piece] = []
    for segment, begin, to in parts:
        if begin == to and len(parts) > 1:
            continue
        one = network.segments[segment]
        metres = abs(to - begin) * one.length
        points = [point_on_segment(network, segment, begin), point_on_segment(network, segment, to)]
        if pieces and pieces[-1].road == one.road:
            before = pieces.pop()
            points, metres = [*before.points, points[1]], before.metres + metres
        pieces.append(_Piece(one.road, points, metres))
    return pieces


def _steps(network: Network, pieces: Sequence[_Piece], arrival: str) -> list[RouteStep]:
    steps = []
    for index, piece in enumerate(pieces):
        text = _transition(network, pieces[index - 1], piece) if index else _start_text(network, piece)
        steps.append(RouteStep(text, round(piece.metres)))
    return [*steps, RouteStep(f"Arrive at {arrival}", 0)]


def _start_text(network: Network, piece: _Piece) -> str:
    side = _COMPASS[round(bearing(piece.points[0], piece.points[1]) / 45) % 8]
    return f"Start on {network.called(piece.road, town=True)}, heading {side}"


def _transition(network: Network, before: _Piece, piece: _Piece) -> str:
    """Describe the change from one road to another."""
    kinds = network.roads[before.road].kind, network.roads[piece.road].kind
    arriving = network.roads[piece.road].town not in (None, network.roads[before.road].town)
    name = network.called(piece.road, town=arriving)
    exit_name = _exit(network, piece.points[0])
    if kinds == ("motorway", "link"):
        return f"Leave {network.called(before.road)} at {exit_name} onto {name}"
    if kinds[1] == "motorway":
        return f"{'Change to' if kinds[0] == 'motorway' else 'Join'} {name} at {exit_name}"
    return f"{_turn(before.points, piece.points)} onto {name}"


def _turn(before: Sequence[Point], after: Sequence[Point]) -> str:
    angle = (bearing(after[0], after[1]) - bearing(before[-2], before[-1]) + 540) % 360 - 180
    side = "right" if angle > 0 else "left"
    if abs(angle) < 20:
        return "Continue"
    if abs(angle) < 55:
        return f"Bear {side}"
    return f"Turn {side}" if abs(angle) < 130 else f"Turn sharp {side}"


def _exit(network: Network, point: Point) -> str:
    """Return the name of the motorway junction at a point."""
    return next((name for number, name in network.exits.items() if network.points[number] == point), "the junction")
