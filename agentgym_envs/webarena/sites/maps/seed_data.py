"""The map's rows at the start of an episode."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Iterable, Sequence

from agentgym_envs.webarena.sites.clock import some_time_ago
from agentgym_envs.webarena.sites.country import HEIGHT_KM, WIDTH_KM, Country
from agentgym_envs.webarena.sites.maps.geometry import degrees
from agentgym_envs.webarena.sites.maps.plan import KINDS, RoadPlan
from agentgym_envs.webarena.sites.maps.seed_accounts import ACCOUNTS, ContributionGenerator, make_accounts
from agentgym_envs.webarena.sites.maps.seed_notes import NoteGenerator
from agentgym_envs.webarena.sites.maps.seed_places import PointOfInterest, make_places
from agentgym_envs.webarena.sites.maps.seed_roads import connect_towns
from agentgym_envs.webarena.sites.maps.seed_shapes import make_shapes
from agentgym_envs.webarena.sites.maps.seed_streets import TownStreets, lay_out_streets
from agentgym_envs.webarena.sites.people import Person
from agentgym_envs.webarena.sites.world import SeedInputs


def fill(database: sqlite3.Connection, seeds: SeedInputs) -> None:
    """Write a country and the contributions of its people into empty tables."""
    rng, country = seeds.rng, seeds.country
    plan = RoadPlan()
    streets = [lay_out_streets(plan, rng, town) for town in country.towns]
    connect_towns(plan, rng, country, streets)
    _add_country(database, rng, country, plan)
    _add_network(database, rng, plan)
    shapes = make_shapes(plan, rng, country, streets)
    texts = (" ".join(f"{x:.3f},{y:.3f}" for x, y in shape.points) for shape in shapes)
    _add(
        database,
        "map_shapes",
        ((shape.kind, shape.name, shape.town, text) for shape, text in zip(shapes, texts, strict=True)),
    )
    places = make_places(plan, rng, country, streets, [_home(streets, person) for person in seeds.people])
    members, accounts = make_accounts(rng, seeds.people)
    _insert(database, "map_accounts", accounts)
    _add_places(database, NoteGenerator(plan, rng, streets, ACCOUNTS), rng, places)
    _add_keeping(database, rng, members, places)
    _add_addresses(database, rng, streets, members[0], places)


def _add_country(database: sqlite3.Connection, rng: random.Random, country: Country, plan: RoadPlan) -> None:
    # The stored digest identifies a network. It covers class and field names: renaming them changes every world.
    parts = (plan.junctions, plan.roads, plan.segments)
    digest = hashlib.sha256(repr([[*part.items()] for part in parts]).encode()).hexdigest()
    _add(database, "map_country", [(country.name, WIDTH_KM, HEIGHT_KM, digest[:16])])
    seats = {name: next(town.number for town in country.towns if town.region == name) for name in country.regions}
    _add(database, "map_regions", seats.items())
    regions = {name: number for number, name in enumerate(seats, 1)}
    rows = []
    for town in country.towns:
        height, about = rng.randint(4, 620), _about_town(country, town.number)
        point = (town.x, town.y)
        rows.append(
            (town.name, regions[town.region], town.population, town.zip, height, *point, *degrees(point), about)
        )
    _add(database, "map_towns", rows)


def _about_town(country: Country, number: int) -> str:
    town = country.towns[number - 1]
    if number == 1:
        return f"The capital of {country.name} and its largest town."
    seat = next(one for one in country.towns if one.region == town.region)
    if seat is town:
        return f"The seat of {town.region}, on the {_side(town.x, town.y)} of {country.name}."
    return f"A town in {town.region}, on the {_side(town.x, town.y)} of {country.name}."


def _side(x: float, y: float) -> str:
    vertical = "north" if y < HEIGHT_KM / 3 else "south" if y > 2 * HEIGHT_KM / 3 else ""
    horizontal = "west" if x < WIDTH_KM / 3 else "east" if x > 2 * WIDTH_KM / 3 else ""
    return f"{vertical}{horizontal} side" if vertical or horizontal else "central plain"


def _add_network(database: sqlite3.Connection, rng: random.Random, plan: RoadPlan) -> None:
    _add(database, "map_junctions", ((*one.point, one.town, one.name) for one in plan.junctions.values()))
    rows = []
    for road in plan.roads.values():
        usual = KINDS[road.kind]
        surface = "paving stones" if road.kind == "pedestrian" else _surface(rng, road.kind)
        lit = int(road.town is not None and road.kind != "path")
        walk, cycle = int(usual.walk), int(road.cycle)
        rows.append((road.name, road.kind, road.town, road.speed, walk, cycle, surface, lit, usual.lanes))
    _add(database, "map_roads", rows)
    _add(database, "map_segments", ((*one,) for one in plan.segments.values()))


def _surface(rng: random.Random, kind: str) -> str:
    if kind == "path":
        return rng.choice(("gravel", "gravel", "asphalt"))
    return "cobblestone" if kind == "residential" and rng.random() < 0.12 else "asphalt"


def _home(streets: Sequence[TownStreets], person: Person) -> tuple[int, int]:
    house, street = person.street.split(" ", 1)
    return streets[person.town.number - 1].roads[street], int(house)


def _add_places(
    database: sqlite3.Connection, writer: NoteGenerator, rng: random.Random, places: Sequence[PointOfInterest]
) -> None:
    changes = writer.changes(places)
    versions = [1] * len(places)
    last = [(some_time_ago(rng, least_days=520, most_days=1500), writer.random_account(1)) for _ in places]
    logged = []
    for number, account, comment, moment in changes:
        versions[number - 1] += 1
        last[number - 1] = moment, account
        logged.append((number, account, versions[number - 1], comment, moment))
    rows = []
    for place, version, (moment, account) in zip(places, versions, last, strict=True):
        at = (place.spot.segment, place.spot.along, *place.spot.point, *degrees(place.spot.point))
        known = tuple(getattr(place.details, name) for name in place.details.__slots__)
        rows.append(
            (
                place.name,
                place.category,
                place.town.number,
                place.road,
                place.house,
                *at,
                *known,
                version,
                moment,
                account,
            )
        )
    _add(database, "map_places", rows)
    _add(database, "map_changes", logged)
    notes = writer.notes(places)
    _insert(database, "map_notes", notes.notes)
    _insert(database, "map_note_comments", notes.comments)


def _add_keeping(
    database: sqlite3.Connection, rng: random.Random, members: Sequence[Person], places: Sequence[PointOfInterest]
) -> None:
    kept = ContributionGenerator(rng, members, places).generate()
    _insert(database, "map_lists", kept.lists)
    _insert(database, "map_saved", kept.saved)
    _insert(database, "map_traces", kept.traces)
    _insert(database, "map_trace_tags", kept.tags)


def _add_addresses(
    database: sqlite3.Connection,
    rng: random.Random,
    streets: Sequence[TownStreets],
    person: Person,
    places: Sequence[PointOfInterest],
) -> None:
    """Add the home of the agent's person, and an office in the same town as their workplace."""
    offices = [place for place in places if place.category == "office" and place.town is person.town]
    work = rng.choice(offices)
    _add(database, "map_addresses", [(1, "Home", *_home(streets, person)), (1, "Work", work.road, work.house)])


def _add(database: sqlite3.Connection, table: str, rows: Iterable[Sequence[object]]) -> None:
    """Insert rows with ids that count from 1."""
    _insert(database, table, [(number, *row) for number, row in enumerate(rows, 1)])


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[Sequence[object]]) -> None:
    marks = ", ".join("?" * len(rows[0]))
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
