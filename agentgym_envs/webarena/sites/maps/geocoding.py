"""Geocoding: converts texts to locations, by place name, address, town or coordinates."""

from __future__ import annotations

import re
import sqlite3
from typing import NamedTuple

from agentgym_envs.webarena.sites.country import HEIGHT_KM, WIDTH_KM
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.maps.geometry import Point, degrees, position
from agentgym_envs.webarena.sites.maps.network import network
from agentgym_envs.webarena.sites.maps.plan import HOUSES, house_on

MOST_CANDIDATES = 8
_HOUSE_FIRST = re.compile(r"(\d{1,3})\s+([^,]+)(?:,(.+))?")
_HOUSE_LAST = re.compile(r"([^,\d][^,]*?)\s+(\d{1,3})(?:,(.+))?")
_POSITION = re.compile(r"(-?\d{1,3}\.\d{1,8})\s*[,; ]\s*(-?\d{1,3}\.\d{1,8})")


class Location(NamedTuple):
    """A location. `key` identifies it in a URL, `label` is for display; `town` is the town's id, if it is in one."""

    key: str
    label: str
    point: Point
    town: int | None


def location_of(context: RequestContext, key: str) -> Location | None:
    """Return the location of a key: "place-12", "town-3", "house-<road>-<number>" or "point-<latitude>,<longitude>"."""
    kind, _, rest = key.partition("-")
    numbers = [int(part) for part in rest.split("-") if re.fullmatch(r"\d{1,9}", part, re.ASCII)]
    if kind == "point":
        return location_of_position(rest)
    if kind == "house" and len(numbers) == 2:
        return _of_house(context, *numbers)
    if kind not in ("place", "town") or len(numbers) != 1:
        return None
    if kind == "town":
        town = context.row("SELECT id, name, x, y FROM map_towns WHERE id = ?", *numbers)
        return Location(f"town-{town['id']}", town["name"], (town["x"], town["y"]), town["id"]) if town else None
    place = context.row(f"{_PLACES} WHERE p.id = ?", *numbers)
    return location_of_place(place) if place else None


def find_locations(context: RequestContext, text: str) -> list[Location]:
    """Return the locations that a text may mean; exactly one if it is unambiguous."""
    own = _own_address(context, text.casefold())
    exact = location_of(context, text) or own or location_of_position(text)
    if exact is not None:
        return [exact]
    for look in (_addresses, _towns, _exact_places, _like_places):
        locations = look(context, text)
        if locations:
            return locations[:MOST_CANDIDATES]
    return []


def location_of_place(row: sqlite3.Row) -> Location:
    """Return the location of a row with the id, name, town, town_name, x and y of a place."""
    label = row["name"] if row["town_name"] in row["name"] else f"{row['name']}, {row['town_name']}"
    return Location(f"place-{row['id']}", label, (row["x"], row["y"]), row["town"])


def location_of_position(text: str) -> Location | None:
    """Return the location of a text "<latitude>, <longitude>", None if it is not within the country."""
    match = _POSITION.fullmatch(text.strip())
    if match is None:
        return None
    point = position(float(match[1]), float(match[2]))
    if not (0 <= point[0] <= WIDTH_KM and 0 <= point[1] <= HEIGHT_KM):
        return None
    latitude, longitude = degrees(point)
    return Location(f"point-{latitude},{longitude}", f"{latitude}, {longitude}", point, None)


def escaped(text: str) -> str:
    """Escape a text for LIKE, with a backslash as the escape character."""
    return re.sub(r"([\\%_])", r"\\\1", text)


def like_words(column: str, text: str) -> tuple[str, list[str]]:
    """Return an SQL condition that a column contains every word of a text, and its arguments."""
    words = re.findall(r"[^\s,;]+", text)[:8]
    condition = " AND ".join([f"{column} LIKE ? ESCAPE '\\'"] * len(words)) or "0"
    return condition, [f"%{escaped(word)}%" for word in words]


_PLACES = (
    "SELECT p.id, p.name, p.town, t.name AS town_name, p.x, p.y FROM map_places p JOIN map_towns t ON t.id = p.town"
)
_STREETS = "SELECT r.id, r.name, r.town, t.name AS town_name, t.zip FROM map_roads r JOIN map_towns t ON t.id = r.town"


def _of_house(context: RequestContext, road: int, house: int) -> Location | None:
    row = context.row(f"{_STREETS} WHERE r.id = ?", road)
    if row is None or not 1 <= house < HOUSES:
        return None
    label = f"{house} {row['name']}, {row['town_name']}"
    return Location(f"house-{road}-{house}", label, house_on(network(context.database), road, house).point, row["town"])


def _own_address(context: RequestContext, text: str) -> Location | None:
    if not context.account or text not in ("home", "work", "my home", "my work"):
        return None
    label = text.removeprefix("my ").capitalize()
    row = context.row("SELECT road, house FROM map_addresses WHERE account = ? AND label = ?", context.account, label)
    return _of_house(context, row["road"], row["house"]) if row else None


def _addresses(context: RequestContext, text: str) -> list[Location]:
    """Return houses: "12 Mill Street, Foxford" or "Mill Street 12". Without a town, search all towns."""
    if first := _HOUSE_FIRST.fullmatch(text):
        house, street, where = first.groups()
    elif last := _HOUSE_LAST.fullmatch(text):
        street, house, where = last.groups()
    else:
        return []
    rows = context.rows(f"{_STREETS} WHERE r.name = ? COLLATE NOCASE ORDER BY t.id", street.strip())
    if where:
        area = where.casefold()
        rows = [row for row in rows if row["town_name"].casefold() in area or row["zip"] in area]
    return [location for row in rows if (location := _of_house(context, row["id"], int(house)))]


def _towns(context: RequestContext, text: str) -> list[Location]:
    rows = context.rows("SELECT id FROM map_towns WHERE name = ? COLLATE NOCASE", text.strip())
    return [location for row in rows if (location := location_of(context, f"town-{row['id']}"))]


def _exact_places(context: RequestContext, text: str) -> list[Location]:
    """Return places with exactly this name, or "<name>, <town>"."""
    name, _, where = text.rpartition(",")
    query = f"{_PLACES} WHERE p.name = ? COLLATE NOCASE OR (p.name = ? COLLATE NOCASE AND t.name = ? COLLATE NOCASE)"
    return [location_of_place(row) for row in context.rows(query, text.strip(), name.strip(), where.strip())]


def _like_places(context: RequestContext, text: str) -> list[Location]:
    condition, words = like_words("p.name || ' ' || t.name", text)
    rows = context.rows(f"{_PLACES} WHERE {condition} ORDER BY length(p.name), p.id LIMIT {MOST_CANDIDATES}", *words)
    return [location_of_place(row) for row in rows]
