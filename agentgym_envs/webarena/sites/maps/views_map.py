"""The map page, and the tiles of all maps."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, RawResponse, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import PLACES
from agentgym_envs.webarena.sites.maps.drawing import MAX_ZOOM, WHOLE, MapView, draw, draw_tile
from agentgym_envs.webarena.sites.maps.geocoding import find_locations, location_of, location_of_position
from agentgym_envs.webarena.sites.maps.geometry import distance

routes = Routes()
_IN_VIEW = 10
_SHORTCUTS = ("restaurant", "cafe", "hotel", "museum", "supermarket", "pharmacy", "charging_station", "station")


@routes.get("/")
def home(context: RequestContext) -> Response:
    """Show the map."""
    view = _view(context)
    own = {label: find_locations(context, label) for label in ("Home", "Work")} if context.account else {}
    return context.page(
        "home.html",
        view=view,
        max_zoom=MAX_ZOOM,
        drawing=draw(context, view),
        shortcuts=_SHORTCUTS,
        own={label: locations[0] for label, locations in own.items() if locations},
        visible=_visible(context, view) if view.zoom >= 5 else [],
        country=context.value("SELECT name FROM map_country"),
    )


@routes.get("/tiles/{zoom:int}/{column:int}/{row:int}.svg")
def tile(context: RequestContext, zoom: int, column: int, row: int) -> Response:
    """Return a tile of the ground."""
    drawn = draw_tile(context.database, zoom, column, row)
    if drawn is None:
        raise NotFound("The map ends before this tile.")
    return RawResponse(drawn, "image/svg+xml")


@routes.get("/about")
def about(context: RequestContext) -> Response:
    """Show figures about the site."""
    tables = ("places", "towns", "roads", "accounts", "changes", "notes")
    counts = {table: context.value(f"SELECT COUNT(*) FROM map_{table}") for table in tables}
    return context.page("about.html", counts=counts, country=context.value("SELECT name FROM map_country"))


def _view(context: RequestContext) -> MapView:
    """Return the view by "lat", "lon" and "zoom", or around the location "at", otherwise the whole country."""
    at = location_of(context, context.query.text("at", most=100))
    if at is not None:
        return MapView(at.point, context.query.number("zoom", 7, most=MAX_ZOOM))
    middle = location_of_position(f"{context.query.text('lat', most=20)}, {context.query.text('lon', most=20)}")
    zoom = context.query.number("zoom", 0, most=MAX_ZOOM)
    return MapView(middle.point if middle else WHOLE.middle, zoom)


def _visible(context: RequestContext, view: MapView) -> list[sqlite3.Row]:
    """Return the places nearest to the centre of the view."""
    (west, north), (east, south) = view.corner, view.far_corner
    query = f"{PLACES} WHERE p.x BETWEEN ? AND ? AND p.y BETWEEN ? AND ?"
    rows = context.rows(query, west, east, north, south)
    return sorted(rows, key=lambda row: distance(view.middle, (row["x"], row["y"])))[:_IN_VIEW]
