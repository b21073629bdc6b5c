"""Tasks about routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import MAP, MODE_OF, MODE_WORDS, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, given
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_MAX_KM = {"car": 400.0, "bicycle": 60.0, "foot": 4.0}


def _routes(world: World, rng: Random) -> Iterator[Params]:
    """Yield places within reach of each mode, but not next to each other."""
    for mode, reach in _MAX_KM.items():
        for start, end in queries.pairs(world, rng, 14, most_km=reach):
            if queries.route_between(world, mode, start["name"], end["name"]).metres >= 1000:
                yield {"start": start["name"], "end": end["name"], "mode": MODE_WORDS[mode]}


def _first_step(page: PageReader) -> str:
    """Return the length of the first step of a route."""
    total = steps.read_summary(page).length
    lengths = (text for text in page.texts(after=total) if re.fullmatch(r"[\d.,]+ k?m", text) and text != total)
    return next(lengths, "0 km")


route_length = MapTemplate(
    "maps-how-far",
    "information",
    "medium",
    intents=(
        "How many kilometres is it {mode} from {start} to {end}?",
        "What is the distance in kilometres from {start} to {end}, going {mode}?",
        "I want to go from {start} to {end} {mode}. How many kilometres is that?",
    ),
    instances=_routes,
    expected=lambda world, start, end, mode: says(
        f"{queries.kilometres(queries.route_between(world, MODE_OF[mode], start, end)):,.1f}"
    ),
    solution=[
        do(steps.request_directions, "{start}", "{end}", "{mode}"),
        answer(lambda page: steps.read_summary(page).kilometres),
    ],
    mistake=answer(_first_step),
)

route_duration = MapTemplate(
    "maps-how-long",
    "information",
    "medium",
    intents=(
        "How long does it take {mode} from {start} to {end}?",
        "What is the travel time from {start} to {end} {mode}?",
        "I am going from {start} to {end} {mode}. How much time should I allow?",
    ),
    instances=_routes,
    expected=lambda world, start, end, mode: queries.travel_time(world, MODE_OF[mode], start, end),
    solution=[
        do(steps.request_directions, "{start}", "{end}", "{mode}"),
        answer(lambda page: steps.read_summary(page).time),
    ],
    mistake=answer(steps.hedged_duration),
)


def _duration_difference_instances(world: World, rng: Random) -> Iterator[Params]:
    """Routes in or near a town, on which the faster mode is faster."""
    for start, end in queries.pairs(world, rng, 40, most_km=6):
        fast = rng.choice(("bicycle", "car"))
        params = {"start": start["name"], "end": end["name"], "slow": MODE_WORDS["foot"], "fast": MODE_WORDS[fast]}
        if _minutes_saved(world, params) > 1:
            yield params


def _compare_modes(page: PageReader, start: str, end: str, slow: str, fast: str) -> Steps[int]:
    yield from steps.request_directions(page, start, end, slow)
    longer = steps.read_summary(page).minutes
    yield from steps.change_mode(page, fast)
    return longer - steps.read_summary(page).minutes


duration_difference = MapTemplate(
    "maps-how-much-longer",
    "information",
    "medium",
    held_out=True,
    intents=(
        "How many minutes longer does it take {slow} than {fast} from {start} to {end}?",
        "From {start} to {end}: by how many minutes is one faster {fast} than {slow}?",
        "Compare going {slow} with going {fast} from {start} to {end}. How many minutes does the latter save?",
    ),
    instances=_duration_difference_instances,
    expected=lambda world, params: says(_minutes_saved(world, params)),
    solution=_compare_modes,
    mistake=[
        do(steps.request_directions, "{start}", "{end}", "{slow}"),
        answer(lambda page: steps.read_summary(page).minutes),
    ],
)


def _minutes_saved(world: World, params: Params) -> int:
    times = [
        queries.minutes(queries.route_between(world, MODE_OF[params[one]], params["start"], params["end"]))
        for one in ("slow", "fast")
    ]
    return times[0] - times[1]


def _motorway_exit_instances(world: World) -> Iterator[Params]:
    """Pairs of towns whose route leaves a motorway once."""
    names = queries.towns(world)[:12]
    for start in names:
        for end in names:
            if start != end and len(queries.motorway_exits(world, start, end)) == 1:
                yield {"start": start, "end": end}


def _motorway_exit_expected(world: World, start: str, end: str) -> Says:
    exits = world.rows("SELECT name FROM map_junctions WHERE name IS NOT NULL ORDER BY id")
    wanted = queries.motorway_exits(world, start, end)[0]
    return says(wanted, others=[row["name"] for row in exits if row["name"] != wanted])


motorway_exit = MapTemplate(
    "maps-leave-motorway",
    "information",
    "medium",
    intents=(
        "Driving by car from {start} to {end}, at which junction do I leave the motorway?",
        "I go by car from {start} to {end}. What is the name of the junction at which one leaves the motorway?",
        "What is the motorway exit on the way from {start} to {end} by car called?",
    ),
    instances=_motorway_exit_instances,
    expected=_motorway_exit_expected,
    solution=[
        do(steps.request_directions, "{start}", "{end}", MODE_WORDS["car"]),
        answer(lambda page: page.search(r"^Leave the M\d+ at (.+?) onto ")[0]),
    ],
    mistake=answer(lambda page: page.search(r"^Join the M\d+ at (.+)$")[0]),
)

show_route = MapTemplate(
    "maps-show-the-way",
    "navigation",
    "medium",
    intents=(
        "Show me the directions {mode} from {start} to {end}.",
        "Bring up the route from {start} to {end} {mode}.",
        "Get directions from {start} to {end}, going {mode}.",
    ),
    instances=_routes,
    expected=lambda world, params: EndsOn(queries.directions(world, params)),
    solution=[do(steps.request_directions, "{start}", "{end}", "{mode}")],
    mistake=[do(steps.request_directions, "{start}", "{end}", "{mode}"), click("link", "Reverse")],
)


def _show_route_from_home_expected(world: World, own: str, mode: str, end: str) -> ExpectedResult:
    query = "SELECT road, house FROM map_addresses WHERE account = 1 AND label = ?"
    road, house = tuple(world.rows(query, own.capitalize())[0])
    target = f"place-{queries.place(world, end)['id']}"
    return EndsOn(f"{MAP}/directions?from=house-{road}-{house}&to={target}&mode={MODE_OF[mode]}")


def _own_address(page: PageReader, own: str) -> str:
    return page.texts(after=f"{own.capitalize()}:")[0]


show_route_from_home = MapTemplate(
    "maps-home-to",
    "navigation",
    "medium",
    intents=(
        "Show me how to get from my {own} address to {end} {mode}.",
        "I want directions {mode} from my {own} address to {end}.",
        "Bring up the way from my saved {own} address to {end}, {mode}.",
    ),
    instances=choose(
        lambda world: [{"end": row["name"]} for row in queries.places(world)],
        sample=30,
        own=("home", "work"),
        mode=tuple(MODE_WORDS.values()),
    ),
    expected=_show_route_from_home_expected,
    solution=[do(steps.request_directions, given(_own_address), "{end}", "{mode}")],
)


def _walk_from_best_hotel_instances(world: World) -> Iterator[Params]:
    """Towns with a station and several hotels, and a single hotel with the most stars."""
    for town in world.rows("SELECT id, name FROM map_towns ORDER BY id"):
        hotels = world.rows("SELECT stars FROM map_places WHERE category = 'hotel' AND town = ?", town["id"])
        stars = [row["stars"] for row in hotels]
        stations = queries.places(world, "p.category = 'station' AND p.town = ?", town["id"])
        if len(stars) > 1 and stars.count(max(stars)) == 1:
            yield from ({"town": town["name"], "station": row["name"]} for row in stations)


def _walk_from_best_hotel_expected(world: World, town: str, station: str) -> Says:
    hotel = world.value(
        "SELECT p.name FROM map_places p JOIN map_towns t ON t.id = p.town "
        "WHERE p.category = 'hotel' AND t.name = ? ORDER BY p.stars DESC",
        town,
    )
    return queries.travel_time(world, "foot", hotel, station)


walk_from_best_hotel = MapTemplate(
    "maps-stars-to-station",
    "information",
    "hard",
    held_out=True,
    intents=(
        "How long is the walk from the hotel with the most stars in {town} to {station}?",
        "Find the hotel in {town} that has the most stars. How long does it take on foot from there to {station}?",
        "I am staying at the hotel of {town} with the most stars. How much time do I need to walk to {station}?",
    ),
    instances=_walk_from_best_hotel_instances,
    expected=_walk_from_best_hotel_expected,
    solution=[
        do(steps.filter_places, "hotel", "{town}"),
        choose_option("Sort by", "Stars, most first"),
        do(steps.show_places),
        do(steps.request_directions, steps.nth_place(0), "{station}", MODE_WORDS["foot"]),
        answer(lambda page: steps.read_summary(page).time),
    ],
    mistake=[do(steps.request_directions, "{town}", "{station}", MODE_WORDS["foot"]), answer(steps.hedged_duration)],
)
