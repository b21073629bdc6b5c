"""Directions: the way that takes the least time by car, bicycle or on foot, and how one is told to go it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.webarena.sites.maps.geometry import Point, bearing
from agentgym_envs.webarena.sites.maps.network import Network, along

_COMPASS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")


class Step(NamedTuple):
    """What to do, and how many metres it is to the next step."""

    text: str
    metres: int


class Route(NamedTuple):
    """A way: how long it is, how long it takes, its course and its steps."""

    metres: int
    seconds: int
    points: list[Point]
    steps: list[Step]


class _Piece(NamedTuple):
    """A part of a way along one road."""

    road: int
    points: list[Point]
    metres: float


_Piecemeal = tuple[int, float, float]
"""A segment, and from where to where on it."""


def find_route(network: Network, mode: str, start: Point, end: Point, arrival: str = "your destination") -> Route:
    """The fastest way between two positions. There is one for every mode: all but motorways is one net."""
    first, last = network.snap(start, mode), network.snap(end, mode)
    parts = _search(network, mode, first, last)
    pieces = _joined(network, parts)
    cost = sum(abs(to - begin) * network.cost(segment, mode) for segment, begin, to in parts)
    metres = sum(abs(to - begin) * network.segments[segment].length for segment, begin, to in parts)
    points = [point for piece in pieces for point in piece.points]
    return Route(round(metres), round(cost / 1000), points, _steps(network, pieces, arrival))


def _search(network: Network, mode: str, first: tuple[int, float], last: tuple[int, float]) -> list[_Piecemeal]:
    """Dijkstra's search from one spot on a segment to another."""
    start, begin = first
    goal, stop = last
    ends = _leaves(network, mode, goal, stop)
    best, found = (float("inf"), 0)
    if start == goal:
        best, found = abs(stop - begin) * network.cost(start, mode), -1
    costs: dict[int, float] = {}
    came: dict[int, tuple[int, int]] = {}
    queue = [(cost, junction) for junction, cost in _leaves(network, mode, start, begin).items()]
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
            best, found = cost + ends[junction], junction
        for way in ways[junction]:
            total = cost + way.cost
            if total < costs.get(way.to, float("inf")):
                costs[way.to] = total
                came[way.to] = junction, way.segment
                heapq.heappush(queue, (total, way.to))
    return [(start, begin, stop)] if found == -1 else _traced(network, came, first, last, found)


def _leaves(network: Network, mode: str, segment: int, share: float) -> dict[int, float]:
    """What it costs from a spot on a segment to its ends."""
    piece, cost = network.segments[segment], network.cost(segment, mode)
    return {piece.source: share * cost, piece.target: (1 - share) * cost}


def _traced(
    network: Network, came: dict[int, tuple[int, int]], first: tuple[int, float], last: tuple[int, float], junction: int
) -> list[_Piecemeal]:
    """The way to a junction that the search found, with the pieces before and after it."""
    goal, stop = last
    parts = [(goal, 0.0 if network.segments[goal].source == junction else 1.0, stop)]
    while junction in came:
        before, segment = came[junction]
        forth = network.segments[segment].source == before
        parts.append((segment, 0.0, 1.0) if forth else (segment, 1.0, 0.0))
        junction = before
    start, begin = first
    parts.append((start, begin, 0.0 if network.segments[start].source == junction else 1.0))
    return parts[::-1]


def _joined(network: Network, parts: Sequence[_Piecemeal]) -> list[_Piece]:
    """The parts of one road that follow each other as one piece."""
    pieces: list[_Piece] = []
    for segment, begin, to in parts:
        if begin == to and len(parts) > 1:
            continue
        one = network.segments[segment]
        metres = abs(to - begin) * one.length
        points = [along(network, segment, begin), along(network, segment, to)]
        if pieces and pieces[-1].road == one.road:
            before = pieces.pop()
            points, metres = [*before.points, points[1]], before.metres + metres
        pieces.append(_Piece(one.road, points, metres))
    return pieces


def _steps(network: Network, pieces: Sequence[_Piece], arrival: str) -> list[Step]:
    steps = []
    for place, piece in enumerate(pieces):
        text = _told(network, pieces[place - 1], piece) if place else _begin(network, piece)
        steps.append(Step(text, round(piece.metres)))
    return [*steps, Step(f"Arrive at {arrival}", 0)]


def _begin(network: Network, piece: _Piece) -> str:
    side = _COMPASS[round(bearing(piece.points[0], piece.points[1]) / 45) % 8]
    return f"Start on {network.called(piece.road, town=True)}, heading {side}"


def _told(network: Network, before: _Piece, piece: _Piece) -> str:
    """How one gets from a road onto another."""
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
    """The name of the motorway junction at a point."""
    return next((name for number, name in network.exits.items() if network.points[number] == point), "the junction")
