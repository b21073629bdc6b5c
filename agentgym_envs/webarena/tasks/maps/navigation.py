"""Tasks about routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.maps.queries import (
    MAP,
    MODE_OF,
    MODE_WORDS,
    directions,
    kilometres,
    minutes,
    motorway_exits,
    pairs,
    place,
    places,
    route_between,
)
from agentgym_envs.webarena.tasks.maps.steps import (
    change_mode,
    filter_places,
    hedged_duration,
    listed_places,
    read_summary,
    request_directions,
    show_places,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass

_MAX_KM = {"car": 400.0, "bicycle": 60.0, "foot": 4.0}


class _RouteTemplate(TemplateClass):
    """A task about the route from one place to another."""

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places within reach of each mode, but not next to each other."""
        for mode, reach in _MAX_KM.items():
            for start, end in pairs(world, rng, 14, most_km=reach):
                if route_between(world, mode, start["name"], end["name"]).metres >= 1000:
                    yield {"start": start["name"], "end": end["name"], "mode": MODE_WORDS[mode]}


class RouteLength(_RouteTemplate):
    """Name the length of a route."""

    name, group, sites = "maps-how-far", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "How many kilometres is it {mode} from {start} to {end}?",
        "What is the distance in kilometres from {start} to {end}, going {mode}?",
        "I want to go from {start} to {end} {mode}. How many kilometres is that?",
    )

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        route = route_between(world, MODE_OF[params["mode"]], params["start"], params["end"])
        return [says(f"{kilometres(route):,.1f}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from request_directions(page, params["start"], params["end"], params["mode"])
        yield page.stop(read_summary(page).kilometres)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the length of the first step."""
        yield from request_directions(page, params["start"], params["end"], params["mode"])
        total = read_summary(page).length
        steps = (text for text in page.texts(after=total) if re.fullmatch(r"[\d.,]+ k?m", text) and text != total)
        yield page.stop(next(steps, "0 km"))


class RouteDuration(_RouteTemplate):
    """Name the travel time of a route."""

    name, group, sites = "maps-how-long", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "How long does it take {mode} from {start} to {end}?",
        "What is the travel time from {start} to {end} {mode}?",
        "I am going from {start} to {end} {mode}. How much time should I allow?",
    )

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(f"{minutes(route_between(world, MODE_OF[params['mode']], params['start'], params['end']))} min")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from request_directions(page, params["start"], params["end"], params["mode"])
        yield page.stop(read_summary(page).time)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with two guesses."""
        yield from request_directions(page, params["start"], params["end"], params["mode"])
        yield page.stop(hedged_duration(page))


class DurationDifference(TemplateClass):
    """Name the difference between the travel times of two modes."""

    name, group, sites = "maps-how-much-longer", "maps", ("maps",)
    kind, difficulty, held_out = "information", "medium", True
    intents = (
        "How many minutes longer does it take {slow} than {fast} from {start} to {end}?",
        "From {start} to {end}: by how many minutes is one faster {fast} than {slow}?",
        "Compare going {slow} with going {fast} from {start} to {end}. How many minutes does the latter save?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Routes in or near a town, on which the faster mode is faster."""
        for start, end in pairs(world, rng, 40, most_km=6):
            fast = rng.choice(("bicycle", "car"))
            params = {"start": start["name"], "end": end["name"], "slow": MODE_WORDS["foot"], "fast": MODE_WORDS[fast]}
            if _minutes_saved(world, params) > 1:
                yield params

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(_minutes_saved(world, params))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from request_directions(page, params["start"], params["end"], params["slow"])
        slow = read_summary(page).minutes
        yield from change_mode(page, params["fast"])
        yield page.stop(slow - read_summary(page).minutes)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the time of the slower mode."""
        yield from request_directions(page, params["start"], params["end"], params["slow"])
        yield page.stop(read_summary(page).minutes)


def _minutes_saved(world: World, params: Params) -> int:
    times = [
        minutes(route_between(world, MODE_OF[params[one]], params["start"], params["end"])) for one in ("slow", "fast")
    ]
    return times[0] - times[1]


class MotorwayExit(TemplateClass):
    """Name the junction at which a route leaves the motorway."""

    name, group, sites = "maps-leave-motorway", "maps", ("maps",)
    kind, difficulty = "information", "medium"
    intents = (
        "Driving by car from {start} to {end}, at which junction do I leave the motorway?",
        "I go by car from {start} to {end}. What is the name of the junction at which one leaves the motorway?",
        "What is the motorway exit on the way from {start} to {end} by car called?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Pairs of towns whose route leaves a motorway once."""
        names = [row["name"] for row in world.rows("SELECT name FROM map_towns ORDER BY id")]
        for start in names[:12]:
            for end in names[:12]:
                if start != end and len(motorway_exits(world, start, end)) == 1:
                    yield {"start": start, "end": end}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        exits = world.rows("SELECT name FROM map_junctions WHERE name IS NOT NULL ORDER BY id")
        wanted = motorway_exits(world, params["start"], params["end"])[0]
        return [says(wanted, others=[row["name"] for row in exits if row["name"] != wanted])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from request_directions(page, params["start"], params["end"], MODE_WORDS["car"])
        yield page.stop(page.search(r"^Leave the M\d+ at (.+?) onto ")[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the junction at which it joins the motorway."""
        yield from request_directions(page, params["start"], params["end"], MODE_WORDS["car"])
        yield page.stop(page.search(r"^Join the M\d+ at (.+)$")[0])


class ShowRoute(_RouteTemplate):
    """Show the directions from one place to another."""

    name, group, sites = "maps-show-the-way", "maps", ("maps",)
    kind, difficulty = "navigation", "medium"
    intents = (
        "Show me the directions {mode} from {start} to {end}.",
        "Bring up the route from {start} to {end} {mode}.",
        "Get directions from {start} to {end}, going {mode}.",
    )

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(directions(world, params))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from request_directions(page, params["start"], params["end"], params["mode"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Show the directions for the way back."""
        yield from request_directions(page, params["start"], params["end"], params["mode"])
        yield page.click("link", "Reverse")
        yield page.stop()


class ShowRouteFromHome(TemplateClass):
    """Show the directions from the agent's home or work to a place."""

    name, group, sites = "maps-home-to", "maps", ("maps",)
    kind, difficulty = "navigation", "medium"
    intents = (
        "Show me how to get from my {own} address to {end} {mode}.",
        "I want directions {mode} from my {own} address to {end}.",
        "Bring up the way from my saved {own} address to {end}, {mode}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for row in rng.sample(places(world), 30):
            yield {
                "own": rng.choice(("home", "work")),
                "end": row["name"],
                "mode": MODE_WORDS[rng.choice(tuple(MODE_WORDS))],
            }

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT road, house FROM map_addresses WHERE account = 1 AND label = ?"
        road, house = tuple(world.rows(query, params["own"].capitalize())[0])
        end, mode = place(world, params["end"])["id"], MODE_OF[params["mode"]]
        return [EndsOn(f"{MAP}/directions?from=house-{road}-{house}&to=place-{end}&mode={mode}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        own = page.texts(after=f"{params['own'].capitalize()}:")[0]
        yield from request_directions(page, own, params["end"], params["mode"])
        yield page.stop()


class WalkFromBestHotel(TemplateClass):
    """Name the walking time from a town's hotel with the most stars to its nearest station."""

    name, group, sites = "maps-stars-to-station", "maps", ("maps",)
    kind, difficulty, held_out = "information", "hard", True
    intents = (
        "How long is the walk from the hotel with the most stars in {town} to {station}?",
        "Find the hotel in {town} that has the most stars. How long does it take on foot from there to {station}?",
        "I am staying at the hotel of {town} with the most stars. How much time do I need to walk to {station}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Towns with a station and several hotels, and a single hotel with the most stars."""
        for town in world.rows("SELECT id, name FROM map_towns ORDER BY id"):
            hotels = world.rows("SELECT stars FROM map_places WHERE category = 'hotel' AND town = ?", town["id"])
            stars = [row["stars"] for row in hotels]
            stations = places(world, "p.category = 'station' AND p.town = ?", town["id"])
            if len(stars) > 1 and stars.count(max(stars)) == 1:
                yield from ({"town": town["name"], "station": row["name"]} for row in stations)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        hotel = world.value(
            "SELECT p.name FROM map_places p JOIN map_towns t ON t.id = p.town "
            "WHERE p.category = 'hotel' AND t.name = ? ORDER BY p.stars DESC",
            params["town"],
        )
        return [says(f"{minutes(route_between(world, 'foot', hotel, params['station']))} min")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from filter_places(page, "hotel", params["town"])
        yield page.choose("Sort by", "Stars, most first")
        yield from show_places(page)
        hotel = listed_places(page, "place")[0]
        yield from request_directions(page, hotel, params["station"], MODE_WORDS["foot"])
        yield page.stop(read_summary(page).time)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with two guesses."""
        yield from request_directions(page, params["town"], params["station"], MODE_WORDS["foot"])
        yield page.stop(hedged_duration(page))


TEMPLATES = (
    RouteLength(),
    RouteDuration(),
    DurationDifference(),
    MotorwayExit(),
    ShowRoute(),
    ShowRouteFromHome(),
    WalkFromBestHotel(),
)
