"""The streets of a town, laid out by chance: a crooked grid with shopping streets, dead ends and ways through parks."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from agentgym_envs.webarena.sites.country import Town
from agentgym_envs.webarena.sites.maps.geometry import Point, between
from agentgym_envs.webarena.sites.maps.plan import Plan
from agentgym_envs.webarena.sites.maps.wordlists import PATHS, TREES


@dataclass(frozen=True, slots=True)
class Streets:
    """A town on the plan.

    `roads` are numbers by names, `gates` the outer ends of the main streets; a park has its outline and a street at it.
    """

    town: Town
    roads: dict[str, int]
    gates: tuple[int, ...]
    parks: tuple[tuple[str, tuple[Point, ...], int], ...]


@dataclass(slots=True)
class _Grid:
    """Junctions by column and row; `columns` and `rows` are how many there are."""

    columns: int
    rows: int
    numbers: dict[tuple[int, int], int]
    points: dict[tuple[int, int], Point]


def lay_out(plan: Plan, rng: random.Random, town: Town) -> Streets:
    """Put a town's streets on the plan."""
    grid = _make_grid(plan, rng, town)
    names = list(town.streets)
    rows, columns = names[: grid.rows], names[grid.rows :]
    quiet = _shopping_line(rng, rows, grid.rows)
    roads: dict[str, int] = {}
    gates: list[int] = []
    for across, lines in ((True, rows), (False, columns)):
        for line, name in enumerate(lines):
            main = line == len(lines) // 2
            shops = across and line == quiet
            chain = _line(plan, rng, grid, town, line=line, across=across, main=main, shops=shops)
            kind = "tertiary" if main else "pedestrian" if shops else "residential"
            speed = rng.choice((30, 30, 40, 50)) if kind == "residential" else None
            roads[name] = plan.road(name, kind, chain, town=town.number, speed=speed)
            gates += [chain[0], chain[-1]] if main else []
    parks = _parks(plan, rng, grid, town, rows, roads)
    return Streets(town, roads, tuple(gates), parks)


def _make_grid(plan: Plan, rng: random.Random, town: Town) -> _Grid:
    rows = len(town.streets) // 2
    columns = len(town.streets) - rows
    block = 0.19 + 0.045 * math.log(town.population / 2_000)
    tilt = rng.uniform(-0.7, 0.7)
    east = _offsets(rng, columns, block)
    south = _offsets(rng, rows, block)
    grid = _Grid(columns, rows, {}, {})
    for row in range(rows):
        for column in range(columns):
            along = east[column] + rng.uniform(-0.09, 0.09) * block
            down = south[row] + rng.uniform(-0.09, 0.09) * block
            x = town.x + along * math.cos(tilt) - down * math.sin(tilt)
            y = town.y + along * math.sin(tilt) + down * math.cos(tilt)
            grid.points[column, row] = (x, y)
            grid.numbers[column, row] = plan.junction((x, y), town.number)
    return grid


def _offsets(rng: random.Random, count: int, block: float) -> list[float]:
    """How far the lines of a grid are from its middle."""
    steps = [0.0]
    for _ in range(count - 1):
        steps.append(steps[-1] + block * rng.uniform(0.75, 1.3))
    return [step - steps[-1] / 2 for step in steps]


def _shopping_line(rng: random.Random, rows: list[str], count: int) -> int | None:
    """The row whose street is closed to cars, if any: a market's by preference, never an outer or the main one."""
    inner = [line for line in range(1, count - 1) if line != count // 2]
    markets = [line for line in inner if rows[line].startswith("Market")]
    if markets:
        return markets[0]
    return rng.choice(inner) if count > 4 or rng.random() < 0.3 else None


def _line(
    plan: Plan, rng: random.Random, grid: _Grid, town: Town, *, line: int, across: bool, main: bool, shops: bool
) -> list[int]:
    """The junctions of a street, from one end to the other; inner streets may begin later, others end dead."""
    count = grid.columns if across else grid.rows
    places = [(step, line) if across else (line, step) for step in range(count)]
    lines = grid.rows if across else grid.columns
    inner = 0 < line < lines - 1 and not main
    first = 1 if shops or (inner and rng.random() < 0.3) else 0
    last = count - 1 if shops or (inner and rng.random() < 0.3) else count
    kept = [grid.numbers[place] for place in places[first:last]]
    if first == 0 and (main or rng.random() < 0.38):
        kept.insert(0, _beyond(plan, rng, grid, town, places[1], places[0]))
    if last == count and (main or rng.random() < 0.38):
        kept.append(_beyond(plan, rng, grid, town, places[-2], places[-1]))
    return kept


def _beyond(
    plan: Plan, rng: random.Random, grid: _Grid, town: Town, before: tuple[int, int], end: tuple[int, int]
) -> int:
    """A new junction outside the grid, about where a line that leads to its edge would go on to."""
    x, y = between(grid.points[before], grid.points[end], rng.uniform(1.45, 2.0))
    return plan.junction((x + rng.uniform(-0.04, 0.04), y + rng.uniform(-0.04, 0.04)), town.number)


def _parks(
    plan: Plan, rng: random.Random, grid: _Grid, town: Town, rows: list[str], roads: dict[str, int]
) -> tuple[tuple[str, tuple[Point, ...], int], ...]:
    """Blocks that are parks, most of them with a path from corner to corner."""
    blocks = [(column, row) for column in range(grid.columns - 1) for row in range(grid.rows - 1)]
    count = min(1 + town.population // 30_000, 5) + (grid.rows > 4)
    trees = rng.sample(TREES, count)
    parks = []
    for (column, row), tree in zip(rng.sample(blocks, count), trees, strict=True):
        corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1)]
        outline = tuple(grid.points[corner] for corner in corners)
        name = f"{tree} {rng.choice(('Park', 'Park', 'Gardens', 'Green'))}"
        if rng.random() < 0.75:
            ends = [corners[0], corners[2]] if rng.random() < 0.5 else [corners[1], corners[3]]
            path = plan.road(
                f"{tree} {rng.choice(PATHS)}",
                "path",
                [grid.numbers[end] for end in ends],
                town=town.number,
                cycle=rng.random() < 0.6,
            )
            roads[plan.roads[path].name] = path
        parks.append((name, outline, roads[rows[row]]))
    return tuple(parks)
