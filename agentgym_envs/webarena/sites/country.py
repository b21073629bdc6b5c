"""An invented country with towns and streets, shared by all sites."""

from __future__ import annotations

import random
from dataclasses import dataclass

from agentgym_envs.webarena.sites.words import words

_STARTS = words("""
    Alder Amber Ash Barrow Birch Black Bram Brook Cedar Cinder Clay Copper Crow Dun East Elder Elm Fair Fen Fern Fox
    Frost Glen Gold Gray Hart Haw Hazel Heath High Holly Iron Kings Lake Lark Lin Long Maple Marsh Mill Moss North Oak
    Otter Pine Quarry Raven Red Rose Rowan Salt Sand Silver South Star Stone Storm Swan Thorn Wal West White Wind Wolf
    Wood Wren Yew
""")
_ENDS = words("""
    bank bridge brook bury by castle cliff cross dale den field ford gate grove ham haven hill holm hurst land leigh
    mere minster moor mouth point port ridge shore side stead stoke ton vale view water well wick wood worth
""")
_REGIONS = words("""
    Aldmark Brannoch Calder Dunmarch Estermoor Fallowshire Glenmarch Harrowland Islemere Kestrel Lowmoor Merrowshire
    Norvale Ostmark Pellshire Ravenmark
""")
_STREETS = words("""
    Station Mill Church Park Market Bridge River Castle Garden School Harbour Orchard Chapel Forest Meadow Victory Canal
    Foundry Linden Chestnut Juniper Granary Weaver Potter Tanner Saddler Mason Cooper Lantern Willow
""")
_KINDS = ("Street", "Road", "Avenue", "Lane", "Way")
WIDTH_KM, HEIGHT_KM = 420.0, 300.0
"""Size of the country. Positions are measured from its north-west corner."""
_MIN_DISTANCE_KM = 28.0
TOWNS, REGIONS = 30, 6


@dataclass(frozen=True, slots=True)
class Town:
    """A town. Its centre is `x` km east and `y` km south of the country's north-west corner. `number` counts from 1."""

    number: int
    name: str
    region: str
    x: float
    y: float
    population: int
    zip: str
    streets: tuple[str, ...]

    def address(self, rng: random.Random) -> str:
        """Return a random house in the town: "12 Mill Street"."""
        return f"{rng.randint(1, 180)} {rng.choice(self.streets)}"


@dataclass(frozen=True, slots=True)
class Country:
    """A country. `towns` are sorted by falling population; the first is the capital."""

    name: str
    towns: tuple[Town, ...]

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of the regions, in the order of their largest towns."""
        return tuple(dict.fromkeys(town.region for town in self.towns))


def make_country(rng: random.Random) -> Country:
    """Generate a random country."""
    points = _points(rng)
    centres = rng.sample(points, REGIONS)
    regions = rng.sample(_REGIONS, REGIONS)
    populations = sorted((int(rng.lognormvariate(10.3, 0.9)) + 2_000 for _ in points), reverse=True)
    names = _names(rng, len(points))
    towns = []
    for number, ((x, y), name, population) in enumerate(zip(points, names, populations, strict=True), 1):
        nearest = min(range(REGIONS), key=lambda n: (centres[n][0] - x) ** 2 + (centres[n][1] - y) ** 2)
        streets = _streets(rng, 14 if number <= 5 else 8)
        code = f"{rng.randint(10, 98)}{number:03d}"
        towns.append(Town(number, name, regions[nearest], x, y, population, code, streets))
    return Country(f"{rng.choice(_STARTS)}land", tuple(towns))


def _points(rng: random.Random) -> list[tuple[float, float]]:
    """Return the positions of the towns, none within `_MIN_DISTANCE_KM` of another."""
    points: list[tuple[float, float]] = []
    while len(points) < TOWNS:
        x, y = round(rng.uniform(15, WIDTH_KM - 15), 1), round(rng.uniform(15, HEIGHT_KM - 15), 1)
        if all((x - a) ** 2 + (y - b) ** 2 > _MIN_DISTANCE_KM**2 for a, b in points):
            points.append((x, y))
    return points


def _names(rng: random.Random, count: int) -> list[str]:
    """Return unique town names without a repeated element such as "Woodwood"."""
    names: dict[str, None] = {}
    while len(names) < count:
        start, end = rng.choice(_STARTS), rng.choice(_ENDS)
        if start.lower() != end:
            names[start + end] = None
    return list(names)


def _streets(rng: random.Random, count: int) -> tuple[str, ...]:
    return tuple(f"{name} {rng.choice(_KINDS)}" for name in rng.sample(_STREETS, count))
