"""The ASGI application: the routes of the native protocol, with token check, size limits, errors and metrics."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

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
from agentgym_envs.http.step_request import StepRequest
from agentgym_envs.http.wire import NDJSON, PREFIX

_log = logging.getLogger(__name__)
_OPEN_PATHS = frozenset({"/health"})
_RETRY_SECONDS = 2
_READ_ON = 8
"""A body up to this many times its limit is read to its end: a client that is interrupted may not read the error."""
Handler = Callable[[Request], Awaitable[Response]]


class JsonReply(NamedTuple):
    """The reply to a step that was carried out, as JSON; a `Response` takes longer to make."""

    body: bytes
    status_code: int = 200


class EnvServer:
    """The handlers of the native protocol over a table of sessions."""

    def __init__(self, sessions: Sessions, metrics: ServerMetrics) -> None:
        """`metrics` counts the calls and sessions."""
        self.sessions, self.metrics = sessions, metrics
        self.token_check: TokenCheck | None = None
        self.about: dict[str, Any] = {}
        """Additional fields of `/health`, set by mounts."""
        self.lifespans: list[Callable[[], contextlib.AbstractAsyncContextManager[None]]] = []
        """Contexts that mounts need while the server runs."""
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
        """Call a method of one session."""
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

    def step_now(self, request: StepRequest) -> Response | JsonReply | None:
        """Take a step in the server's own process, as `call` does.

        Returns None, and has no effect, if `call` must answer: the token, body or session is wrong, or the session is
        in a worker.
        """
        session = self.sessions.find(request.session)
        refused = self.token_check is not None and self.token_check.refusal(request.authorization) is not None
        if refused or session is None or session.worker is not None:
            return None
        if len(request.body) > self.sessions.limits.body_bytes:
            return None
        try:
            body = protocol.read(request.body, CallBody)
            arguments = protocol.arguments_of(body, "step")
        except (BadRequest, Malformed):
            return None
        began = time.perf_counter()
        outcome = self.sessions.call_here(session, "step", arguments, body.seq)
        if isinstance(outcome, AgentGymError):
            return _failed(outcome, f"POST {PREFIX!r}")
        self.metrics.called("step", time.perf_counter() - began)
        try:
            return JsonReply(protocol.encode(outcome))
        except EnvError as error:
            return _failed(error, f"POST {PREFIX!r}")

    async def batch(self, request: Request) -> Response:
        """Call methods of many sessions."""
        body = protocol.read(await self.body(request), BatchBody)
        if len({call.session for call in body.calls}) != len(body.calls):
            raise Malformed("the calls of a batch must be of different sessions")
        began = time.perf_counter()
        outcomes: list[Any] = [self._call_here(call) for call in body.calls]
        waiting = [index for index, outcome in enumerate(outcomes) if outcome is None]
        self.metrics.called("batch", time.perf_counter() - began, len(body.calls))
        if not waiting:
            return _results(outcomes)
        pending = [self._task(self._call_worker(index, body.calls[index])) for index in waiting]
        if body.stream:
            done = [(index, outcome) for index, outcome in enumerate(outcomes) if outcome is not None]
            return StreamingResponse(_lines(done, pending), media_type=NDJSON)
        for index, outcome in await asyncio.gather(*pending):
            outcomes[index] = outcome
        return _results(outcomes)

    async def fork(self, request: Request) -> Response:
        """Make a session in the state of another."""
        await self.body(request)
        return await self._created(request, await self.sessions.fork(request.path_params["session"]))

    async def status(self, request: Request) -> Response:
        """The state of session and episode."""
        session = self.sessions.get(request.path_params["session"])
        status = await self.sessions.call(session.token, "status", {})
        return _json({"env": session.env_id, "options": session.options, "seq": session.seq, **status})

    async def close(self, request: Request) -> Response:
        """Close a session, if it is open."""
        self.sessions.close(request.path_params["session"])
        return Response(status_code=204)

    async def envs(self, request: Request) -> Response:
        """The served environments."""
        return _json({"version": PREFIX, "envs": await self._served()})

    async def health(self, request: Request) -> Response:
        """The health and the load of the server."""
        load = {"sessions": len(self.sessions), "max_sessions": self.sessions.max_sessions}
        return _json({"status": "ok", **load, **self.about})

    async def show_metrics(self, request: Request) -> Response:
        """The metrics in Prometheus' text format."""
        text, media_type = self.metrics.text(self.sessions)
        return Response(text, media_type=media_type)

    async def openapi(self, request: Request) -> Response:
        """The OpenAPI document of this protocol."""
        return _json(openapi())

    async def docs(self, request: Request) -> Response:
        """The same document as a web page."""
        return Response(docs_page(), media_type="text/html")

    async def root(self, request: Request) -> Response:
        """Redirect to the web page."""
        return RedirectResponse("docs")

    async def body(self, request: Request) -> bytes:
        """Read the body within its limits of size and time. Raises TooLarge or BadRequest."""
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
            raise BadRequest(f"the body did not arrive within {limits.body_seconds:g} s") from None
        except ClientDisconnect:
            raise BadRequest("the client disconnected in the middle of the body") from None
        if size > limits.body_bytes:
            raise TooLarge(f"a body may have {limits.body_bytes} bytes; this one has more")
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _created(self, request: Request, session: HttpSession) -> Response:
        if await request.is_disconnected():  # no client will ever use the session
            self.sessions.close(session.token)
            raise BadRequest("the client disconnected before its session was ready")
        load = {"sessions": len(self.sessions), "max_sessions": self.sessions.max_sessions}
        return _json({"session": session.token, "description": session.description, "load": load}, 201)

    def _task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Run a call to its end even if the client disconnects, since the client may repeat it and needs the reply."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _call_here(self, call: BatchCall) -> Any:
        """The outcome of a call in the server's own process; None for a session in a worker."""
        try:
            session = self.sessions.get(call.session)
            if session.worker is not None:
                return None
            arguments = protocol.arguments_of(call, call.method)
            return _to_json(self.sessions.call_here(session, call.method, arguments, call.seq))
        except AgentGymError as error:
            return _to_json(error)

    async def _call_worker(self, index: int, call: BatchCall) -> tuple[int, Any]:
        try:
            arguments = protocol.arguments_of(call, call.method)
            return index, await self.sessions.call(call.session, call.method, arguments, call.seq)
        except AgentGymError as error:
            return index, _to_json(error)

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
    """Make the application that serves `env_ids`.

    Args:
        env_ids: registered ids.
        token: the token that clients must send as `Authorization: Bearer`; None means no token.
        mounts: dialects; each is a function of the `EnvServer` that returns routes.
        **settings: arguments of `Sessions`.

    Raises:
        UsageError: an invalid id or setting.
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
            async with contextlib.AsyncExitStack() as stack:
                for enter in server.lifespans:
                    await stack.enter_async_context(enter())
                yield
        finally:
            reaper.cancel()
            await sessions.shut_down()

    handlers: dict[Any, Any] = {AgentGymError: _on_error, HTTPException: _on_http_error, Exception: _on_bug}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.state.server = server
    if token is not None:
        server.token_check = TokenCheck(token)
        app.add_middleware(TokenMiddleware, check=server.token_check)
    return app


class TokenCheck:
    """Compares tokens in a time that does not depend on the one sent."""

    def __init__(self, token: str) -> None:
        """`token` is the one that clients must send."""
        self._wanted = token.encode()

    def refusal(self, authorization: bytes) -> Unauthorized | None:
        """The error for a request with that Authorization header; None if it has the token."""
        given = _token_in(authorization)
        if given is not None and hmac.compare_digest(given, self._wanted):
            return None
        return Unauthorized(
            f"this server needs its token, and got {'none' if given is None else 'another'}: send the header "
            "'Authorization: Bearer <token>'; in Python token=... or the environment variable AGENTGYM_TOKEN"
        )


class TokenMiddleware:
    """Refuses requests without the token."""

    def __init__(self, app: Any, check: TokenCheck) -> None:
        """`app` is the ASGI application behind it."""
        self._app, self._check = app, check

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "lifespan" or scope["path"] in _OPEN_PATHS:
            return await self._app(scope, receive, send)  # type: ignore[no-any-return]
        error = self._check.refusal(dict(scope["headers"]).get(b"authorization", b""))
        if error is None:
            return await self._app(scope, receive, send)  # type: ignore[no-any-return]
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 4401})  # type: ignore[no-any-return]
        await _error_response(error)(scope, receive, send)


def _token_in(authorization: bytes) -> bytes | None:
    """The token of a Bearer header, or the password of a Basic header, for clients that take only an address."""
    scheme, _, value = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return value
    if scheme.lower() != b"basic":
        return None
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2]
    except ValueError:
        return None


def _to_json(outcome: Any) -> Any:
    return {"error": error_to_json(outcome)} if isinstance(outcome, Exception) else outcome


async def _lines(done: list[tuple[int, Any]], pending: Iterable[asyncio.Future[Any]]) -> AsyncIterator[bytes]:
    """A line for each result: first those that are done, then the others as they arrive."""
    yield b"".join(_line(*pair) for pair in done)
    for future in asyncio.as_completed(pending):
        yield _line(*await future)


def _line(index: int, outcome: Any) -> bytes:
    return b'{"index":%d,"result":%b}\n' % (index, _encoded(outcome))


def _encoded(outcome: Any) -> bytes:
    try:
        return protocol.encode(outcome)
    except EnvError as error:
        return protocol.encode(_to_json(error))


def _results(outcomes: list[Any]) -> Response:
    try:
        return _json({"results": outcomes})
    except EnvError:  # one result that is not JSON must not cost the others
        content = b'{"results":[%b]}' % b",".join(map(_encoded, outcomes))
        return Response(content, media_type="application/json")


def _json(value: Any, status: int = 200) -> Response:
    return Response(protocol.encode(value), status, media_type="application/json")


def _declared_size(request: Request) -> int:
    """The length of the body according to the header; 0 without one."""
    for name, value in request.scope["headers"]:
        if name == b"content-length":
            return int(value)
    return 0


def _error_response(error: BaseException) -> Response:
    response = _json({"error": error_to_json(error)}, protocol.status_of(error))
    if isinstance(error, ServerFull):
        response.headers["Retry-After"] = str(_RETRY_SECONDS)
    if isinstance(error, Unauthorized):  # so that a browser asks for it
        response.headers["WWW-Authenticate"] = 'Bearer, Basic realm="the token is the password"'
    if isinstance(error, TooLarge | BadRequest):
        response.headers["Connection"] = "close"  # the rest of the body is not read
    return response


def _failed(error: BaseException, call: str) -> Response:
    """Log an error that the client alone cannot explain, and return its response."""
    if not isinstance(error, UsageError | SessionLost | ServerFull):
        _log.warning("%s: %r", call, error)
    return _error_response(error)


async def _on_error(request: Request, error: Exception) -> Response:
    return _failed(error, f"{request.method} {request.url.path.split('/sessions/')[0]!r}")


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = str(error.detail)
    if message in ("Not Found", "Method Not Allowed"):  # the status in words
        message = f"there is no {request.method} {request.url.path:.200} on this server; /docs lists all requests"
    kind = "NotFound" if error.status_code == 404 else "BadRequest"
    response = _json({"error": {"type": kind, "message": message}}, error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _on_bug(request: Request, error: Exception) -> Response:
    return bug_response()


def bug_response() -> Response:
    """The reply to a request in which the server failed. The traceback is only in the log."""
    return _json({"error": {"type": "SessionLost", "message": "the server failed; its log says why"}}, 500)
