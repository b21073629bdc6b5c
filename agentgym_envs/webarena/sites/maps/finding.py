"""What people type finds what is on the map: places, addresses, towns, roads, positions."""

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


class Stop(NamedTuple):
    """Somewhere one can go to. `key` says it in a URL, `label` to people; `town` is where it is, if in one."""

    key: str
    label: str
    point: Point
    town: int | None


def stop_of(context: RequestContext, key: str) -> Stop | None:
    """What a key stands for: "place-12", "town-3", "house-<road>-<number>", "point-<latitude>,<longitude>"."""
    kind, _, rest = key.partition("-")
    numbers = [int(part) for part in rest.split("-") if re.fullmatch(r"\d{1,9}", part, re.ASCII)]
    if kind == "point":
        return of_position(rest)
    if kind == "house" and len(numbers) == 2:
        return _of_house(context, *numbers)
    if kind not in ("place", "town") or len(numbers) != 1:
        return None
    if kind == "town":
        found = context.row("SELECT id, name, x, y FROM map_towns WHERE id = ?", *numbers)
        return Stop(f"town-{found['id']}", found["name"], (found["x"], found["y"]), found["id"]) if found else None
    found = context.row(f"{_PLACES} WHERE p.id = ?", *numbers)
    return of_place(found) if found else None


def find_stops(context: RequestContext, text: str) -> list[Stop]:
    """What a text may mean: one where it is plain, some where it is not, none where nothing fits."""
    own = _own_address(context, text.casefold())
    exact = stop_of(context, text) or own or of_position(text)
    if exact is not None:
        return [exact]
    for look in (_addresses, _towns, _exact_places, _like_places):
        found = look(context, text)
        if found:
            return found[:MOST_CANDIDATES]
    return []


def of_place(row: sqlite3.Row) -> Stop:
    """The stop at a row with a place's id, name, town, town_name, x and y."""
    label = row["name"] if row["town_name"] in row["name"] else f"{row['name']}, {row['town_name']}"
    return Stop(f"place-{row['id']}", label, (row["x"], row["y"]), row["town"])


def of_position(text: str) -> Stop | None:
    """The stop at a latitude and longitude, if that is within the country."""
    match = _POSITION.fullmatch(text.strip())
    if match is None:
        return None
    point = position(float(match[1]), float(match[2]))
    if not (0 <= point[0] <= WIDTH_KM and 0 <= point[1] <= HEIGHT_KM):
        return None
    latitude, longitude = degrees(point)
    return Stop(f"point-{latitude},{longitude}", f"{latitude}, {longitude}", point, None)


def escaped(text: str) -> str:
    """A text as SQL's LIKE takes it literally, with a backslash as the escape."""
    return re.sub(r"([\\%_])", r"\\\1", text)


def like_words(column: str, text: str) -> tuple[str, list[str]]:
    """A condition that a column has every word of a text, and its arguments."""
    found = re.findall(r"[^\s,;]+", text)[:8]
    condition = " AND ".join([f"{column} LIKE ? ESCAPE '\\'"] * len(found)) or "0"
    return condition, [f"%{escaped(word)}%" for word in found]


_PLACES = (
    "SELECT p.id, p.name, p.town, t.name AS town_name, p.x, p.y FROM map_places p JOIN map_towns t ON t.id = p.town"
)
_STREETS = "SELECT r.id, r.name, r.town, t.name AS town_name, t.zip FROM map_roads r JOIN map_towns t ON t.id = r.town"


def _of_house(context: RequestContext, road: int, house: int) -> Stop | None:
    row = context.row(f"{_STREETS} WHERE r.id = ?", road)
    if row is None or not 1 <= house < HOUSES:
        return None
    label = f"{house} {row['name']}, {row['town_name']}"
    return Stop(f"house-{road}-{house}", label, house_on(network(context.database), road, house).point, row["town"])


def _own_address(context: RequestContext, text: str) -> Stop | None:
    if not context.account or text not in ("home", "work", "my home", "my work"):
        return None
    label = text.removeprefix("my ").capitalize()
    row = context.row("SELECT road, house FROM map_addresses WHERE account = ? AND label = ?", context.account, label)
    return _of_house(context, row["road"], row["house"]) if row else None


def _addresses(context: RequestContext, text: str) -> list[Stop]:
    """Houses: "12 Mill Street, Foxford" or "Mill Street 12"; without a town, in every town that has the street."""
    if first := _HOUSE_FIRST.fullmatch(text):
        house, street, where = first.groups()
    elif last := _HOUSE_LAST.fullmatch(text):
        street, house, where = last.groups()
    else:
        return []
    rows = context.rows(f"{_STREETS} WHERE r.name = ? COLLATE NOCASE ORDER BY t.id", street.strip())
    if where:
        said = where.casefold()
        rows = [row for row in rows if row["town_name"].casefold() in said or row["zip"] in said]
    return [stop for row in rows if (stop := _of_house(context, row["id"], int(house)))]


def _towns(context: RequestContext, text: str) -> list[Stop]:
    rows = context.rows("SELECT id FROM map_towns WHERE name = ? COLLATE NOCASE", text.strip())
    return [stop for row in rows if (stop := stop_of(context, f"town-{row['id']}"))]


def _exact_places(context: RequestContext, text: str) -> list[Stop]:
    """Places of exactly that name, or of the name before a comma in the town after it."""
    name, _, where = text.rpartition(",")
    query = f"{_PLACES} WHERE p.name = ? COLLATE NOCASE OR (p.name = ? COLLATE NOCASE AND t.name = ? COLLATE NOCASE)"
    return [of_place(row) for row in context.rows(query, text.strip(), name.strip(), where.strip())]


def _like_places(context: RequestContext, text: str) -> list[Stop]:
    condition, words = like_words("p.name || ' ' || t.name", text)
    rows = context.rows(f"{_PLACES} WHERE {condition} ORDER BY length(p.name), p.id LIMIT {MOST_CANDIDATES}", *words)
    return [of_place(row) for row in rows]
