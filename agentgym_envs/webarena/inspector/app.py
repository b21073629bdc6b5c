"""The desk's server: its page, what the page asks, and the sites beside it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from agentgym_envs.errors import UnknownTask
from agentgym_envs.webarena.browser.sites import App
from agentgym_envs.webarena.inspector.session import InspectorSession, described, score_of
from agentgym_envs.webarena.inspector.watch import Watch
from agentgym_envs.webarena.sites.framework.app import make_app
from agentgym_envs.webarena.sites.framework.site import ORIGINS, load_site

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from uvicorn import Server

DOMAIN = "agentgym.localhost"
"""Browsers find every name below `localhost` on their own machine; one domain, so that cookies reach the frames."""
_MOST_ANSWER = 2_000
_KINDS = {"desk.html": "text/html", "desk.css": "text/css", "desk.js": "text/javascript"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "frame-ancestors 'none'; frame-src {}"
)


class DeskApp:
    """The ASGI application of a desk at a port."""

    def __init__(self, desk: InspectorSession, port: int) -> None:
        self.desk, self.port = desk, port
        self.origin = f"http://desk.{DOMAIN}:{port}"
        self.origins = {name: f"http://{name}.{DOMAIN}:{port}" for name in ORIGINS}
        sites = make_app(lambda _: desk.episode, self.origins, self.origin)
        self.watch = Watch(sites, {f"{name}.{DOMAIN}": origin for name, origin in ORIGINS.items()})
        self._page = self._routes()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer: the desk itself under its own name, everything else is the sites'."""
        host = dict(scope.get("headers", [])).get(b"host", b"").decode("latin-1").partition(":")[0]
        app: App = self._page if host == f"desk.{DOMAIN}" else self.watch
        await app(scope, receive, send)

    def _routes(self) -> Any:
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(
            routes=[
                Route("/", self._file),
                Route("/{name:str}.css", self._file),
                Route("/{name:str}.js", self._file),
                Route("/status", self._status),
                Route("/tasks", self._tasks),
                Route("/answer", self._answer, methods=["POST"]),
                Route("/begin", self._begin, methods=["POST"]),
            ]
        )

    async def _file(self, request: Request) -> Response:
        from starlette.responses import Response

        name = request.url.path.strip("/") or "desk.html"
        if name not in _KINDS:
            return Response("There is no such page.", 404)
        text = files(__package__).joinpath(name).read_text(encoding="utf-8")
        headers = {
            "content-security-policy": _POLICY.format(" ".join(self.origins.values())),
            "cache-control": "no-store",
        }
        return Response(text, media_type=_KINDS[name], headers=headers)

    async def _status(self, request: Request) -> Response:
        return await self._told()

    async def _tasks(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        return JSONResponse([described(task) for task in self.desk.find(request.query_params.get("q", ""))])

    async def _answer(self, request: Request) -> Response:
        said = await self._posted(request)
        if said is None:
            return _refused()
        self.desk.answer = str(said.get("answer", ""))[:_MOST_ANSWER]
        return await self._told()

    async def _begin(self, request: Request) -> Response:
        """Another task: the one named, the same anew ("") or any ("*")."""
        from starlette.responses import JSONResponse

        said = await self._posted(request)
        if said is None:
            return _refused()
        wanted = said.get("task", "")
        try:
            task = self.desk.task if not wanted else None if wanted == "*" else self.desk.tasks.get(wanted)
        except UnknownTask as error:
            return JSONResponse({"error": str(error)}, 404)
        self.desk.begin(self.desk.tasks.draw(random.getrandbits(40), split=None) if wanted == "*" else task)
        self.watch.forget()
        return await self._told()

    async def _posted(self, request: Request) -> Mapping[str, Any] | None:
        """What the desk's own page sent; None if it was another's, which must not play here."""
        if request.headers.get("origin") != self.origin:
            return None
        try:
            said = await request.json()
        except ValueError:
            return None
        return said if isinstance(said, dict) else None

    async def _told(self) -> Response:
        from starlette.responses import JSONResponse

        standings = await self.desk.standings(self.watch)
        task = self.desk.task
        start = task.data["start"] if task else f"{ORIGINS['shop']}/"
        return JSONResponse(
            {
                "task": described(task),
                "episode": self.desk.episode.token,
                "world": self.desk.episode.world.seed,
                "start": self.watch.address_here(start, self.port),
                "url": self.watch.url,
                "answer": self.desk.answer,
                "score": score_of(standings),
                "standings": [{"about": s.about, "score": s.score, "reason": s.reason} for s in standings],
                "sites": [
                    {"name": load_site(n).title, "url": url, "origin": ORIGINS[n]} for n, url in self.origins.items()
                ],
            }
        )


def _refused() -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": "this page may not do that"}, 403)


def make_server(app: DeskApp) -> Server:
    """A server of the desk, to be given a socket."""
    from uvicorn import Config, Server

    return Server(Config(app, interface="asgi3", lifespan="off", log_config=None))
