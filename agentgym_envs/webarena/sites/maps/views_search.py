"""Search of places: by words, filters or distance."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import PLACES, PLACES_COUNT
from agentgym_envs.webarena.sites.maps.drawing import WHOLE, MapPin, draw, view_around
from agentgym_envs.webarena.sites.maps.geocoding import Location, find_locations, like_words, location_of
from agentgym_envs.webarena.sites.maps.geometry import Point
from agentgym_envs.webarena.sites.maps.hours import is_open
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES
from agentgym_envs.webarena.sites.maps.network import metres_between
from agentgym_envs.webarena.sites.maps.searching import search

routes = Routes()
_ON_A_PAGE = 10
SORTS = {
    "name": ("Name", "p.name"),
    "town": ("Town", "t.name, p.name"),
    "stars": ("Stars, most first", "p.stars DESC, p.name"),
    "size": ("Size, largest first", "p.capacity DESC, p.name"),
    "height": ("Height, highest first", "p.elevation DESC, p.name"),
    "edited": ("Last edited", "p.changed DESC"),
}
_WITHIN = ((0, "Any distance"), (1, "1 km"), (2, "2 km"), (5, "5 km"), (20, "20 km"), (50, "50 km"))


@routes.get("/search")
def search_page(context: RequestContext) -> Response:
    """List the results of the search field."""
    text = context.query.text("q", most=100)
    search_results = search(context, text)
    paging = Paging.of(context.query, len(search_results.results), _ON_A_PAGE)
    shown = search_results.results[paging.skipped : paging.skipped + _ON_A_PAGE]
    points = [result.point for result in shown] + ([search_results.near.point] if search_results.near else [])
    return context.page(
        "search.html",
        text=text,
        search_results=search_results,
        shown=shown,
        paging=paging,
        drawing=_pinned(context, [result.point for result in shown], points, paging.skipped, search_results.near),
    )


@routes.get("/places")
def places(context: RequestContext) -> Response:
    """List the places that match the filters."""
    conditions, arguments = _filters(context)
    where = " AND ".join(conditions)
    sort = context.query.choice("sort", tuple(SORTS), "name")
    query = f"{PLACES} WHERE {where} ORDER BY {SORTS[sort][1]}, p.id"
    if context.query.is_checked("open"):
        matches = [row for row in context.rows(query, *arguments) if row["hours"] and is_open(row["hours"])]
        paging = Paging.of(context.query, len(matches), _ON_A_PAGE)
        rows = matches[paging.skipped : paging.skipped + _ON_A_PAGE]
    else:
        paging = Paging.of(context.query, context.value(f"{PLACES_COUNT} WHERE {where}", *arguments), _ON_A_PAGE)
        rows = context.rows(f"{query} LIMIT ? OFFSET ?", *arguments, _ON_A_PAGE, paging.skipped)
    points = [(row["x"], row["y"]) for row in rows]
    return context.page(
        "places.html",
        rows=rows,
        paging=paging,
        sort=sort,
        sorts=[(key, label) for key, (label, _) in SORTS.items()],
        categories=_categories(),
        towns=_towns(context),
        cuisines=[row[0] for row in context.rows(_CUISINES)],
        drawing=_pinned(context, points, points, paging.skipped),
    )


@routes.get("/nearby")
def nearby(context: RequestContext) -> Response:
    """List places of a category by straight-line distance."""
    text, category = (
        context.query.text("near", most=100),
        context.query.choice("category", tuple(CATEGORIES), "restaurant"),
    )
    location = location_of(context, text)
    candidates = [] if location else find_locations(context, text)
    if len(candidates) == 1:
        return Redirect("/nearby" + context.query.changed(near=candidates[0].key))
    rows = _by_distance(context, location, category) if location else []
    paging = Paging.of(context.query, len(rows), _ON_A_PAGE)
    shown = rows[paging.skipped : paging.skipped + _ON_A_PAGE]
    points = [(row["x"], row["y"]) for row, _ in shown]
    return context.page(
        "nearby.html",
        text=location.label if location else text,
        location=location,
        candidates=candidates,
        category=category,
        categories=_categories(),
        distances=_WITHIN,
        shown=shown,
        paging=paging,
        drawing=_pinned(context, points, [*points, location.point] if location else [], paging.skipped, location),
    )


_CUISINES = "SELECT DISTINCT cuisine FROM map_places WHERE cuisine IS NOT NULL ORDER BY cuisine"


def _filters(context: RequestContext) -> tuple[list[str], list[Any]]:
    """Return conditions (at least one) and their arguments."""
    query = context.query
    wanted: list[tuple[str, Any]] = [
        ("p.category = ?", query.choice("category", tuple(CATEGORIES))),
        ("p.town = ?", query.number("town")),
        ("p.cuisine = ?", query.text("cuisine", most=40)),
        ("p.stars >= ?", query.number("stars", most=5)),
        ("p.wheelchair = ?", query.choice("wheelchair", ("yes", "limited", "no"))),
        ("p.internet = ?", "wlan" if query.is_checked("internet") else ""),
        ("p.outdoor = ?", int(query.is_checked("outdoor"))),
        ("p.operator = ? COLLATE NOCASE", query.text("operator", most=60)),
    ]
    conditions = ["1", *(condition for condition, value in wanted if value)]
    arguments = [value for _, value in wanted if value]
    name = query.text("name", most=60)
    if name:
        condition, words = like_words("p.name", name)
        return [*conditions, condition], [*arguments, *words]
    return conditions, arguments


def _by_distance(context: RequestContext, location: Location, category: str) -> list[tuple[sqlite3.Row, int]]:
    most = context.query.number("within", most=1000) * 1000
    rows = context.rows(f"{PLACES} WHERE p.category = ?", category)
    away = [
        (row, metres_between(location.point, (row["x"], row["y"])))
        for row in rows
        if f"place-{row['id']}" != location.key
    ]
    return sorted((one for one in away if not most or one[1] <= most), key=lambda one: one[1])


def _categories() -> list[tuple[str, str]]:
    return sorted(((key, one.label) for key, one in CATEGORIES.items()), key=lambda one: one[1])


def _towns(context: RequestContext) -> list[tuple[int, str]]:
    return [(row["id"], row["name"]) for row in context.rows("SELECT id, name FROM map_towns ORDER BY name")]


def _pinned(
    context: RequestContext, pins: list[Point], points: list[Point], skipped: int, here: Location | None = None
) -> Any:
    """Draw a view around points, with numbered pins."""
    marks = [MapPin(point, str(number)) for number, point in enumerate(pins, skipped + 1)]
    marks += [MapPin(here.point, "here")] if here else []
    return draw(context, view_around(points) if points else WHOLE, marks)
