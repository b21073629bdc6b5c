"""Directions between two locations."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import current_account
from agentgym_envs.webarena.sites.maps.drawing import WHOLE, MapPin, draw, view_around
from agentgym_envs.webarena.sites.maps.geocoding import Location, find_locations
from agentgym_envs.webarena.sites.maps.network import MODES, network
from agentgym_envs.webarena.sites.maps.routes import MapRoute, find_route

routes = Routes()


@routes.get("/directions")
def directions(context: RequestContext) -> Response:
    """Show the form, and the route if both ends are unambiguous, otherwise the candidates.

    Texts are replaced by keys with a redirect, so that a route has one URL.
    """
    mode = context.query.choice("mode", tuple(MODES), current_account(context)["mode"])
    texts = {end: context.query.text(end, most=100) for end in ("from", "to")}
    candidates = {end: find_locations(context, text) if text else [] for end, text in texts.items()}
    keys = {end: locations[0].key if len(locations) == 1 else texts[end] for end, locations in candidates.items()}
    if keys != texts or (all(texts.values()) and context.query.text("mode") != mode):
        return Redirect("/directions" + context.query.changed(**keys, mode=mode))
    locations = {end: one[0] for end, one in candidates.items() if len(one) == 1}
    route = _route(context, mode, locations) if len(locations) == 2 else None
    marks = [MapPin(location.point, "start" if end == "from" else "end") for end, location in locations.items()]
    points = [*(route.points if route else ()), *(location.point for location in locations.values())]
    view = view_around(points) if points else WHOLE
    return context.page(
        "directions.html",
        mode=mode,
        modes=list(MODES.items()),
        labels={end: locations[end].label if end in locations else texts[end] for end in texts},
        unclear={end: one for end, one in candidates.items() if len(one) != 1 and texts[end]},
        locations=locations,
        route=route,
        drawing=draw(context, view, marks, route.points if route else ()),
    )


def _route(context: RequestContext, mode: str, locations: dict[str, Location]) -> MapRoute:
    start, end = locations["from"], locations["to"]
    return find_route(network(context.database), mode, start.point, end.point, end.label)
