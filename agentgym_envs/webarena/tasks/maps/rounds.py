"""Tasks that compare several routes from one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from random import Random
from sqlite3 import Row

from agentgym_envs.webarena.sites.maps.common import format_length
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import KEY_OF, MODE_WORDS, MapTemplate
from agentgym_envs.webarena.tasks.maps.steps import RouteSummary
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, do
from agentgym_envs.webarena.tasks.template import Params

_CAR, _FOOT = MODE_WORDS["car"], MODE_WORDS["foot"]


def _within(world: World, place: str, kind: str, limit: int) -> list[Row]:
    """Return the three nearest places of a kind that are at most `limit` minutes away on foot."""
    rows = queries.nearest(world, place, KEY_OF[kind])[:3]
    return [row for row in rows if queries.minutes(queries.route_between(world, "foot", place, row["name"])) <= limit]


def _walks(world: World, rng: Random) -> Iterator[Params]:
    known = queries.unique_names(world)
    for row in rng.sample(queries.places(world, "p.house IS NOT NULL"), 60):
        kind = queries.kind_words(rng.choice(("hotel", "cafe", "bank", "park")))
        three = [one["name"] for one in queries.nearest(world, row["name"], KEY_OF[kind])[:3]]
        if KEY_OF[kind] == row["category"] or not set(three) <= known:
            continue
        for limit in (5, 10, 15, 20, 30):
            if 0 < len(_within(world, row["name"], kind, limit)) < 3:
                yield {"place": row["name"], "kind": kind, "limit": limit}
                break


def _walkable(world: World, place: str, kind: str, limit: int) -> Says:
    found = [
        (r["name"], queries.route_between(world, "foot", place, r["name"])) for r in _within(world, place, kind, limit)
    ]
    wanted = [name for name, _ in found]
    others = [row["name"] for row in queries.nearest(world, place, KEY_OF[kind])[:3] if row["name"] not in wanted]
    return says(*wanted, *dict.fromkeys(format_length(route.metres) for _, route in found), others=others)


def _walk_to_each(page: PageReader, place: str, kind: str) -> Steps[dict[str, RouteSummary]]:
    """Read the ways on foot to the three nearest places of a kind."""
    yield from steps.find_nearby(page, place, kind)
    names = [row["Place"] for row in page.table()[:3]]
    yield from steps.request_directions(page, place, names[0], _FOOT)
    found = {names[0]: steps.read_summary(page)}
    for name in names[1:]:
        yield page.type("To", name)
        yield page.click("button", "Go")
        found[name] = steps.read_summary(page)
    return found


def _reached(found: dict[str, RouteSummary], limit: int) -> str:
    return "\n".join(f"{name}: {way.length}" for name, way in found.items() if way.minutes <= limit)


walkable_of_three = MapTemplate(
    "maps-walkable-of-three",
    "information",
    "hard",
    since=2,
    intents=(
        "Of the three places of the kind {kind} that are nearest to {place} in a straight line, which can I reach on "
        "foot in at most {limit} minutes? Give each name with the walking distance.",
        "Take the three nearest {kind} entries to {place}, as the crow flies. To which of them is it no more than "
        "{limit} minutes on foot? Name these, and how far each is on foot.",
        "Show me which of the three closest places of the kind {kind} around {place} (in a straight line) are within "
        "{limit} minutes of walking, and how long the way on foot to each of these is.",
    ),
    instances=_walks,
    expected=_walkable,
    solution=[
        do(_walk_to_each, "{place}", "{kind}"),
        answer(_reached),
    ],
    mistake=answer(lambda found: _reached(found, 10**4)),
)


def _driven(world: World, place: str, kind: str) -> list[tuple[str, float]]:
    """Return the addresses of the three places of a kind that are nearest to a place, with the kilometres by car."""
    rows = queries.nearest(world, place, KEY_OF[kind])[:3]
    routes = [queries.route_between(world, "car", place, row["name"]) for row in rows]
    return [(_address(world, row), queries.kilometres(route)) for row, route in zip(rows, routes, strict=True)]


def _address(world: World, row: Row) -> str:
    query = "SELECT r.name, t.zip, t.name FROM map_roads r, map_towns t WHERE r.id = ? AND t.id = ?"
    road, code, town = world.rows(query, row["road"], row["town"])[0]
    return f"{row['house']} {road}, {code} {town}"


def _drives(world: World, rng: Random) -> Iterator[Params]:
    """Yield places, kinds and distances by car that one or two of the three nearest are within."""
    known = queries.unique_names(world)
    for row in rng.sample(queries.places(world, "p.house IS NOT NULL"), 50):
        kind = queries.kind_words(rng.choice(("hospital", "library", "post_office", "university", "museum", "hotel")))
        rows = queries.nearest(world, row["name"], KEY_OF[kind])[:3]
        if any(one["house"] is None or one["name"] not in known for one in rows):
            continue
        lengths = [km for _, km in _driven(world, row["name"], kind)]
        for limit in (5, 20, 50, 100):
            if (
                0 < sum(km <= limit for km in lengths) < 3
                and min(lengths) > 1
                and all(abs(km - limit) > 0.2 for km in lengths)
            ):
                yield {"place": row["name"], "kind": kind, "limit": limit}
                break


def _addresses(world: World, place: str, kind: str, limit: int) -> Says:
    found = _driven(world, place, kind)
    return says(*(a for a, km in found if km <= limit), others=[a for a, km in found if km > limit])


def _read_addresses(page: PageReader, place: str, kind: str, limit: int) -> Steps[str]:
    yield from steps.find_nearby(page, place, kind)
    names, addresses = [row["Place"] for row in page.table()[:3]], []
    for name in names:
        yield from steps.request_directions(page, place, name, _CAR)
        length = steps.read_summary(page).length
        if length.endswith(" m") or float(length.removesuffix(" km").replace(",", "")) <= limit:
            yield from steps.open_place(page, name)
            addresses.append(page.value("Address"))
    return "\n".join(addresses)


addresses_within = MapTemplate(
    "maps-addresses-within",
    "information",
    "hard",
    since=2,
    intents=(
        "Of the three places of the kind {kind} nearest to {place} in a straight line, tell me the full address of "
        "each that is within a driving distance of {limit} km.",
        "Give me the full addresses of those of the three closest {kind} entries to {place} (as the crow flies) to "
        "which it is at most {limit} km by car.",
        "Which of the three places of the kind {kind} that are nearest to {place}, as the crow flies, can I reach by "
        "driving {limit} km or less? Answer with their full addresses.",
    ),
    instances=_drives,
    expected=_addresses,
    solution=_read_addresses,
    mistake=lambda page, place, kind: _read_addresses(page, place, kind, 10**5),
)


def _tours(world: World, rng: Random) -> Iterator[Params]:
    """Yield places in four towns, with one order of visits that is clearly the fastest."""
    rows = queries.places(world, "p.house IS NOT NULL")
    for _ in range(24):
        start, one, two, three = (row["name"] for row in rng.sample(rows, 4))
        names = (start, one, two, three)
        times = sorted(_tour_times(world, names))
        if times[0] + 3 < times[1] and _is_symmetric(world, names):
            yield {"start": start, "one": one, "two": two, "three": three}


def _is_symmetric(world: World, names: Sequence[str]) -> bool:
    """Return whether all ways take as long in the other direction, as the solution assumes."""
    pairs = combinations(names, 2)
    times = ([queries.minutes(queries.route_between(world, "car", *way)) for way in (p, p[::-1])] for p in pairs)
    return all(one == other for one, other in times)


def _tour_times(world: World, names: Sequence[str]) -> list[int]:
    start, *others = names
    legs = {(a, b): queries.minutes(queries.route_between(world, "car", a, b)) for a in names for b in others if a != b}
    return [sum(legs[leg] for leg in zip((start, *order), order, strict=False)) for order in permutations(others)]


def _measure_tours(page: PageReader, start: str, others: Sequence[str]) -> Steps[str]:
    """Read the times of all legs, and return the time of the fastest order."""
    legs: dict[tuple[str, str], int] = {}
    yield from steps.request_directions(page, start, others[0], _CAR)
    legs[start, others[0]] = steps.read_summary(page).minutes
    origin = start
    for a in (start, *others):
        for b in others:
            if a == b or (a, b) in legs or (b, a) in legs:
                continue
            if a != origin:
                yield page.type("From", a)
                origin = a
            yield page.type("To", b)
            yield page.click("button", "Go")
            legs[a, b] = steps.read_summary(page).minutes
    times = [
        sum(legs.get(leg) or legs[leg[1], leg[0]] for leg in zip((start, *order), order, strict=False))
        for order in permutations(others)
    ]
    return f"{min(times)} min"


best_order = MapTemplate(
    "maps-best-order",
    "information",
    "hard",
    since=2,
    intents=(
        "I start at {start} and want to visit {one}, {two} and {three} by car, in the order with the least total "
        "travel time. How many minutes is that?",
        "Given {start}, {one}, {two} and {three}: find the order to drive to them all that takes the least time, "
        "beginning at {start}. What is its travel time in total?",
        "What is the shortest total driving time of a trip that begins at {start} and visits {one}, {two} and {three}, "
        "in whichever order is best?",
    ),
    instances=_tours,
    expected=lambda world, params: says(
        f"{min(_tour_times(world, [params[key] for key in ('start', 'one', 'two', 'three')]))} min"
    ),
    solution=lambda page, start, one, two, three: _measure_tours(page, start, (one, two, three)),
    mistake=[do(steps.request_directions, "{start}", "{one}", _CAR), answer(steps.hedged_duration)],
)
