"""Database queries for tasks on the map: places, routes, and an evaluator for durations."""

from __future__ import annotations

import re
import sqlite3
from functools import partial
from random import Random

from agentgym_envs.webarena.evaluators.values import clean
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES
from agentgym_envs.webarena.sites.maps.network import MODES, metres_between, network
from agentgym_envs.webarena.sites.maps.routes import MapRoute, find_route
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import Instances
from agentgym_envs.webarena.tasks.template import Params, Template

MAP = ORIGINS["maps"]
MapTemplate = partial(Template, "maps", ("maps",))
"""A task on the map."""
MODE_WORDS = {"car": "by car", "bicycle": "by bicycle", "foot": "on foot"}
"""Modes of transport as intents write them."""
MODE_OF = {words: mode for mode, words in MODE_WORDS.items()}
LABEL_OF = {words: MODES[mode] for mode, words in MODE_WORDS.items()}
"""Labels of the modes on the site, by the words of intents."""
KEY_OF = {one.label.lower(): key for key, one in CATEGORIES.items()}
"""Categories by the words of intents."""
_CLEAR_FACTOR = 1.12
"""The second nearest place must be this many times as far away for the nearest to be clear."""


SIZES = {
    "hotel": "rooms",
    "hospital": "beds",
    "parking": "spaces",
    "charging_station": "sockets",
    "cinema": "seats",
    "school": "pupils",
    "campsite": "pitches",
}
"""The units of a place's size, by category."""
NEARBY_CATEGORIES = (
    "cafe", "hotel", "museum", "pharmacy", "supermarket", "bakery", "station", "charging_station", "bank", "library",
    "park", "parking", "pub", "restaurant", "fuel", "post_office",
)  # fmt: skip
"""Categories that tasks look for near a place."""


def kind_words(category: str) -> str:
    """Return the words of intents for a category: its label on the site, in lower case."""
    return CATEGORIES[category].label.lower()


def cuisine_label(cuisine: str) -> str:
    """Return the words of intents for a cuisine: its label on the site, capitalised only if it names a people."""
    words = cuisine.replace("_", " ")
    return words if words in ("regional", "seafood", "steak house", "vegan") else words.capitalize()


def label(words: str) -> str:
    """Return the label on the site for the category of an intent."""
    return CATEGORIES[KEY_OF[words]].label


def places(world: World, where: str = "1", *arguments: object) -> list[sqlite3.Row]:
    """Return places with unique names, with the names of their towns, by id."""
    return world.rows(
        "SELECT p.*, t.name AS town_name FROM map_places p JOIN map_towns t ON t.id = p.town WHERE p.name IN "
        f"(SELECT name FROM map_places GROUP BY name HAVING COUNT(*) = 1) AND ({where}) ORDER BY p.id",
        *arguments,
    )


def each_place(where: str = "1") -> Instances:
    """Return the places with unique names that meet a condition, with their towns, as instances."""
    return lambda world: [{"place": row["name"], "town": row["town_name"]} for row in places(world, where)]


def own_lists(world: World) -> list[str]:
    """Return the names of the lists of the account."""
    return [row["name"] for row in world.rows("SELECT name FROM map_lists WHERE account = 1 ORDER BY id")]


def own_list(world: World, name: str) -> int:
    """Return the id of a list of the account."""
    return int(world.value("SELECT id FROM map_lists WHERE account = 1 AND name = ?", name))


def towns(world: World) -> list[str]:
    """Return the names of all towns."""
    return [row["name"] for row in world.rows("SELECT name FROM map_towns ORDER BY id")]


def travel_time(world: World, mode: str, start: str, end: str) -> Says:
    """Return an evaluator for the time of a route, with the mode as the site stores it."""
    return says(f"{minutes(route_between(world, mode, start, end))} min")


def unique_names(world: World) -> set[str]:
    """Return the names that a single place has, so that the site does not ask which place is meant."""
    return {row["name"] for row in places(world)}


def place(world: World, name: str) -> sqlite3.Row:
    """Return the place with this name."""
    return world.rows("SELECT * FROM map_places WHERE name = ?", name)[0]


def place_url(world: World, place_name: str) -> str:
    """Return the URL of a place."""
    return f"{MAP}/place/{place(world, place_name)['id']}"


def town_url(world: World, town: str) -> str:
    """Return the URL of a town."""
    return f"{MAP}/town/{world.value('SELECT id FROM map_towns WHERE name = ?', town)}"


def pairs(
    world: World, rng: Random, count: int, *, most_km: float, where: str = "1"
) -> list[tuple[sqlite3.Row, sqlite3.Row]]:
    """Return random pairs of different places, at most `most_km` apart."""
    rows = places(world, where)
    found: list[tuple[sqlite3.Row, sqlite3.Row]] = []
    for start in rng.sample(rows, len(rows)):
        ends = [end for end in rows if end is not start and 300 < _metres_apart(start, end) < 1000 * most_km]
        if ends:
            found.append((start, rng.choice(ends)))
        if len(found) == count:
            break
    return found


def route_between(world: World, mode: str, start: str, end: str) -> MapRoute:
    """Return the route between two places by their names."""
    first, last = place(world, start), place(world, end)
    return find_route(network(world.database), mode, (first["x"], first["y"]), (last["x"], last["y"]))


def route_between_towns(world: World, mode: str, start: str, end: str) -> MapRoute:
    """Return the route between the centres of two towns by their names."""
    query = "SELECT x, y FROM map_towns WHERE name = ?"
    first, last = (world.rows(query, name)[0] for name in (start, end))
    return find_route(network(world.database), mode, (first["x"], first["y"]), (last["x"], last["y"]))


def kilometres(route: MapRoute) -> float:
    """Return the length of a route, rounded as on the site."""
    return round(route.metres / 1000, 1)


def minutes(route: MapRoute) -> int:
    """Return the travel time of a route, rounded as on the site."""
    return max(1, round(route.seconds / 60))


def nearest(world: World, name: str, category: str) -> list[sqlite3.Row]:
    """Return the places of a category, the nearest to a place first."""
    start = place(world, name)
    rows = world.rows("SELECT * FROM map_places WHERE category = ? AND id != ?", category, start["id"])
    return sorted(rows, key=lambda row: _metres_apart(start, row))


def clear_nearest(world: World, name: str, category: str) -> sqlite3.Row | None:
    """Return the nearest place of a category, or None unless the second is clearly farther away."""
    start, rows = place(world, name), nearest(world, name, category)
    if len(rows) > 1 and _metres_apart(start, rows[1]) > _CLEAR_FACTOR * _metres_apart(start, rows[0]) + 30:
        return rows[0]
    return None


def count_within(world: World, name: str, category: str, metres: int) -> int:
    """Count the places of a category within a distance of a place."""
    start = place(world, name)
    return sum(_metres_apart(start, row) <= metres for row in nearest(world, name, category))


def motorway_exits(world: World, start: str, end: str) -> list[str]:
    """Return the junctions at which the route by car between two towns leaves motorways."""
    found = (
        re.match(r"Leave the M\d+ at (.+?) onto ", step.text)
        for step in route_between_towns(world, "car", start, end).steps
    )
    return [match[1] for match in found if match]


def largest_place_params(world: World) -> list[Params]:
    """Return the kinds and towns with a single largest place."""
    found: list[Params] = []
    query = "SELECT t.name AS town, p.capacity FROM map_places p JOIN map_towns t ON t.id = p.town WHERE p.category = ?"
    for category, things in SIZES.items():
        sizes: dict[str, list[int]] = {}
        for row in world.rows(f"{query} ORDER BY p.id", category):
            sizes.setdefault(row["town"], []).append(row["capacity"] or 0)
        towns = [town for town, all_ in sizes.items() if len(all_) > 1 and all_.count(max(all_)) == 1]
        found += [{"kind": kind_words(category), "things": things, "town": town} for town in towns]
    return found


def largest(world: World, params: Params) -> list[sqlite3.Row]:
    """Return the places of a kind in a town, the largest first."""
    query = "SELECT p.* FROM map_places p JOIN map_towns t ON t.id = p.town WHERE p.category = ? AND t.name = ?"
    return world.rows(f"{query} ORDER BY p.capacity DESC", KEY_OF[params["kind"]], params["town"])


def directions(world: World, params: Params) -> str:
    """Return the URL of the directions from one place to another."""
    start, end = place(world, params["start"])["id"], place(world, params["end"])["id"]
    return f"{MAP}/directions?from=place-{start}&to=place-{end}&mode={MODE_OF[params['mode']]}"


def _metres_apart(one: sqlite3.Row, other: sqlite3.Row) -> int:
    return metres_between((one["x"], one["y"]), (other["x"], other["y"]))


_DURATION = re.compile(
    r"(?<![\d.:])(?:(?P<clock>\d+):(?P<rest>\d\d)"
    r"|(?P<hours>\d+)\s*h(?:ours?|rs?)?\b(?:[\s,]*(?:and\s)?(?P<more>\d+)\s*m(?:in(?:ute)?s?)?\b)?"
    r"|(?P<minutes>\d+)\s*m(?:in(?:ute)?s?)?\b)"
)


def durations(answer: str) -> set[int]:
    """Return all durations in a text, in minutes."""
    text = clean(answer)
    if text.isascii() and text.isdigit():
        return {int(text)}
    found = set()
    for match in _DURATION.finditer(text):
        hours = int(match["clock"] or match["hours"] or 0)
        found.add(60 * hours + int(match["rest"] or match["more"] or match["minutes"] or 0))
    return found
