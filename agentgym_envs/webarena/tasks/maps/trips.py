"""Tasks that join a search nearby with routes, or several routes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from sqlite3 import Row

from agentgym_envs.webarena.evaluators.strings import AnswerIncludes
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.maps.common import format_length
from agentgym_envs.webarena.sites.maps.geometry import degrees
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import KEY_OF, MODE_OF, MODE_WORDS, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, do
from agentgym_envs.webarena.tasks.template import Params

_KINDS = ("cafe", "pharmacy", "supermarket", "bakery", "bank", "library", "post_office", "fuel", "museum", "restaurant")
_CAR, _FOOT = MODE_WORDS["car"], MODE_WORDS["foot"]


def _clear_pairs(world: World, rng: Random, count: int = 90) -> Iterator[tuple[Row, str, Row]]:
    """Yield places, kinds, and their clearly nearest place of that kind, which has a name of its own."""
    known = queries.unique_names(world)
    for row in rng.sample(queries.places(world, "p.house IS NOT NULL"), count):
        category = rng.choice(_KINDS)
        found = queries.clear_nearest(world, row["name"], category) if category != row["category"] else None
        if found is not None and found["name"] in known:
            yield row, category, found


def _nearest(world: World, place: str, kind: str) -> Row:
    return queries.nearest(world, place, KEY_OF[kind])[0]


def _go_to_nearest(page: PageReader, place: str, kind: str, mode: str, rank: int = 0) -> Steps[str]:
    """Request the directions to the nearest place of a kind, and return its name."""
    yield from steps.find_nearby(page, place, kind)
    name = page.table()[rank]["Place"]
    yield from steps.request_directions(page, place, name, mode)
    return name


def _with_modes(world: World, rng: Random) -> Iterator[Params]:
    for row, category, _ in _clear_pairs(world, rng):
        yield {"place": row["name"], "kind": queries.kind_words(category), "mode": rng.choice(tuple(MODE_OF))}


time_to_nearest = MapTemplate(
    "maps-time-to-nearest",
    "information",
    "hard",
    since=2,
    intents=(
        "I am at {place}. How long does it take {mode} to the {kind} that is nearest in a straight line?",
        "What is the travel time {mode} from {place} to the closest {kind} (as the crow flies)?",
        "Find the {kind} nearest to {place}, as the crow flies. How much time do I need to get there {mode}?",
    ),
    instances=_with_modes,
    expected=lambda world, place, kind, mode: queries.travel_time(
        world, MODE_OF[mode], place, _nearest(world, place, kind)["name"]
    ),
    solution=[
        do(_go_to_nearest, "{place}", "{kind}", "{mode}"),
        answer(lambda page: steps.read_summary(page).time),
    ],
    mistake=answer(steps.hedged_duration),
)


def _pairs(world: World, rng: Random) -> Iterator[Params]:
    """Yield pairs between which each mode takes another time, since an answer names each time once."""
    for row, category, found in _clear_pairs(world, rng):
        if len(set(_times(world, row["name"], found["name"]))) == len(MODE_WORDS):
            yield {"place": row["name"], "kind": queries.kind_words(category)}


def _times(world: World, start: str, end: str) -> list[str]:
    return [f"{queries.minutes(queries.route_between(world, mode, start, end))} min" for mode in MODE_WORDS]


def _all_times(world: World, place: str, kind: str) -> Says:
    return says(*_times(world, place, _nearest(world, place, kind)["name"]))


def _read_all_times(page: PageReader, place: str, kind: str, modes: Sequence[str]) -> Steps[str]:
    yield from _go_to_nearest(page, place, kind, modes[0])
    found = [f"{modes[0]}: {steps.read_summary(page).time}"]
    for mode in modes[1:]:
        yield from steps.change_mode(page, mode)
        found.append(f"{mode}: {steps.read_summary(page).time}")
    return ", ".join(found)


all_modes_to_nearest = MapTemplate(
    "maps-all-modes-to-nearest",
    "information",
    "hard",
    since=2,
    intents=(
        "I am at {place}. How long does it take to the {kind} nearest in a straight line, by each of the three means: "
        "by car, by bicycle and on foot?",
        "Find the {kind} that is closest to {place} as the crow flies, and give me the travel times by car, by bicycle "
        "and on foot.",
        "From {place} to the nearest {kind} (in a straight line): what are the travel times for all three modes of "
        "transport?",
    ),
    instances=_pairs,
    expected=_all_times,
    solution=lambda page, place, kind: _read_all_times(page, place, kind, tuple(MODE_OF)),
    mistake=lambda page, place, kind: _read_all_times(page, place, kind, (_CAR,)),
)


def _name_and_way(world: World, place: str, kind: str) -> Says:
    first, *others = queries.nearest(world, place, KEY_OF[kind])[:12]
    route = queries.route_between(world, "foot", place, first["name"])
    return says(first["name"], format_length(route.metres), others=[row["name"] for row in others])


nearest_and_way = MapTemplate(
    "maps-nearest-and-way",
    "information",
    "hard",
    since=2,
    intents=(
        "Where is the nearest {kind} to {place}, as the crow flies, and what is the walking distance to it? Give its "
        "name and the distance.",
        "Which {kind} is closest to {place} in a straight line, and how far is it on foot?",
        "Name the {kind} nearest to {place} (in a straight line) and tell me how long the way there is on foot, in "
        "kilometres or metres.",
    ),
    instances=lambda world, rng: [
        {"place": row["name"], "kind": queries.kind_words(category)}
        for row, category, found in _clear_pairs(world, rng)
        if queries.route_between(world, "foot", row["name"], found["name"]).metres > 1100
    ],
    expected=_name_and_way,
    solution=[
        do(_go_to_nearest, "{place}", "{kind}", _FOOT),
        answer(lambda page, found: f"{found}, {steps.read_summary(page).length}"),
    ],
    mistake=answer(lambda page, found: f"{found}, {steps.read_summary(page).time}"),
)

way_to_nearest = MapTemplate(
    "maps-way-to-nearest",
    "navigation",
    "medium",
    since=2,
    intents=(
        "Show me the way on foot from {place} to the {kind} that is nearest in a straight line.",
        "Find the walkway from {place} to the closest {kind}, as the crow flies, and leave its directions on the page.",
        "I want to walk from {place} to the nearest {kind} (in a straight line). Bring up the directions.",
    ),
    instances=_pairs,
    expected=lambda world, place, kind: EndsOn(
        queries.directions(world, {"start": place, "end": _nearest(world, place, kind)["name"], "mode": _FOOT})
    ),
    solution=[do(_go_to_nearest, "{place}", "{kind}", _FOOT)],
    mistake=[do(_go_to_nearest, "{place}", "{kind}", _FOOT, 1)],
)


def _position(world: World, place: str) -> AnswerIncludes:
    row = queries.place(world, place)
    return AnswerIncludes([str(number) for number in degrees((row["x"], row["y"]))])


coordinates = MapTemplate(
    "maps-coordinates",
    "information",
    "easy",
    since=2,
    intents=(
        "Tell me the coordinates of {place} in {town}, in decimal degrees.",
        "What are the latitude and the longitude of {place} ({town})?",
        "Give me the position of {place} in {town} as decimal coordinates.",
    ),
    instances=lambda world, rng: rng.sample(list(queries.each_place()(world)), 60),
    expected=_position,
    solution=[do(steps.open_place, "{place}"), answer(lambda page: page.value("Coordinates"))],
)


def _legs(world: World, rng: Random) -> Iterator[Params]:
    """Yield a walk within a town and a drive to another one."""
    known = queries.unique_names(world)
    for start, over in queries.pairs(world, rng, 60, most_km=4, where="p.house IS NOT NULL"):
        end = rng.choice(queries.places(world, "t.id <> ? AND p.house IS NOT NULL", over["town"]))
        if start["town"] == over["town"] and {start["name"], over["name"], end["name"]} <= known:
            yield {"start": start["name"], "over": over["name"], "end": end["name"]}


def _two_legs(world: World, start: str, over: str, end: str) -> Says:
    legs = (("foot", start, over), ("car", over, end))
    return says(f"{sum(queries.minutes(queries.route_between(world, *leg)) for leg in legs)} min")


def _add_legs(page: PageReader, start: str, over: str, end: str) -> Steps[str]:
    yield from steps.request_directions(page, start, over, _FOOT)
    walk = steps.read_summary(page).minutes
    yield page.type("From", over)
    yield page.type("To", end)
    yield from steps.change_mode(page, _CAR)
    return f"{walk + steps.read_summary(page).minutes} min"


walk_then_drive = MapTemplate(
    "maps-walk-then-drive",
    "information",
    "hard",
    since=2,
    intents=(
        "How many minutes does it take altogether to first walk from {start} to {over}, and then drive to {end}?",
        "I walk from {start} to {over}, where I get into a car to {end}. What is the travel time of both parts "
        "together?",
        "Add up two times: from {start} to {over} on foot, and from there to {end} by car.",
    ),
    instances=_legs,
    expected=_two_legs,
    solution=_add_legs,
    mistake=[
        do(steps.request_directions, "{start}", "{end}", _CAR),
        answer(steps.hedged_duration),
    ],
)

_LIMITS = (30, 60, 90, 120)


def _reachable(world: World, rng: Random) -> Iterator[Params]:
    for start, end in queries.pairs(world, rng, 50, most_km=160, where="p.house IS NOT NULL"):
        time = queries.minutes(queries.route_between(world, "car", start["name"], end["name"]))
        limits = [limit for limit in _LIMITS if abs(limit - time) > 2]
        yield {"start": start["name"], "end": end["name"], "limit": min(limits, key=lambda one: abs(one - time))}


def _is_reachable(world: World, start: str, end: str, limit: int) -> Says:
    time = queries.minutes(queries.route_between(world, "car", start, end))
    return says("yes") if time <= limit else says("no")


def _check_time(page: PageReader, limit: int, *, wrong: bool = False) -> str:
    return "yes" if (steps.read_summary(page).minutes <= limit) != wrong else "no"


in_time = MapTemplate(
    "maps-in-time",
    "information",
    "medium",
    since=2,
    intents=(
        "Check if {end} can be reached by car from {start} in {limit} minutes. Answer yes or no.",
        "Is it possible to drive from {start} to {end} in no more than {limit} minutes? Yes or no?",
        "I have {limit} minutes to get from {start} to {end} by car. Is that enough? Say yes or no.",
    ),
    instances=_reachable,
    expected=_is_reachable,
    solution=[do(steps.request_directions, "{start}", "{end}", _CAR), answer(_check_time)],
    mistake=answer(lambda page, limit: _check_time(page, limit, wrong=True)),
)


def _arrivals(world: World) -> Iterator[Params]:
    """Yield stations and airports with a clear nearest hotel, which has a clear nearest supermarket or bakery."""
    known = queries.unique_names(world)
    for row in queries.places(world, "p.category IN ('station', 'airport')"):
        hotel = queries.clear_nearest(world, row["name"], "hotel")
        if hotel is None or hotel["name"] not in known:
            continue
        for category in ("supermarket", "bakery", "pharmacy"):
            found = queries.clear_nearest(world, hotel["name"], category)
            if found is None or found["name"] not in known:
                continue
            if queries.route_between(world, "foot", hotel["name"], found["name"]).metres > 1100:
                yield {"place": row["name"], "kind": queries.kind_words(category)}


def _hotel_and_way(world: World, place: str, kind: str) -> Says:
    hotel, *others = queries.nearest(world, place, "hotel")[:12]
    end = queries.nearest(world, hotel["name"], KEY_OF[kind])[0]
    route = queries.route_between(world, "foot", hotel["name"], end["name"])
    return says(hotel["name"], format_length(route.metres), others=[row["name"] for row in others])


def _find_hotel(page: PageReader, place: str, kind: str, rank: int = 0) -> Steps[str]:
    yield from steps.find_nearby(page, place, "hotel")
    hotel = page.table()[rank]["Place"]
    yield from _go_to_nearest(page, hotel, kind, _FOOT)
    return f"{hotel}, {steps.read_summary(page).length}"


hotel_then_nearest = MapTemplate(
    "maps-hotel-then-nearest",
    "information",
    "hard",
    since=2,
    intents=(
        "I am arriving at {place}. Which hotel is nearest to it in a straight line, and what is the walking distance "
        "from the hotel to the {kind} closest to it (also as the crow flies)?",
        "Name the hotel nearest to {place}, as the crow flies. Then tell me how far it is on foot from there to the "
        "nearest {kind}, in a straight line.",
        "Find the hotel closest to {place} and, from that hotel, the closest {kind}, both in a straight line. Give the "
        "name of the hotel and the length of the way on foot between the two.",
    ),
    instances=_arrivals,
    expected=_hotel_and_way,
    solution=_find_hotel,
    mistake=lambda page, place, kind: _find_hotel(page, place, kind, 1),
)
