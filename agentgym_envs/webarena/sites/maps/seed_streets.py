"""The streets of a town: an irregular grid with shopping streets, dead ends and paths through parks."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from agentgym_envs.webarena.sites.country import Town
from agentgym_envs.webarena.sites.maps.geometry import Point, interpolate
from agentgym_envs.webarena.sites.maps.plan import RoadPlan
from agentgym_envs.webarena.sites.maps.wordlists import PATHS, TREES


@dataclass(frozen=True, slots=True)
class TownStreets:
    """The streets of a town.

    `roads` are ids by name. `gates` are the outer ends of the main streets. A park has a name, an outline and an
    adjacent street.
    """

    town: Town
    roads: dict[str, int]
    gates: tuple[int, ...]
    parks: tuple[tuple[str, tuple[Point, ...], int], ...]


@dataclass(slots=True)
class _StreetGrid:
    """Junctions by column and row; `columns` and `rows` are their numbers."""

    columns: int
    rows: int
    numbers: dict[tuple[int, int], int]
    points: dict[tuple[int, int], Point]


def lay_out_streets(plan: RoadPlan, rng: random.Random, town: Town) -> TownStreets:
    """Add the streets of a town to the plan."""
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
    return TownStreets(town, roads, tuple(gates), parks)


def _make_grid(plan: RoadPlan, rng: random.Random, town: Town) -> _StreetGrid:
    rows = len(town.streets) // 2
    columns = len(town.streets) - rows
    block = 0.19 + 0.045 * math.log(town.population / 2_000)
    tilt = rng.uniform(-0.7, 0.7)
    east = _offsets(rng, columns, block)
    south = _offsets(rng, rows, block)
    grid = _StreetGrid(columns, rows, {}, {})
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
    """Return the distances of the grid lines from the centre."""
    steps = [0.0]
    for _ in range(count - 1):
        steps.append(steps[-1] + block * rng.uniform(0.75, 1.3))
    return [step - steps[-1] / 2 for step in steps]


def _shopping_line(rng: random.Random, rows: list[str], count: int) -> int | None:
    """Return the row that is a pedestrian street, if any: a market street if possible, never an outer or main row."""
    inner = [line for line in range(1, count - 1) if line != count // 2]
    markets = [line for line in inner if rows[line].startswith("Market")]
    if markets:
        return markets[0]
    return rng.choice(inner) if count > 4 or rng.random() < 0.3 else None


def _line(
    plan: RoadPlan,
    rng: random.Random,
    grid: _StreetGrid,
    town: Town,
    *,
    line: int,
    across: bool,
    main: bool,
    shops: bool,
) -> list[int]:
    """Return the junctions of a street in order. Inner streets may start later or be dead ends."""
    count = grid.columns if across else grid.rows
    cells = [(step, line) if across else (line, step) for step in range(count)]
    lines = grid.rows if across else grid.columns
    inner = 0 < line < lines - 1 and not main
    first = 1 if shops or (inner and rng.random() < 0.3) else 0
    last = count - 1 if shops or (inner and rng.random() < 0.3) else count
    kept = [grid.numbers[cell] for cell in cells[first:last]]
    if first == 0 and (main or rng.random() < 0.38):
        kept.insert(0, _beyond(plan, rng, grid, town, cells[1], cells[0]))
    if last == count and (main or rng.random() < 0.38):
        kept.append(_beyond(plan, rng, grid, town, cells[-2], cells[-1]))
    return kept


def _beyond(
    plan: RoadPlan, rng: random.Random, grid: _StreetGrid, town: Town, before: tuple[int, int], end: tuple[int, int]
) -> int:
    """Add a junction outside the grid, roughly in line with a street."""
    x, y = interpolate(grid.points[before], grid.points[end], rng.uniform(1.45, 2.0))
    return plan.junction((x + rng.uniform(-0.04, 0.04), y + rng.uniform(-0.04, 0.04)), town.number)


def _parks(
    plan: RoadPlan, rng: random.Random, grid: _StreetGrid, town: Town, rows: list[str], roads: dict[str, int]
) -> tuple[tuple[str, tuple[Point, ...], int], ...]:
    """Return blocks that are parks. Most have a path from corner to corner."""
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
