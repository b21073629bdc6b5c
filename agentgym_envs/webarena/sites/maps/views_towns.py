"""Towns, regions and roads."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.drawing import MapPin, MapView, draw, view_around
from agentgym_envs.webarena.sites.maps.network import network

routes = Routes()
_TOWNS_ON_A_PAGE = 15
SORTS = {
    "name": ("Name", "t.name"),
    "population": ("Population, largest first", "t.population DESC"),
    "elevation": ("Elevation, highest first", "t.elevation DESC, t.name"),
    "region": ("Region", "r.name, t.name"),
}
_KINDS = {
    "motorway": "Motorway",
    "link": "Motorway link",
    "primary": "Main road",
    "secondary": "Country road",
    "tertiary": "Main street",
    "residential": "Street",
    "pedestrian": "Street for pedestrians",
    "path": "Path",
}


@routes.get("/towns")
def towns(context: RequestContext) -> Response:
    """List the towns."""
    sort = context.query.choice("sort", tuple(SORTS), "name")
    region = context.query.number("region")
    where, arguments = ("t.region = ?", [region]) if region else ("1", [])
    paging = Paging.of(
        context.query, context.value(f"SELECT COUNT(*) FROM map_towns t WHERE {where}", *arguments), _TOWNS_ON_A_PAGE
    )
    query = f"SELECT t.*, r.name AS region_name FROM map_towns t JOIN map_regions r ON r.id = t.region WHERE {where}"
    rows = context.rows(
        f"{query} ORDER BY {SORTS[sort][1]} LIMIT ? OFFSET ?", *arguments, _TOWNS_ON_A_PAGE, paging.skipped
    )
    return context.page(
        "towns.html",
        rows=rows,
        paging=paging,
        sort=sort,
        sorts=[(key, label) for key, (label, _) in SORTS.items()],
        regions=[(row["id"], row["name"]) for row in context.rows("SELECT id, name FROM map_regions ORDER BY name")],
    )


@routes.get("/town/{town:int}")
def town(context: RequestContext, town: int) -> Response:
    """Show a town, with its number of places by category."""
    row = context.one(
        "SELECT t.*, r.name AS region_name FROM map_towns t JOIN map_regions r ON r.id = t.region WHERE t.id = ?", town
    )
    query = "SELECT category, COUNT(*) AS count FROM map_places WHERE town = ? GROUP BY category ORDER BY 2 DESC, 1"
    streets = "SELECT id, name FROM map_roads WHERE town = ? AND kind != 'path' ORDER BY name"
    return context.page(
        "town.html",
        town=row,
        kinds=context.rows(query, town),
        streets=context.rows(streets, town),
        open_notes=context.value("SELECT COUNT(*) FROM map_notes WHERE town = ? AND status = 'open'", town),
        drawing=draw(context, MapView((row["x"], row["y"]), 6)),
    )


@routes.get("/region/{region:int}")
def region(context: RequestContext, region: int) -> Response:
    """Show a region with its towns."""
    row = context.one(
        "SELECT r.*, t.name AS seat_name FROM map_regions r JOIN map_towns t ON t.id = r.seat WHERE r.id = ?", region
    )
    rows = context.rows("SELECT * FROM map_towns WHERE region = ? ORDER BY population DESC", region)
    points = [(one["x"], one["y"]) for one in rows]
    return context.page("region.html", region=row, towns=rows, drawing=draw(context, view_around(points, 3)))


@routes.get("/road/{road:int}")
def road(context: RequestContext, road: int) -> Response:
    """Show a road with its places."""
    row = context.one(
        "SELECT r.*, t.name AS town_name FROM map_roads r LEFT JOIN map_towns t ON t.id = r.town WHERE r.id = ?", road
    )
    net = network(context.database)
    points = [net.ends(net.chains[road][0])[0], *(net.ends(segment)[1] for segment in net.chains[road])]
    query = "SELECT id, name, category, house FROM map_places WHERE road = ? ORDER BY house, id LIMIT 25"
    marks = [MapPin(points[0], "start"), MapPin(points[-1], "end")]
    return context.page(
        "road.html",
        road=row,
        kind=_KINDS[row["kind"]],
        metres=net.length(road),
        places=context.rows(query, road),
        drawing=draw(context, view_around(points), marks, points),
    )
