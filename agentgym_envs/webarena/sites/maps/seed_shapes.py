"""Shapes below the roads: regions, forests, lakes, rivers, built-up land, parks and the sea."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentgym_envs.webarena.sites.country import HEIGHT_KM, WIDTH_KM, Country, Town
from agentgym_envs.webarena.sites.maps.geometry import Point, clip, convex_hull, distance, grow, project, random_outline
from agentgym_envs.webarena.sites.maps.plan import RoadPlan
from agentgym_envs.webarena.sites.maps.seed_streets import TownStreets
from agentgym_envs.webarena.sites.maps.wordlists import WORDS

_FORESTS, _LAKES, _RIVERS = 26, 12, 4
_COAST_KM = 9.0
"""Maximum depth of bays into the country's rectangle. No town is that close to its sides."""


class Shape(NamedTuple):
    """An outline, or the course of a river."""

    kind: str
    name: str
    town: int | None
    points: Sequence[Point]


def make_shapes(plan: RoadPlan, rng: random.Random, country: Country, streets: Sequence[TownStreets]) -> list[Shape]:
    """Return all shapes in drawing order."""
    shapes = [Shape("region", town.region, town.number, _cell(country, town)) for town in country.towns]
    shapes += _forests(rng, country)
    shapes += _rivers(rng)
    shapes += _lakes(plan, rng, country)
    shapes.append(Shape("sea", "", None, _coast(rng)))
    for one in streets:
        corners = [junction.point for junction in plan.junctions.values() if junction.town == one.town.number]
        shapes.append(Shape("built", one.town.name, one.town.number, grow(convex_hull(corners), 0.15)))
    for one in streets:
        shapes += [Shape("park", name, one.town.number, grow(outline, -0.02)) for name, outline, _ in one.parks]
    return shapes


def _cell(country: Country, town: Town) -> list[Point]:
    """Return the Voronoi cell of a town."""
    outline: list[Point] = [(0.0, 0.0), (WIDTH_KM, 0.0), (WIDTH_KM, HEIGHT_KM), (0.0, HEIGHT_KM)]
    for other in country.towns:
        if other is not town:
            x, y = other.x - town.x, other.y - town.y
            limit = (other.x**2 + other.y**2 - town.x**2 - town.y**2) / 2
            outline = clip(outline, lambda point, x=x, y=y, limit=limit: limit - x * point[0] - y * point[1])  # type: ignore[misc]
    return outline


def _forests(rng: random.Random, country: Country) -> Iterator[Shape]:
    for name in rng.sample(WORDS["ANIMAL"], _FORESTS):
        while True:
            centre, radius = _random_point(rng), rng.uniform(5, 15)
            if all(distance(centre, (town.x, town.y)) > radius + 5 for town in country.towns):
                break
        yield Shape(
            "forest", f"{name} {rng.choice(('Forest', 'Wood', 'Woods'))}", None, random_outline(rng, centre, radius)
        )


def _lakes(plan: RoadPlan, rng: random.Random, country: Country) -> Iterator[Shape]:
    roads = [plan.ends(number) for number, one in plan.segments.items() if plan.roads[one.road].town is None]
    for name in rng.sample(WORDS["TREE"], _LAKES):
        centre, radius = (0.0, 0.0), 0.0
        while radius < 1.2:
            centre = _random_point(rng)
            space = min(project(centre, *ends)[0] for ends in roads)
            away = min(distance(centre, (town.x, town.y)) for town in country.towns)
            radius = min(rng.uniform(1.5, 7.0), space / 1.3, away - 5)
        yield Shape(
            "lake", f"Lake {name}" if rng.random() < 0.6 else f"{name} Water", None, random_outline(rng, centre, radius)
        )


def _rivers(rng: random.Random) -> Iterator[Shape]:
    """Yield a winding river from inland to each side of the country."""
    for side, name in enumerate(rng.sample(WORDS["TREE"], _RIVERS)):
        x, y = WIDTH_KM * rng.uniform(0.3, 0.7), HEIGHT_KM * rng.uniform(0.3, 0.7)
        goal = ((0.0, y), (WIDTH_KM, y), (x, 0.0), (x, HEIGHT_KM))[side]
        steps = max(4, round(distance((x, y), goal) / 12))
        course = []
        for step in range(steps + 1):
            share, sway = step / steps, 4 * (0 < step < steps)
            across, along = rng.uniform(-sway, sway), rng.uniform(-sway, sway)
            course.append((x + share * (goal[0] - x) + across, y + share * (goal[1] - y) + along))
        yield Shape("river", f"River {name}", None, course)


def _coast(rng: random.Random) -> list[Point]:
    """Return the outline of the land: the country's rectangle with bays."""
    width, height = WIDTH_KM / 40, HEIGHT_KM / 28
    sides = [(width * step, 0.0) for step in range(40)] + [(WIDTH_KM, height * step) for step in range(28)]
    sides += [(WIDTH_KM - width * step, HEIGHT_KM) for step in range(40)]
    sides += [(0.0, HEIGHT_KM - height * step) for step in range(28)]
    points, depth = [], _COAST_KM / 2
    for x, y in sides:
        depth = min(max(depth + rng.uniform(-3, 3), 0.5), _COAST_KM)
        points.append((min(max(x, depth), WIDTH_KM - depth), min(max(y, depth), HEIGHT_KM - depth)))
    return points


def _random_point(rng: random.Random) -> Point:
    return rng.uniform(0, WIDTH_KM), rng.uniform(0, HEIGHT_KM)
