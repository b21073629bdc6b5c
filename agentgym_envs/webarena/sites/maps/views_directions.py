"""Directions from one place to another."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import me
from agentgym_envs.webarena.sites.maps.drawing import WHOLE, Mark, draw, view_around
from agentgym_envs.webarena.sites.maps.finding import Stop, find_stops
from agentgym_envs.webarena.sites.maps.network import MODES, network
from agentgym_envs.webarena.sites.maps.routes import Route, find_route

routes = Routes()


@routes.get("/directions")
def directions(context: RequestContext) -> Response:
    """The form, and the way where both ends are plain; else what may have been meant.

    What people type becomes keys in the address, so that a way has one address.
    """
    mode = context.query.choice("mode", tuple(MODES), me(context)["mode"])
    texts = {end: context.query.text(end, most=100) for end in ("from", "to")}
    found = {end: find_stops(context, text) if text else [] for end, text in texts.items()}
    keys = {end: stops[0].key if len(stops) == 1 else texts[end] for end, stops in found.items()}
    if keys != texts or (all(texts.values()) and context.query.text("mode") != mode):
        return Redirect("/directions" + context.query.changed(**keys, mode=mode))
    stops = {end: one[0] for end, one in found.items() if len(one) == 1}
    route = _route(context, mode, stops) if len(stops) == 2 else None
    marks = [Mark(stop.point, "start" if end == "from" else "end") for end, stop in stops.items()]
    points = [*(route.points if route else ()), *(stop.point for stop in stops.values())]
    view = view_around(points) if points else WHOLE
    return context.page(
        "directions.html",
        mode=mode,
        modes=list(MODES.items()),
        labels={end: stops[end].label if end in stops else texts[end] for end in texts},
        unclear={end: one for end, one in found.items() if len(one) != 1 and texts[end]},
        stops=stops,
        route=route,
        drawing=draw(context, view, marks, route.points if route else ()),
    )


def _route(context: RequestContext, mode: str, stops: dict[str, Stop]) -> Route:
    start, end = stops["from"], stops["to"]
    return find_route(network(context.database), mode, start.point, end.point, end.label)
