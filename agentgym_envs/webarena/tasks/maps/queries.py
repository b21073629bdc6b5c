"""What the maps tasks expect: places and ways of a world, and answers that are durations."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from random import Random

from agentgym_envs.webarena.evaluators.base import Finished, Verdict
from agentgym_envs.webarena.evaluators.strings import shown
from agentgym_envs.webarena.evaluators.values import clean
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES
from agentgym_envs.webarena.sites.maps.network import MODES, metres_between, network
from agentgym_envs.webarena.sites.maps.routes import MapRoute, find_route
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.template import Params

MAP = ORIGINS["maps"]
BY = {"car": "by car", "bicycle": "by bicycle", "foot": "on foot"}
"""Modes as intents have them."""
MODE_OF = {told: mode for mode, told in BY.items()}
LABEL_OF = {told: MODES[mode] for mode, told in BY.items()}
"""Modes as the site's lists have them, by the words of intents."""
KEY_OF = {one.label.lower(): key for key, one in CATEGORIES.items()}
"""Categories by what intents call them."""
_CLEARLY = 1.12
"""By so much the next place has to be farther away for the nearest to be plain."""


SIZES = {
    "hotel": "rooms",
    "hospital": "beds",
    "parking": "spaces",
    "charging_station": "sockets",
    "cinema": "seats",
    "school": "pupils",
    "campsite": "pitches",
}
"""What there is a number of, by categories."""
SOUGHT = (
    "cafe", "hotel", "museum", "pharmacy", "supermarket", "bakery", "station", "charging_station", "bank", "library",
    "park", "parking", "pub", "restaurant", "fuel", "post_office",
)  # fmt: skip
"""Categories that one looks for near a place."""


def kind(category: str) -> str:
    """What intents call a category: as the site does, in lower case."""
    return CATEGORIES[category].label.lower()


def cuisine_told(cuisine: str) -> str:
    """What intents call a cuisine: as the site does, but only names of peoples begin with a capital letter."""
    words = cuisine.replace("_", " ")
    return words if words in ("regional", "seafood", "steak house", "vegan") else words.capitalize()


def label(told: str) -> str:
    """What the site calls a kind that an intent names."""
    return CATEGORIES[KEY_OF[told]].label


def places(world: World, where: str = "1", *arguments: object) -> list[sqlite3.Row]:
    """Places whose names no other place has, with the names of their towns, by their ids."""
    return world.rows(
        "SELECT p.*, t.name AS town_name FROM map_places p JOIN map_towns t ON t.id = p.town WHERE p.name IN "
        f"(SELECT name FROM map_places GROUP BY name HAVING COUNT(*) = 1) AND ({where}) ORDER BY p.id",
        *arguments,
    )


def unmistakable(world: World) -> set[str]:
    """Names that one place only has: to be told in an intent, as the site asks which one is meant by any other."""
    return {row["name"] for row in places(world)}


def place(world: World, name: str) -> sqlite3.Row:
    """The place of a name."""
    return world.rows("SELECT * FROM map_places WHERE name = ?", name)[0]


def pairs(
    world: World, rng: Random, count: int, *, most_km: float, where: str = "1"
) -> list[tuple[sqlite3.Row, sqlite3.Row]]:
    """Pairs of places that are not the same and not too far from one another."""
    rows = places(world, where)
    found: list[tuple[sqlite3.Row, sqlite3.Row]] = []
    for start in rng.sample(rows, len(rows)):
        ends = [end for end in rows if end is not start and 300 < _away(start, end) < 1000 * most_km]
        if ends:
            found.append((start, rng.choice(ends)))
        if len(found) == count:
            break
    return found


def way(world: World, mode: str, start: str, end: str) -> MapRoute:
    """The way between two places by their names."""
    first, last = place(world, start), place(world, end)
    return find_route(network(world.database), mode, (first["x"], first["y"]), (last["x"], last["y"]))


def town_way(world: World, mode: str, start: str, end: str) -> MapRoute:
    """The way between the middles of two towns by their names."""
    query = "SELECT x, y FROM map_towns WHERE name = ?"
    first, last = (world.rows(query, name)[0] for name in (start, end))
    return find_route(network(world.database), mode, (first["x"], first["y"]), (last["x"], last["y"]))


def kilometres(route: MapRoute) -> float:
    """How long a way is, as the site rounds it."""
    return round(route.metres / 1000, 1)


def minutes(route: MapRoute) -> int:
    """How long a way takes, as the site rounds it."""
    return max(1, round(route.seconds / 60))


def nearest(world: World, name: str, category: str) -> list[sqlite3.Row]:
    """The places of a category, the nearest to a place first."""
    here = place(world, name)
    rows = world.rows("SELECT * FROM map_places WHERE category = ? AND id != ?", category, here["id"])
    return sorted(rows, key=lambda row: _away(here, row))


def plainly_nearest(world: World, name: str, category: str) -> sqlite3.Row | None:
    """The nearest place of a category, if the next is clearly farther away."""
    here, rows = place(world, name), nearest(world, name, category)
    if len(rows) > 1 and _away(here, rows[1]) > _CLEARLY * _away(here, rows[0]) + 30:
        return rows[0]
    return None


def within(world: World, name: str, category: str, metres: int) -> int:
    """How many places of a category are at most so far from a place."""
    here = place(world, name)
    return sum(_away(here, row) <= metres for row in nearest(world, name, category))


def motorway_exits(world: World, start: str, end: str) -> list[str]:
    """The junctions at which one leaves motorways on the way by car from a town to another."""
    found = (re.match(r"Leave the M\d+ at (.+?) onto ", step.text) for step in town_way(world, "car", start, end).steps)
    return [match[1] for match in found if match]


def where_one_is_largest(world: World) -> list[Params]:
    """Kinds and towns in which one place has the most of what its kind is counted by."""
    found: list[Params] = []
    query = "SELECT t.name AS town, p.capacity FROM map_places p JOIN map_towns t ON t.id = p.town WHERE p.category = ?"
    for category, things in SIZES.items():
        sizes: dict[str, list[int]] = {}
        for row in world.rows(f"{query} ORDER BY p.id", category):
            sizes.setdefault(row["town"], []).append(row["capacity"] or 0)
        towns = [town for town, all_ in sizes.items() if len(all_) > 1 and all_.count(max(all_)) == 1]
        found += [{"kind": kind(category), "things": things, "town": town} for town in towns]
    return found


def largest(world: World, params: Params) -> list[sqlite3.Row]:
    """The places of such a kind in such a town, the largest first."""
    query = "SELECT p.* FROM map_places p JOIN map_towns t ON t.id = p.town WHERE p.category = ? AND t.name = ?"
    return world.rows(f"{query} ORDER BY p.capacity DESC", KEY_OF[params["kind"]], params["town"])


def directions(world: World, params: Params) -> str:
    """The address of the directions from a place to another."""
    start, end = place(world, params["start"])["id"], place(world, params["end"])["id"]
    return f"{MAP}/directions?from=place-{start}&to=place-{end}&mode={MODE_OF[params['mode']]}"


def _away(one: sqlite3.Row, other: sqlite3.Row) -> int:
    return metres_between((one["x"], one["y"]), (other["x"], other["y"]))


_DURATION = re.compile(
    r"(?<![\d.:])(?:(?P<clock>\d+):(?P<rest>\d\d)"
    r"|(?P<hours>\d+)\s*h(?:ours?|rs?)?\b(?:[\s,]*(?:and\s)?(?P<more>\d+)\s*m(?:in(?:ute)?s?)?\b)?"
    r"|(?P<minutes>\d+)\s*m(?:in(?:ute)?s?)?\b)"
)


@dataclass(frozen=True, slots=True)
class Lasts:
    """The answer names one duration, of so many minutes: "1 h 12 min", "72 minutes", "1:12", or a bare "72"."""

    minutes: int

    async def __call__(self, episode: Finished) -> Verdict:
        """See `Evaluator`."""
        named = durations(episode.answer)
        if named == {self.minutes}:
            return Verdict(1.0)
        return Verdict(0.0, f"the answer {shown(episode.answer)} is not {self.minutes} minutes")


def durations(answer: str) -> set[int]:
    """All durations that a text names, in minutes."""
    text = clean(answer)
    if text.isascii() and text.isdigit():
        return {int(text)}
    found = set()
    for match in _DURATION.finditer(text):
        hours = int(match["clock"] or match["hours"] or 0)
        found.add(60 * hours + int(match["rest"] or match["more"] or match["minutes"] or 0))
    return found
