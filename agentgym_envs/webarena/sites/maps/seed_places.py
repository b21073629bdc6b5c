"""The places of a country: basic facilities in every town, more in larger towns, and places between towns."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentgym_envs.webarena.sites.country import Country, Town
from agentgym_envs.webarena.sites.maps.geometry import Point, distance
from agentgym_envs.webarena.sites.maps.plan import RoadPlan, Spot, spot_on
from agentgym_envs.webarena.sites.maps.seed_details import Details, details
from agentgym_envs.webarena.sites.maps.seed_names import Namer
from agentgym_envs.webarena.sites.maps.seed_streets import TownStreets

_EXTRA = 540
"""Number of places distributed to towns by population, in addition to the basic facilities."""
_SPECS = """
restaurant 2 16 30 1
cafe 1 9 30 1
pub 1 6 30 1
fast_food 0 6 30 1
bakery 1 5 30 1
hotel 1 5 30 1
hostel 0 1 12 0
guest_house 0 2.5 30 0
gallery 0 2 15 1
theatre 0 1.2 10 1
cinema 0 1.5 16 1
library 1 1 30 1
pharmacy 1 4 30 1
hospital 0 0.7 9 0
doctors 1 3.5 30 0
dentist 0 2.5 30 0
veterinary 0 1 30 0
school 1 4 30 0
university 0 0.4 5 0
town_hall 1 0 30 1
post_office 1 0.8 30 1
police 0 0.8 20 0
fire_station 1 0.2 30 0
bank 1 3 30 1
office 0 5 14 0
supermarket 1 5 30 0
convenience 0 3 30 0
bookshop 0 2.5 20 1
clothes 0 3 20 1
hardware 0 1.5 30 0
florist 0 1.5 30 1
bicycle_shop 0 1.5 20 0
hairdresser 1 3 30 0
marketplace 0 0.4 30 1
swimming_pool 0 1 20 0
sports_centre 0 1.5 30 0
fuel 1 2 30 0
charging_station 1 3 30 0
parking 1 4 30 1
bicycle_rental 0 2 12 1
"""
"""By category: number in every town, weight among the extra places, number of largest towns that may have it, and
1 if it is near the town centre."""
_WILD = {"castle": 8, "viewpoint": 9, "peak": 12, "campsite": 14}
"""Numbers of places at roads between towns, by category."""


@dataclass(frozen=True, slots=True)
class PointOfInterest:
    """A place. Its id is its position in the list, counted from 1."""

    name: str
    category: str
    town: Town
    road: int
    house: int | None
    spot: Spot
    details: Details


@dataclass(frozen=True, slots=True)
class _Spec:
    base: int
    weight: float
    ranks: int
    central: bool


def make_places(
    plan: RoadPlan,
    rng: random.Random,
    country: Country,
    streets: Sequence[TownStreets],
    homes: Sequence[tuple[int, int]],
) -> list[PointOfInterest]:
    """Generate all places in random order. `homes` are houses (road, number) that must stay free."""
    maker = _PlaceGenerator(plan, rng, set(homes))
    places = [place for town in streets for place in maker.in_town(town, _wanted(rng, country, town.town))]
    places += maker.outside(country)
    rng.shuffle(places)
    return places


def _wanted(rng: random.Random, country: Country, town: Town) -> list[tuple[str, bool]]:
    """Return the categories of a town's places, and if each is near the centre."""
    specs = {key: spec for key, spec in _read_specs().items() if town.number <= spec.ranks}
    wanted = [key for key, spec in specs.items() for _ in range(spec.base)]
    total = sum(one.population**0.85 for one in country.towns)
    extra = round(_EXTRA * town.population**0.85 / total)
    wanted += rng.choices(list(specs), [spec.weight for spec in specs.values()], k=extra)
    wanted += ["hospital"] * (town.number <= 9) + ["university"] * (town.number <= 5)
    wanted += ["office"] * 2  # every town has workplaces
    wanted += ["restaurant"]
    return [(key, specs[key].central if key in specs else False) for key in wanted]


def _read_specs() -> dict[str, _Spec]:
    specs = {}
    for line in _SPECS.split("\n")[1:-1]:
        key, base, weight, ranks, central = line.split()
        specs[key] = _Spec(int(base), float(weight), int(ranks), central == "1")
    return specs


class _PlaceGenerator:
    """Generates places. `_taken` are the occupied houses."""

    def __init__(self, plan: RoadPlan, rng: random.Random, taken: set[tuple[int, int]]) -> None:
        self._plan, self._rng, self._taken = plan, rng, taken
        self._namer = Namer(rng)

    def in_town(self, streets: TownStreets, wanted: Sequence[tuple[str, bool]]) -> Iterator[PointOfInterest]:
        for category, central in wanted:
            yield self._at_street(streets, category, central)
        for _ in range(self._museums(streets.town)):
            yield self._museum(streets)
        yield from self._stations(streets)
        for name, outline, road in streets.parks:
            middle = (sum(x for x, _ in outline) / 4, sum(y for _, y in outline) / 4)
            yield self._place(name, "park", streets.town, road, None, self._plan.nearest(road, middle))

    def outside(self, country: Country) -> Iterator[PointOfInterest]:
        roads = [number for number, road in self._plan.roads.items() if road.kind in ("primary", "secondary")]
        for category, count in _WILD.items():
            for _ in range(count):
                road = self._rng.choice(roads)
                away = self._rng.choice((-1, 1)) * self._rng.uniform(0.05, 0.4)
                yield from self._between(country, category, road, self._rng.uniform(0.15, 0.85), away)
        for number, motorway in self._plan.roads.items():
            if motorway.kind == "motorway":
                for _ in range(1 + self._plan.length(number) // 70_000):
                    yield from self._between(country, "services", number, self._rng.uniform(0.1, 0.9), 0.06)
        for town in (*country.towns[:3], self._rng.choice(country.towns[4:9])):
            yield self._airport(town, roads)

    def _museums(self, town: Town) -> int:
        return {1: 7, 2: 4, 3: 3, 4: 3, 5: 2, 6: 2}.get(town.number, self._rng.random() < 0.7)

    def _museum(self, streets: TownStreets) -> PointOfInterest:
        road, house = self._house(streets, central=True)
        name, subject = self._namer.museum(streets.town.name)
        return self._place(name, "museum", streets.town, road, house, self._plan.house(road, house), subject)

    def _stations(self, streets: TownStreets) -> Iterator[PointOfInterest]:
        """Yield the stations: most towns have one, the largest two or three."""
        count = {1: 3, 2: 2, 3: 2}.get(streets.town.number, int(self._rng.random() < 0.75))
        for _ in range(count):
            yield self._at_street(streets, "station", False)

    def _at_street(self, streets: TownStreets, category: str, central: bool) -> PointOfInterest:
        while True:
            road, house = self._house(streets, central=central)
            named = self._namer.name(category, streets.town.name, self._plan.roads[road].name)
            if named is not None:
                name, cuisine, operator = named
                spot = self._plan.house(road, house)
                return self._place(name, category, streets.town, road, house, spot, None, cuisine, operator)

    def _house(self, streets: TownStreets, *, central: bool) -> tuple[int, int]:
        """Return a free house."""
        roads = [road for road in streets.roads.values() if self._plan.roads[road].kind != "path"]
        kinds = [self._plan.roads[road].kind for road in roads]
        weights = [4 if central and kind in ("tertiary", "pedestrian") else 1 for kind in kinds]
        while True:
            road = self._rng.choices(roads, weights)[0]
            house = round(self._rng.gauss(90, 26 if central else 50))
            if 1 <= house <= 180 and (road, house) not in self._taken:
                self._taken.add((road, house))
                return road, house

    def _between(
        self, country: Country, category: str, road: int, share: float, away: float
    ) -> Iterator[PointOfInterest]:
        """Yield a place at a road between towns, unless no name is left."""
        spot = spot_on(self._plan, road, share, away)
        town = _nearest_town(country, spot.point)
        named = self._namer.name(category, town.name, self._plan.roads[road].name)
        if named is not None:
            yield self._place(named[0], category, town, road, None, spot, None, None, named[2])

    def _airport(self, town: Town, roads: Sequence[int]) -> PointOfInterest:
        """Return an airport a few kilometres from the town, at the road with the nearest end."""
        ends = []
        for road in roads:
            chain = self._plan.chains[road]
            first, last = self._plan.ends(chain[0])[0], self._plan.ends(chain[-1])[1]
            ends += [(distance(end, (town.x, town.y)), road, end == last) for end in (first, last)]
        _, road, back = min(ends)
        share = self._rng.uniform(4.0, 7.0) * 1000 / self._plan.length(road)
        spot = spot_on(self._plan, road, 1 - share if back else share, 0.35)
        while True:
            named = self._namer.name("airport", town.name, "")
            if named is not None:
                return self._place(named[0], "airport", town, road, None, spot)

    def _place(
        self,
        name: str,
        category: str,
        town: Town,
        road: int,
        house: int | None,
        spot: Spot,
        subject: str | None = None,
        cuisine: str | None = None,
        operator: str | None = None,
    ) -> PointOfInterest:
        more = details(self._rng, category, name, town, subject=subject, cuisine=cuisine, operator=operator)
        return PointOfInterest(name, category, town, road, house, spot, more)


def _nearest_town(country: Country, point: Point) -> Town:
    return min(country.towns, key=lambda town: distance((town.x, town.y), point))
