"""Roads between towns: main roads along the shortest connections, secondary roads, and motorways between cities."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Sequence

from agentgym_envs.webarena.sites.country import Country, Town
from agentgym_envs.webarena.sites.maps.geometry import Point, distance, offset_point
from agentgym_envs.webarena.sites.maps.plan import RoadPlan
from agentgym_envs.webarena.sites.maps.seed_streets import TownStreets

_Edge = tuple[int, int]
_CITIES = 7
"""Number of the largest towns that motorways connect."""


def connect_towns(plan: RoadPlan, rng: random.Random, country: Country, streets: Sequence[TownStreets]) -> None:
    """Add all roads between towns to the plan."""
    towns = {town.number: town for town in country.towns}
    edges = _neighbours(country.towns)
    main = _spanning(towns, edges)
    by_number = {one.town.number: one for one in streets}
    numbers = rng.sample(range(11, 99), len(edges))
    for edge, number in zip(edges, sorted(numbers), strict=True):
        one, other = by_number[edge[0]], by_number[edge[1]]
        large = edge in main or (_length(towns, edge) < 40 and edge[0] <= 8)
        _lay_road(plan, rng, f"{'A' if large else 'B'}{number}", "primary" if large else "secondary", one, other)
    _lay_motorways(plan, rng, towns, edges, by_number)


def _neighbours(towns: Sequence[Town]) -> list[_Edge]:
    """Return the edges of the Gabriel graph of the towns, which is connected."""
    edges = []
    for one, other in itertools.combinations(towns, 2):
        middle = ((one.x + other.x) / 2, (one.y + other.y) / 2)
        radius = distance((one.x, one.y), (other.x, other.y)) / 2
        if all(distance((town.x, town.y), middle) >= radius for town in towns if town not in (one, other)):
            edges.append((one.number, other.number))
    return edges


def _spanning(towns: dict[int, Town], edges: Sequence[_Edge]) -> set[_Edge]:
    """Return a minimum spanning tree."""
    group = {number: number for number in towns}
    kept: set[_Edge] = set()
    for edge in sorted(edges, key=lambda edge: _length(towns, edge)):
        one, other = group[edge[0]], group[edge[1]]
        if one != other:
            kept.add(edge)
            group = {number: other if label == one else label for number, label in group.items()}
    return kept


def _length(towns: dict[int, Town], edge: _Edge) -> float:
    one, other = towns[edge[0]], towns[edge[1]]
    return distance((one.x, one.y), (other.x, other.y))


def _lay_road(plan: RoadPlan, rng: random.Random, name: str, kind: str, one: TownStreets, other: TownStreets) -> None:
    """Add a winding road between the nearest gates of two towns."""
    first = _gate(plan, one, (other.town.x, other.town.y))
    last = _gate(plan, other, (one.town.x, one.town.y))
    start, end = plan.junctions[first].point, plan.junctions[last].point
    bends = max(1, round(distance(start, end) / 26))
    sway = 0.05 if kind == "primary" else 0.1
    way = [first]
    for bend in range(1, bends + 1):
        aside = rng.uniform(-sway, sway) * distance(start, end)
        way.append(plan.junction(offset_point(start, end, bend / (bends + 1) + rng.uniform(-0.06, 0.06), aside)))
    plan.road(name, kind, [*way, last])


def _gate(plan: RoadPlan, streets: TownStreets, point: Point) -> int:
    return min(streets.gates, key=lambda gate: distance(plan.junctions[gate].point, point))


def _lay_motorways(
    plan: RoadPlan, rng: random.Random, towns: dict[int, Town], edges: Sequence[_Edge], streets: dict[int, TownStreets]
) -> None:
    """Add motorways between the cities along the edges of the other roads, each edge at most once."""
    exits: dict[int, int] = {}
    used: set[_Edge] = set()
    number = 0
    for one, other in _city_pairs(towns):
        way = _shortest(towns, edges, one, other)
        runs = _unused_runs(way, used)
        used |= {edge for run in runs for edge in _steps(run)}
        for run in runs:
            number += 1
            stops = [_exit(plan, rng, towns, edges, streets, exits, town) for town in run]
            _lay_motorway(plan, rng, f"M{number}", stops)


def _city_pairs(towns: dict[int, Town]) -> list[_Edge]:
    """Pair each city with the nearest larger one."""
    cities = list(towns.values())[:_CITIES]
    pairs = []
    for index, city in enumerate(cities[1:], 1):
        larger = [town.number for town in cities[:index]]
        pairs.append((min(larger, key=lambda town, city=city: _length(towns, (town, city.number))), city.number))  # type: ignore[misc]
    return pairs


def _shortest(towns: dict[int, Town], edges: Sequence[_Edge], start: int, end: int) -> list[int]:
    """Return the towns on the shortest path between two towns."""
    queue = [(0.0, start, [start])]
    done: set[int] = set()
    while queue:
        length, town, way = heapq.heappop(queue)
        if town == end:
            return way
        if town in done:
            continue
        done.add(town)
        for edge in edges:
            if town in edge:
                other = edge[0] + edge[1] - town
                heapq.heappush(queue, (length + _length(towns, edge), other, [*way, other]))
    raise AssertionError("the towns are connected")


def _steps(way: Sequence[int]) -> list[_Edge]:
    return [(min(pair), max(pair)) for pair in itertools.pairwise(way)]


def _unused_runs(way: Sequence[int], used: set[_Edge]) -> list[list[int]]:
    """Return the parts of a path that have no motorway yet."""
    runs: list[list[int]] = [[way[0]]]
    for town, edge in zip(way[1:], _steps(way), strict=True):
        if edge in used:
            runs.append([town])
        else:
            runs[-1].append(town)
    return [run for run in runs if len(run) > 1]


def _exit(
    plan: RoadPlan,
    rng: random.Random,
    towns: dict[int, Town],
    edges: Sequence[_Edge],
    streets: dict[int, TownStreets],
    exits: dict[int, int],
    town: int,
) -> int:
    """Return the motorway junction of a town. It is created on first use, in the direction with the fewest roads."""
    if town not in exits:
        here = towns[town]
        others = [towns[edge[0] + edge[1] - town] for edge in edges if town in edge]
        angles = [math.atan2(other.y - here.y, other.x - here.x) for other in others]
        best = max(range(24), key=lambda step: min(_apart(math.tau * step / 24, angle) for angle in angles))
        away = rng.uniform(3.2, 5.0)
        angle = math.tau * best / 24
        point = (here.x + away * math.cos(angle), here.y + away * math.sin(angle))
        side = ("North", "East", "South", "West")[round((angle + math.pi / 2) / (math.pi / 2)) % 4]
        exits[town] = plan.junction(point, None, f"{here.name} {side}")
        plan.road(f"{here.name} Link", "link", [exits[town], _gate(plan, streets[town], point)])
    return exits[town]


def _apart(one: float, other: float) -> float:
    return abs((one - other + math.pi) % math.tau - math.pi)


def _lay_motorway(plan: RoadPlan, rng: random.Random, name: str, stops: Sequence[int]) -> None:
    way = [stops[0]]
    for one, other in itertools.pairwise(stops):
        start, end = plan.junctions[one].point, plan.junctions[other].point
        aside = rng.uniform(-0.05, 0.05) * distance(start, end)
        way += [plan.junction(offset_point(start, end, rng.uniform(0.4, 0.6), aside)), other]
    plan.road(name, "motorway", way)
