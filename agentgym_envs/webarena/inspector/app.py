"""The inspector's server: its page, the API of the page, and the sites."""

from __future__ import annotations

import random
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from agentgym_envs.errors import UnknownTask
from agentgym_envs.webarena.browser.sites import App
from agentgym_envs.webarena.inspector.recorder import RecordingProxy
from agentgym_envs.webarena.inspector.session import InspectorSession, task_summary, total_score
from agentgym_envs.webarena.sites.framework.app import make_app
from agentgym_envs.webarena.sites.framework.site import ORIGINS, load_site
from agentgym_envs.webarena.tasks.scoring import start_urls

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from uvicorn import Server

DOMAIN = "agentgym.localhost"
"""Browsers resolve every name below `localhost` to the local machine. One domain lets cookies reach the frames."""
_MAX_ANSWER_LENGTH = 2_000
_MEDIA_TYPES = {"inspector.html": "text/html", "inspector.css": "text/css", "inspector.js": "text/javascript"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "frame-ancestors 'none'; frame-src {}"
)


class InspectorApp:
    """The ASGI application of an inspector session on a port."""

    def __init__(self, session: InspectorSession, port: int) -> None:
        self.session, self.port = session, port
        self.origin = f"http://inspector.{DOMAIN}:{port}"
        self.origins = {name: f"http://{name}.{DOMAIN}:{port}" for name in ORIGINS}
        sites = make_app(lambda _: session.episode, self.origins, self.origin)
        self.recorder = RecordingProxy(sites, {f"{name}.{DOMAIN}": origin for name, origin in ORIGINS.items()})
        self._page = self._routes()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the inspector under its own host, and the sites under all others."""
        host = dict(scope.get("headers", [])).get(b"host", b"").decode("latin-1").partition(":")[0]
        app: App = self._page if host == f"inspector.{DOMAIN}" else self.recorder
        await app(scope, receive, send)

    def _routes(self) -> Any:
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(
            routes=[
                Route("/", self._file),
                Route("/{name:str}.css", self._file),
                Route("/{name:str}.js", self._file),
                Route("/status", self._get_status),
                Route("/tasks", self._find_tasks),
                Route("/answer", self._set_answer, methods=["POST"]),
                Route("/begin", self._begin, methods=["POST"]),
            ]
        )

    async def _file(self, request: Request) -> Response:
        from starlette.responses import Response

        name = request.url.path.strip("/") or "inspector.html"
        if name not in _MEDIA_TYPES:
            return Response("There is no such page.", 404)
        text = files(__package__).joinpath(name).read_text(encoding="utf-8")
        headers = {
            "content-security-policy": _POLICY.format(" ".join(self.origins.values())),
            "cache-control": "no-store",
        }
        return Response(text, media_type=_MEDIA_TYPES[name], headers=headers)

    async def _get_status(self, request: Request) -> Response:
        return await self._status()

    async def _find_tasks(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        return JSONResponse([task_summary(task) for task in self.session.find(request.query_params.get("q", ""))])

    async def _set_answer(self, request: Request) -> Response:
        body = await self._read_json(request)
        if body is None:
            return _refused()
        self.session.answer = str(body.get("answer", ""))[:_MAX_ANSWER_LENGTH]
        return await self._status()

    async def _begin(self, request: Request) -> Response:
        """Begin the task with this id, a random task ("*"), or the current task again ("")."""
        from starlette.responses import JSONResponse

        body = await self._read_json(request)
        if body is None:
            return _refused()
        task, task_id, tasks = self.session.task, body.get("task", ""), self.session.tasks
        try:
            if task_id:
                task = tasks.draw(random.getrandbits(40), split=None) if task_id == "*" else tasks.get(task_id)
        except UnknownTask as error:
            return JSONResponse({"error": str(error)}, 404)
        self.session.begin(task)
        self.recorder.clear()
        return await self._status()

    async def _read_json(self, request: Request) -> Mapping[str, Any] | None:
        """Return the JSON object that the inspector's page sent; None for invalid requests and other pages."""
        if request.headers.get("origin") != self.origin:
            return None
        try:
            body = await request.json()
        except ValueError:
            return None
        return body if isinstance(body, dict) else None

    async def _status(self) -> Response:
        from starlette.responses import JSONResponse

        statuses = await self.session.evaluate(self.recorder)
        task = self.session.task
        tabs = start_urls(task) if task else [f"{ORIGINS['shop']}/"]
        tabs = [self.recorder.local_url(url, self.port) for url in tabs]
        return JSONResponse(
            {
                "task": task_summary(task),
                "episode": self.session.episode.token,
                "world": self.session.episode.world.seed,
                "start": tabs[0],
                "tabs": tabs,
                "url": self.recorder.url,
                "answer": self.session.answer,
                "score": total_score(statuses),
                "evaluators": [{"about": s.about, "score": s.score, "reason": s.reason} for s in statuses],
                "sites": [
                    {"name": load_site(n).title, "url": url, "origin": ORIGINS[n]} for n, url in self.origins.items()
                ],
            }
        )


def _refused() -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": "this page may not do that"}, 403)


def make_server(app: InspectorApp) -> Server:
    """Create a server for the inspector. The caller passes it a socket."""
    from uvicorn import Config, Server

    return Server(Config(app, interface="asgi3", lifespan="off", log_config=None))
