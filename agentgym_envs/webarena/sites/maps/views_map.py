"""The map's own page, and the bare drawing for those who drag it."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Data, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import PLACES
from agentgym_envs.webarena.sites.maps.drawing import LARGEST_ZOOM, WHOLE, View, draw
from agentgym_envs.webarena.sites.maps.finding import find_stops, of_position, stop_of
from agentgym_envs.webarena.sites.maps.geometry import distance

routes = Routes()
_IN_VIEW = 10
_SHORTCUTS = ("restaurant", "cafe", "hotel", "museum", "supermarket", "pharmacy", "charging_station", "station")


@routes.get("/")
def home(visit: RequestContext) -> Response:
    """The map."""
    view = _view(visit)
    own = {label: find_stops(visit, label) for label in ("Home", "Work")} if visit.account else {}
    return visit.page(
        "home.html",
        view=view,
        largest=LARGEST_ZOOM,
        drawing=draw(visit, view),
        shortcuts=_SHORTCUTS,
        own={label: stops[0] for label, stops in own.items() if stops},
        seen=_seen(visit, view) if view.zoom >= 5 else [],
        country=visit.value("SELECT name FROM map_country"),
    )


@routes.get("/drawing")
def drawing(visit: RequestContext) -> Response:
    """What the map's page shows, for its script."""
    return Data(str(draw(visit, _view(visit))), "text/html; charset=utf-8")


@routes.get("/about")
def about(visit: RequestContext) -> Response:
    """What this site is, in figures."""
    tables = ("places", "towns", "roads", "accounts", "changes", "notes")
    counts = {table: visit.value(f"SELECT COUNT(*) FROM map_{table}") for table in tables}
    return visit.page("about.html", counts=counts, country=visit.value("SELECT name FROM map_country"))


def _view(visit: RequestContext) -> View:
    """By "lat", "lon" and "zoom", or around what "at" names; else the whole country."""
    at = stop_of(visit, visit.query.text("at", most=100))
    if at is not None:
        return View(at.point, visit.query.number("zoom", 7, most=LARGEST_ZOOM))
    middle = of_position(f"{visit.query.text('lat', most=20)}, {visit.query.text('lon', most=20)}")
    zoom = visit.query.number("zoom", 0, most=LARGEST_ZOOM)
    return View(middle.point if middle else WHOLE.middle, zoom)


def _seen(visit: RequestContext, view: View) -> list[sqlite3.Row]:
    """The places nearest to the middle of the view."""
    (west, north), (east, south) = view.corner, view.far_corner
    query = f"{PLACES} WHERE p.x BETWEEN ? AND ? AND p.y BETWEEN ? AND ?"
    rows = visit.rows(query, west, east, north, south)
    return sorted(rows, key=lambda row: distance(view.middle, (row["x"], row["y"])))[:_IN_VIEW]
