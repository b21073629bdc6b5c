"""The ASGI application: routes of the native protocol, and what surrounds them (token, sizes, errors, metrics)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from agentgym_envs.errors import AgentGymError, EnvError, ServerFull, SessionLost, TooLarge, Unauthorized, UsageError
from agentgym_envs.hosting.json_forms import error_to_json
from agentgym_envs.hosting.methods import METHODS
from agentgym_envs.http import protocol
from agentgym_envs.http.metrics import ServerMetrics
from agentgym_envs.http.openapi import openapi
from agentgym_envs.http.pages import docs_page
from agentgym_envs.http.protocol import BadRequest, BatchBody, BatchCall, CallBody, CreateSession, Malformed
from agentgym_envs.http.sessions import HttpSession, Sessions
from agentgym_envs.http.wire import NDJSON, PREFIX

_log = logging.getLogger(__name__)
_OPEN_PATHS = frozenset({"/health"})
_RETRY_SECONDS = 2
_READ_ON = 8
"""Up to this many times the limit a body is read to its end: who is cut off while writing may not see the answer."""
Handler = Callable[[Request], Awaitable[Response]]


class EnvServer:
    """The handlers of the native protocol over a table of sessions."""

    def __init__(self, sessions: Sessions, metrics: ServerMetrics) -> None:
        """`metrics` counts what goes on."""
        self.sessions, self.metrics = sessions, metrics
        self.about: dict[str, Any] = {}
        """What `/health` tells besides; a mount enters what it serves."""
        self._tasks: set[asyncio.Future[Any]] = set()

    def routes(self) -> list[Route]:
        """The routes."""
        one = f"{PREFIX}/sessions/{{session}}"
        return [
            Route(f"{one}/fork", self.fork, methods=["POST"]),
            Route(f"{one}/{{method}}", self.call, methods=["POST"]),
            Route(one, self.close, methods=["DELETE"]),
            Route(one, self.status, methods=["GET"]),
            Route(f"{PREFIX}/sessions", self.create, methods=["POST"]),
            Route(f"{PREFIX}/batch", self.batch, methods=["POST"]),
            Route("/envs", self.envs, methods=["GET"]),
            Route("/health", self.health, methods=["GET"]),
            Route("/metrics", self.show_metrics, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/docs", self.docs, methods=["GET"]),
        ]

    async def create(self, request: Request) -> Response:
        """Make an environment."""
        body = protocol.read(await self.body(request), CreateSession)
        return await self._created(request, await self.sessions.open(body.env, body.options))

    async def call(self, request: Request) -> Response:
        """Carry out a method."""
        method = request.path_params["method"]
        if method not in METHODS:
            raise HTTPException(404, f"there is no method {method!r}; there are {', '.join(METHODS)}")
        body = protocol.read(await self.body(request), CallBody)
        arguments = protocol.arguments_of(body, method)
        if len(arguments.get("actions", ())) > self.sessions.limits.restore_actions:
            raise TooLarge(f"a snapshot may hold {self.sessions.limits.restore_actions} actions")
        began = time.perf_counter()
        reply = await self.sessions.call(request.path_params["session"], method, arguments, body.seq)
        self.metrics.called(method, time.perf_counter() - began)
        return _json(reply)

    async def batch(self, request: Request) -> Response:
        """Carry out calls of many sessions."""
        body = protocol.read(await self.body(request), BatchBody)
        if len({call.session for call in body.calls}) != len(body.calls):
            raise Malformed("the calls of a batch must be of different sessions")
        began = time.perf_counter()
        outcomes: list[Any] = [self._here(call) for call in body.calls]
        waiting = [place for place, outcome in enumerate(outcomes) if outcome is None]
        self.metrics.called("batch", time.perf_counter() - began, len(body.calls))
        if not waiting:
            return _results(outcomes)
        pending = [self._task(self._there(place, body.calls[place])) for place in waiting]
        if body.stream:
            done = [(place, outcome) for place, outcome in enumerate(outcomes) if outcome is not None]
            return StreamingResponse(_lines(done, pending), media_type=NDJSON)
        for place, outcome in await asyncio.gather(*pending):
            outcomes[place] = outcome
        return _results(outcomes)

    async def fork(self, request: Request) -> Response:
        """A new session in the state of another."""
        await self.body(request)
        return await self._created(request, await self.sessions.fork(request.path_params["session"]))

    async def status(self, request: Request) -> Response:
        """How the episode stands."""
        session = self.sessions.get(request.path_params["session"])
        status = await self.sessions.call(session.token, "status", {})
        return _json({"env": session.env_id, "options": session.options, "seq": session.seq, **status})

    async def close(self, request: Request) -> Response:
        """Free a session, if it is there."""
        self.sessions.close(request.path_params["session"])
        return Response(status_code=204)

    async def envs(self, request: Request) -> Response:
        """What is served."""
        return _json({"version": PREFIX, "envs": await self._served()})

    async def health(self, request: Request) -> Response:
        """Whether the server is well, and how full it is."""
        load = {"sessions": len(self.sessions), "max_sessions": self.sessions.max_sessions}
        return _json({"status": "ok", **load, **self.about})

    async def show_metrics(self, request: Request) -> Response:
        """Prometheus text."""
        text, media_type = self.metrics.text(self.sessions)
        return Response(text, media_type=media_type)

    async def openapi(self, request: Request) -> Response:
        """The description of this protocol."""
        return _json(openapi())

    async def docs(self, request: Request) -> Response:
        """The same for people."""
        return Response(docs_page(), media_type="text/html")

    async def root(self, request: Request) -> Response:
        """To the page for people, which is what somebody wants who typed only the address."""
        return RedirectResponse("docs")

    async def body(self, request: Request) -> bytes:
        """The body, if it is small enough and comes soon enough. Raises TooLarge or BadRequest."""
        limits = self.sessions.limits
        chunks, size = list[bytes](), _declared_size(request)
        if size > _READ_ON * limits.body_bytes:
            raise TooLarge(f"a body may have {limits.body_bytes} bytes; this one has {size}")
        size = 0
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size <= limits.body_bytes:
                        chunks.append(chunk)
                    elif size > _READ_ON * limits.body_bytes:
                        break
        except TimeoutError:
            raise BadRequest(f"the body did not come within {limits.body_seconds:g} s") from None
        except ClientDisconnect:
            raise BadRequest("the client went away in the middle of the body") from None
        if size > limits.body_bytes:
            raise TooLarge(f"a body may have {limits.body_bytes} bytes; this one has more")
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _created(self, request: Request, session: HttpSession) -> Response:
        if await request.is_disconnected():  # nobody will ever know the session's token
            self.sessions.close(session.token)
            raise BadRequest("the client went away before its session was ready")
        load = {"sessions": len(self.sessions), "max_sessions": self.sessions.max_sessions}
        return _json({"session": session.token, "description": session.description, "load": load}, 201)

    def _task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """A call goes on if its client goes away: the client may ask again, and is answered from memory."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _here(self, call: BatchCall) -> Any:
        """The outcome of a call that needs no waiting, else None."""
        try:
            session = self.sessions.get(call.session)
            if session.worker is not None:
                return None
            arguments = protocol.arguments_of(call, call.method)
            return _told(self.sessions.call_here(session, call.method, arguments, call.seq))
        except AgentGymError as error:
            return _told(error)

    async def _there(self, place: int, call: BatchCall) -> tuple[int, Any]:
        try:
            arguments = protocol.arguments_of(call, call.method)
            return place, await self.sessions.call(call.session, call.method, arguments, call.seq)
        except AgentGymError as error:
            return place, _told(error)

    async def _served(self) -> list[dict[str, Any]]:
        rows = []
        for env_id, kind in self.sessions.classes.items():
            description = await self.sessions.describe(env_id)
            options = sorted(kind.remote_options)
            rows.append({"id": env_id, "hosted": self.sessions.hosted(env_id), "options": options, **description})
        return rows


def create_app(
    env_ids: Sequence[str], *, token: str | None = None, mounts: Sequence[Any] = (), **settings: Any
) -> Starlette:
    """The application that serves `env_ids`.

    Args:
        env_ids: registered ids.
        token: what a client must send as `Authorization: Bearer`; None asks for none.
        mounts: dialects; each is a function of the `EnvServer` that returns routes.
        **settings: for `Sessions`.

    Raises:
        UsageError: an id or setting that cannot be.
    """
    sessions = Sessions(list(env_ids), **settings)
    metrics = ServerMetrics()
    sessions.on_reaped = lambda session: metrics.reaped(session.env_id)
    server = EnvServer(sessions, metrics)
    routes: list[BaseRoute] = [*server.routes(), *(route for mount in mounts for route in mount(server))]
    routes.append(
        Route("/", server.root, methods=["GET"], include_in_schema=False)
    )  # last, as a mount may have its own

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await sessions.warm_up()
        reaper = asyncio.create_task(sessions.reap_forever())
        try:
            yield
        finally:
            reaper.cancel()
            await sessions.shut_down()

    handlers: dict[Any, Any] = {AgentGymError: _on_error, HTTPException: _on_http_error, Exception: _on_bug}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.state.server = server
    if token is not None:
        app.add_middleware(_TokenCheck, token=token)
    return app


class _TokenCheck:
    """Refuses what does not carry the token, in time that does not depend on where it differs."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._wanted = app, token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or scope["path"] in _OPEN_PATHS:
            return await self._app(scope, receive, send)  # type: ignore[no-any-return]
        given = _token_in(dict(scope["headers"]).get(b"authorization", b""))
        if given is not None and hmac.compare_digest(given, self._wanted):
            return await self._app(scope, receive, send)  # type: ignore[no-any-return]
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 4401})  # type: ignore[no-any-return]
        error = Unauthorized(
            f"this server wants its token, and got {'none' if given is None else 'another'}: send the header "
            "'Authorization: Bearer <token>'; in Python token=... or the environment variable AGENTGYM_TOKEN"
        )
        await _error_response(error)(scope, receive, send)


def _token_in(authorization: bytes) -> bytes | None:
    """The token after Bearer, or the password after Basic: all that a client which takes only an address can send."""
    scheme, _, value = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return value
    if scheme.lower() != b"basic":
        return None
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2]
    except ValueError:
        return None


def _told(outcome: Any) -> Any:
    return {"error": error_to_json(outcome)} if isinstance(outcome, Exception) else outcome


async def _lines(done: list[tuple[int, Any]], pending: Iterable[asyncio.Future[Any]]) -> AsyncIterator[bytes]:
    """A line for each result: those that are there at once, the others as they come."""
    yield b"".join(_line(*pair) for pair in done)
    for future in asyncio.as_completed(pending):
        yield _line(*await future)


def _line(place: int, outcome: Any) -> bytes:
    return b'{"index":%d,"result":%b}\n' % (place, _encoded(outcome))


def _encoded(outcome: Any) -> bytes:
    try:
        return protocol.encode(outcome)
    except EnvError as error:
        return protocol.encode(_told(error))


def _results(outcomes: list[Any]) -> Response:
    try:
        return _json({"results": outcomes})
    except EnvError:  # one that is not JSON must not take the others with it
        content = b'{"results":[%b]}' % b",".join(map(_encoded, outcomes))
        return Response(content, media_type="application/json")


def _json(value: Any, status: int = 200) -> Response:
    return Response(protocol.encode(value), status, media_type="application/json")


def _declared_size(request: Request) -> int:
    """What the head says of the length of the body; 0 if it says nothing."""
    for name, value in request.scope["headers"]:
        if name == b"content-length":
            return int(value)
    return 0


def _error_response(error: BaseException) -> Response:
    response = _json({"error": error_to_json(error)}, protocol.status_of(error))
    if isinstance(error, ServerFull):
        response.headers["Retry-After"] = str(_RETRY_SECONDS)
    if isinstance(error, Unauthorized):  # a browser then asks for it
        response.headers["WWW-Authenticate"] = 'Bearer, Basic realm="the token is the password"'
    if isinstance(error, TooLarge | BadRequest):
        response.headers["Connection"] = "close"  # the rest of the body is not read
    return response


async def _on_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, UsageError | SessionLost | ServerFull):
        _log.warning("%s %r: %r", request.method, request.url.path.split("/sessions/")[0], error)
    return _error_response(error)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = str(error.detail)
    if message in ("Not Found", "Method Not Allowed"):  # the status in words, which helps nobody
        message = f"there is no {request.method} {request.url.path:.200} on this server; /docs says what there is"
    kind = "NotFound" if error.status_code == 404 else "BadRequest"
    response = _json({"error": {"type": kind, "message": message}}, error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _on_bug(request: Request, error: Exception) -> Response:
    """The traceback is in the server's log, and not for strangers."""
    told = {"type": "SessionLost", "message": "the server failed; its log says why"}
    return _json({"error": told}, 500)
