"""The search field: "museums in Foxford", "charging station near 12 Mill Street, Foxford", "Osteria Alba", "A21"."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.maps.common import PLACES, address, label, plain
from agentgym_envs.webarena.sites.maps.geocoding import Location, find_locations, like_words
from agentgym_envs.webarena.sites.maps.geometry import Point
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES
from agentgym_envs.webarena.sites.maps.network import metres_between
from agentgym_envs.webarena.sites.maps.wordlists import CUISINES, FAST_FOOD

_WHERE = re.compile(r"(.{1,60}?) (in|at|near|nearby|around|by|close to|next to) (?:the )?(.+)", re.IGNORECASE)
_OTHER_WORDS = {
    "car charging station": "charging_station",
    "charger": "charging_station",
    "gas station": "fuel",
    "train station": "station",
    "car park": "parking",
    "coffee shop": "cafe",
    "cafe": "cafe",
    "bar": "pub",
    "doctor": "doctors",
    "chemist": "pharmacy",
    "college": "university",
    "post": "post_office",
    "bike rental": "bicycle_rental",
    "bike shop": "bicycle_shop",
    "gym": "sports_centre",
    "hill": "peak",
    "mountain": "peak",
}


class Result(NamedTuple):
    """A search result; `away` is the distance in metres if the search was near a location."""

    kind: str
    name: str
    url: str
    details: str
    point: Point
    away: int | None = None


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The results of a search, and its interpretation: the category, and the location `near` or `within`."""

    results: list[Result]
    category: str = ""
    near: Location | None = None
    within: Location | None = None


def search(context: RequestContext, text: str) -> SearchResults:
    """Return places of a category, near or in a location, if the text names one; otherwise all matches of its words."""
    what, preposition, where = _split(text)
    kind = _kinds().get(what.casefold())
    if kind is not None:
        return _of_kind(context, kind, preposition, where)
    trailing = _trailing_town(context, text)
    if trailing is not None:
        return _of_kind(context, trailing[0], "in", trailing[1])
    return SearchResults(_by_words(context, text))


def _split(text: str) -> tuple[str, str, str]:
    match = _WHERE.fullmatch(" ".join(text.split()))
    return (match[1], match[2].casefold(), match[3]) if match else (" ".join(text.split()), "", "")


def _trailing_town(context: RequestContext, text: str) -> tuple[tuple[str, str], str] | None:
    """Return a category and the town after it, as in "pharmacies Foxford" or "hotel, Foxford"."""
    parts = text.replace(",", " ").split()
    kind = _kinds().get(" ".join(parts[:-1]).casefold()) if len(parts) > 1 else None
    if kind is None or context.row("SELECT id FROM map_towns WHERE name = ? COLLATE NOCASE", parts[-1]) is None:
        return None
    return kind, parts[-1]


@cache
def _kinds() -> dict[str, tuple[str, str]]:
    """Return (category, cuisine) by the words that mean them; "" means any cuisine."""
    meanings = {word: (key, "") for word, key in _OTHER_WORDS.items()}
    meanings |= {f"{word}s": kind for word, kind in meanings.items()}
    for key, one in CATEGORIES.items():
        for word in (key, plain(key), one.label, one.plural):
            meanings[word.casefold()] = (key, "")
    for cuisine in CUISINES:
        for word in ("restaurant", "restaurants", "food"):
            meanings[f"{plain(cuisine).casefold()} {word}"] = ("restaurant", cuisine)
    for cuisine in FAST_FOOD.values():
        meanings[plain(cuisine).casefold()] = ("fast_food", cuisine)
    return meanings


def _of_kind(context: RequestContext, kind: tuple[str, str], preposition: str, where: str) -> SearchResults:
    category, cuisine = kind
    location = next(iter(find_locations(context, where)), None) if where else None
    if where and location is None:
        return SearchResults([], category)
    query = f"{PLACES} WHERE p.category = ? AND (? = '' OR p.cuisine = ?)"
    if location is not None and preposition in ("in", "at") and location.key.startswith("town-"):
        rows = context.rows(f"{query} AND p.town = ? ORDER BY p.name", category, cuisine, cuisine, location.town)
        return SearchResults([_place(row) for row in rows], category, within=location)
    rows = context.rows(f"{query} ORDER BY t.name, p.name", category, cuisine, cuisine)
    if location is None:
        return SearchResults([_place(row) for row in rows], category)
    others = (row for row in rows if f"place-{row['id']}" != location.key)
    results = [_place(row, metres_between(location.point, (row["x"], row["y"]))) for row in others]
    return SearchResults(sorted(results, key=lambda one: one.away or 0), category, near=location)


def _by_words(context: RequestContext, text: str) -> list[Result]:
    """Return towns and regions, then addresses, then places with the shortest names first, then roads."""
    locations = find_locations(context, text)
    houses = [location for location in locations if location.key.startswith(("house-", "point-"))]
    results = [*_towns(context, text), *_regions(context, text)]
    results += [
        Result("Address" if s.key[0] == "h" else "Position", s.label, f"/?at={s.key}&zoom=8", "", s.point)
        for s in houses
    ]
    condition, words = like_words("p.name || ' ' || t.name", text)
    rows = context.rows(f"{PLACES} WHERE {condition} ORDER BY length(p.name), p.name", *words)
    return [*results, *map(_place, rows), *_roads(context, text)]


def _place(row: sqlite3.Row, away: int | None = None) -> Result:
    point = row["x"], row["y"]
    return Result(label(row["category"]), row["name"], f"/place/{row['id']}", address(row), point, away)


def _towns(context: RequestContext, text: str) -> list[Result]:
    condition, words = like_words("t.name", text)
    query = (
        f"SELECT t.*, r.name AS region_name FROM map_towns t JOIN map_regions r ON r.id = t.region WHERE {condition}"
    )
    rows = context.rows(f"{query} ORDER BY t.id", *words)
    return [Result("Town", r["name"], f"/town/{r['id']}", r["region_name"], (r["x"], r["y"])) for r in rows]


def _regions(context: RequestContext, text: str) -> list[Result]:
    condition, words = like_words("r.name", text)
    query = f"SELECT r.*, t.x, t.y FROM map_regions r JOIN map_towns t ON t.id = r.seat WHERE {condition} ORDER BY r.id"
    return [
        Result("Region", r["name"], f"/region/{r['id']}", "", (r["x"], r["y"])) for r in context.rows(query, *words)
    ]


def _roads(context: RequestContext, text: str) -> list[Result]:
    condition, words = like_words("r.name || ' ' || coalesce(t.name, '')", text)
    rows = context.rows(
        f"SELECT r.id, r.name, r.town, t.name AS town_name, j.x, j.y FROM map_roads r "
        f"LEFT JOIN map_towns t ON t.id = r.town JOIN map_segments s ON s.road = r.id "
        f"JOIN map_junctions j ON j.id = s.target WHERE {condition} GROUP BY r.id ORDER BY r.id LIMIT 60",
        *words,
    )
    return [Result("Road", r["name"], f"/road/{r['id']}", r["town_name"] or "", (r["x"], r["y"])) for r in rows]
