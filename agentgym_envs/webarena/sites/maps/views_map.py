"""The map's own page, and the bare drawing for those who drag it."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import RawResponse, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import PLACES
from agentgym_envs.webarena.sites.maps.drawing import LARGEST_ZOOM, WHOLE, View, draw
from agentgym_envs.webarena.sites.maps.finding import find_stops, of_position, stop_of
from agentgym_envs.webarena.sites.maps.geometry import distance

routes = Routes()
_IN_VIEW = 10
_SHORTCUTS = ("restaurant", "cafe", "hotel", "museum", "supermarket", "pharmacy", "charging_station", "station")


@routes.get("/")
def home(context: RequestContext) -> Response:
    """The map."""
    view = _view(context)
    own = {label: find_stops(context, label) for label in ("Home", "Work")} if context.account else {}
    return context.page(
        "home.html",
        view=view,
        largest=LARGEST_ZOOM,
        drawing=draw(context, view),
        shortcuts=_SHORTCUTS,
        own={label: stops[0] for label, stops in own.items() if stops},
        seen=_seen(context, view) if view.zoom >= 5 else [],
        country=context.value("SELECT name FROM map_country"),
    )


@routes.get("/drawing")
def drawing(context: RequestContext) -> Response:
    """What the map's page shows, for its script."""
    return RawResponse(str(draw(context, _view(context))), "text/html; charset=utf-8")


@routes.get("/about")
def about(context: RequestContext) -> Response:
    """What this site is, in figures."""
    tables = ("places", "towns", "roads", "accounts", "changes", "notes")
    counts = {table: context.value(f"SELECT COUNT(*) FROM map_{table}") for table in tables}
    return context.page("about.html", counts=counts, country=context.value("SELECT name FROM map_country"))


def _view(context: RequestContext) -> View:
    """By "lat", "lon" and "zoom", or around what "at" names; else the whole country."""
    at = stop_of(context, context.query.text("at", most=100))
    if at is not None:
        return View(at.point, context.query.number("zoom", 7, most=LARGEST_ZOOM))
    middle = of_position(f"{context.query.text('lat', most=20)}, {context.query.text('lon', most=20)}")
    zoom = context.query.number("zoom", 0, most=LARGEST_ZOOM)
    return View(middle.point if middle else WHOLE.middle, zoom)


def _seen(context: RequestContext, view: View) -> list[sqlite3.Row]:
    """The places nearest to the middle of the view."""
    (west, north), (east, south) = view.corner, view.far_corner
    query = f"{PLACES} WHERE p.x BETWEEN ? AND ? AND p.y BETWEEN ? AND ?"
    rows = context.rows(query, west, east, north, south)
    return sorted(rows, key=lambda row: distance(view.middle, (row["x"], row["y"])))[:_IN_VIEW]
