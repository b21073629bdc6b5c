"""The viewer over HTTP, for the browser of this machine. It answers only its own page.

Pages of other sites can send requests to the loopback address, even under their own host name (DNS rebinding).
Therefore the Host header must name this server, and responses cannot be read across origins. The only request that
changes anything writes the note of an episode. It needs a token that only this page can read, and is refused if other
machines can reach the server.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import nullcontext
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentgym_envs.errors import AgentGymError, MissingExtra, UsageError
from agentgym_envs.image_files import media_type
from agentgym_envs.viewer.api import UnknownEpisode, Viewer, to_json
from agentgym_envs.viewer.filters import parse_page
from agentgym_envs.viewer.notes import NoteConflict, NoteNotWritten
from agentgym_envs.viewer.pages import PAGE, read_static

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_MAX_PANEL_REQUESTS = 8
_MAX_BODY_BYTES = 100_000
_TOKEN_HEADER = "x-agentgym-token"
_READ_ONLY = "notes can only be written on the machine of the viewer: it was started for other machines as well"
_STATUS = {UnknownEpisode: 404, UsageError: 400, NoteConflict: 409, NoteNotWritten: 403, MissingExtra: 501}
_LOCAL_NAMES = frozenset({"localhost", socket.gethostname().lower(), socket.getfqdn().lower()})
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


def make_app(viewer: Viewer, *, host: str = "127.0.0.1") -> _App:
    """Make the ASGI application. `host` is the name or address that it listens on."""
    endpoints = _Endpoints(viewer, writable=is_loopback(host))
    routes = [
        Route("/", endpoints.file),
        Route("/static/{name}", endpoints.file),
        Route("/api/summary", endpoints.summary),
        Route("/api/training", endpoints.training),
        Route("/api/episodes", endpoints.episodes),
        Route("/api/runs", endpoints.runs),
        Route("/api/session", endpoints.session),
        Route("/api/find/{number}/{mark}", endpoints.find),
        Route("/api/episodes/{number}", endpoints.episode),
        Route("/api/episodes/{number}/note", endpoints.note, methods=["POST"]),
        Route("/api/episodes/{number}/episode.html", endpoints.page),
        Route("/api/episodes/{number}/episode.gif", endpoints.animation),
        Route("/api/episodes/{number}/{part}", endpoints.episode),
        Route("/api/episodes/{number}/images/{name}", endpoints.image),
        Route("/{path:path}", _nothing),
    ]
    app = Starlette(routes=routes, exception_handlers={AgentGymError: _refuse, Exception: _fail})
    return _Guard(GZipMiddleware(app, minimum_size=2048, compresslevel=1), host)


def make_server(viewer: Viewer, host: str, port: int) -> uvicorn.Server:
    """Make a server without starting it."""
    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    app = make_app(viewer, host=host)
    return uvicorn.Server(
        uvicorn.Config(app, host=host, port=port, lifespan="off", timeout_graceful_shutdown=2, **options)
    )


class _Endpoints:
    """The endpoints. Files are read in threads, so that requests do not block each other."""

    def __init__(self, viewer: Viewer, *, writable: bool) -> None:
        self._viewer, self._writable, self._token = viewer, writable, secrets.token_urlsafe(24)
        self._panels = asyncio.Semaphore(_MAX_PANEL_REQUESTS)  # panels are slow and must not occupy all threads
        self._exports = asyncio.Semaphore(2)

    async def file(self, request: Request) -> Response:
        found = read_static(request.path_params.get("name", PAGE))
        return await _nothing(request) if found is None else Response(found[0], media_type=found[1])

    async def summary(self, request: Request) -> Response:
        return await _answer(self._viewer.summary)

    async def training(self, request: Request) -> Response:
        return await _answer(self._viewer.training)

    async def episodes(self, request: Request) -> Response:
        page = parse_page(request.query_params.multi_items())
        return await _answer(lambda: self._viewer.page(page))

    async def episode(self, request: Request) -> Response:
        number, part = request.path_params["number"], request.path_params.get("part", "episode")
        load = {"episode": self._viewer.episode, "panels": self._viewer.panels, "tokens": self._viewer.tokens}.get(part)
        if load is None or not _is_number(number):
            return await _nothing(request)
        async with self._panels if part == "panels" else nullcontext():
            return await _answer(lambda: load(int(number)))

    async def runs(self, request: Request) -> Response:
        name = request.query_params.get("name")
        return await _answer(self._viewer.runs if name is None else lambda: self._viewer.run(name))

    async def session(self, request: Request) -> Response:
        """The token of a write, which pages of other sites cannot read."""
        found = {"token": self._token} if self._writable else {"token": None, "why": _READ_ONLY}
        return Response(to_json(found), media_type="application/json")

    async def find(self, request: Request) -> Response:
        number, mark = request.path_params["number"], request.path_params["mark"]
        if not _is_number(number):
            return await _nothing(request)
        return await _answer(lambda: {"id": self._viewer.find(int(number), mark)})

    async def note(self, request: Request) -> Response:
        number = request.path_params["number"]
        if not _is_number(number):
            return await _nothing(request)
        if refusal := self._refusal(request):
            return _error(refusal, 403)
        note = _read_note(await _body(request))
        return await _answer(lambda: self._viewer.write_note(int(number), *note))

    def _refusal(self, request: Request) -> str | None:
        """The reason to refuse a write; None if it comes from this page."""
        if not self._writable:
            return _READ_ONLY
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        if origin is not None and origin.partition("://")[2] != host:
            return "notes are written only from the viewer's own page"
        given = request.headers.get(_TOKEN_HEADER, "")
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return "the token of this write is missing or of an earlier viewer; load the page again"
        return None

    async def page(self, request: Request) -> Response:
        return await self._file(request, "html", lambda number: self._viewer.export(number).encode(), "text/html")

    async def animation(self, request: Request) -> Response:
        return await self._file(request, "gif", self._viewer.animation, "image/gif")

    async def _file(self, request: Request, ending: str, make: Callable[[int], bytes], kind: str) -> Response:
        number = request.path_params["number"]
        if not _is_number(number):
            return await _nothing(request)
        async with self._exports:
            data = await run_in_threadpool(make, int(number))
        headers = {"Content-Disposition": f'attachment; filename="episode-{number}.{ending}"'}
        return Response(data, media_type=kind, headers=headers)

    async def image(self, request: Request) -> Response:
        number, name = request.path_params["number"], request.path_params["name"]
        if not _is_number(number):
            return await _nothing(request)
        image = await run_in_threadpool(lambda: self._viewer.image(int(number), name))
        return await _nothing(request) if image is None else Response(image, media_type=media_type(image))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


async def _body(request: Request) -> bytes:
    """The body of a request. Raises UsageError if it is too long."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > _MAX_BODY_BYTES:
            raise UsageError(f"a note may have {_MAX_BODY_BYTES:,} bytes as JSON")
    return bytes(data)


def _read_note(body: bytes) -> tuple[str, list[str], int]:
    """Text, tags and version of a note as JSON. Raises UsageError."""
    try:
        row = json.loads(body)
        text, tags, version = row["text"], row["tags"], row["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError("a note is a JSON object with text, tags and version") from None
    if not isinstance(text, str) or not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise UsageError("the text of a note and each of its tags must be texts")
    if type(version) is not int:
        raise UsageError(f"the version of a note must be a whole number, not {version!r:.40}")
    return text, tags, version


class _Guard:
    """Middleware that refuses requests for another host name, and adds the security headers to every response."""

    def __init__(self, app: _App, host: str) -> None:
        self._app, self._names = app, {*_names_of(host)}

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: _Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_RAW_HEADERS]
            await send(message)

        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) == 1 and is_own_name(hosts[0], self._names):
            await self._app(scope, receive, send_guarded)
        else:
            answer = _error("this server answers only under its own address", 421)
            await answer(scope, receive, send_guarded)


def is_own_name(header: str, names: Iterable[str]) -> bool:
    """True if a Host header names this server: by one of its names, or by an IP address, which cannot be rebound."""
    name, bracket, _ = header.partition("]")
    name = f"{name}]" if bracket else header.rpartition(":")[0] or header
    if name != "*" and name.lower() in names:
        return True
    try:
        ipaddress.ip_address(name[1:-1] if bracket else name)
    except ValueError:
        return False
    return "*" in names or is_loopback(name.strip("[]"))


def is_loopback(address: str) -> bool:
    """True if only this machine can reach a server at the address or name."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def _names_of(host: str) -> Iterable[str]:
    """The host names of a server. "*" allows any IP address, if it also listens for other machines."""
    return {"localhost"} if is_loopback(host) else {*_LOCAL_NAMES, host.lower(), "*"}


async def _answer(load: Callable[[], Any]) -> Response:
    text = await run_in_threadpool(lambda: to_json(load()))
    return Response(text, media_type="application/json")


async def _nothing(request: Request) -> Response:
    return _error(f"there is nothing at {request.url.path[:200]!r}", 404)


async def _refuse(request: Request, error: Exception) -> Response:
    return _error(str(error), next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500))


async def _fail(request: Request, error: Exception) -> Response:
    """Respond to an unexpected error, which the server logs."""
    return _error(f"the viewer failed: {type(error).__name__}; see its log", 500)


def _error(text: str, status: int) -> Response:
    return Response(to_json({"error": text}), status, media_type="application/json")
