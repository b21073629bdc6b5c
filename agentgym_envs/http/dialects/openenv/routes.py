"""The routes of OpenEnv's protocol for each served environment: `/ws`, plain HTTP and the Task API."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import gymnasium as gym
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentgym_envs.errors import AgentGymError, EpisodeOver, ServerFull, UnknownTask, UsageError
from agentgym_envs.http import protocol
from agentgym_envs.http.app import EnvServer, Handler
from agentgym_envs.http.dialects.openenv.session import OpenEnvSession, TaskRows
from agentgym_envs.http.dialects.openenv.wire import (
    UnknownMessage,
    error_message,
    read_form,
    read_message,
    read_object,
    schemas,
)
from agentgym_envs.task import SPLITS

_log = logging.getLogger(__name__)
_IDLE, _REFUSED = 4408, 1013
_NO_TOOLS = -32601
_LINGER_SECONDS = 1.0
_DISCONNECT = "websocket.disconnect"


class _Split(msgspec.Struct, forbid_unknown_fields=True):
    split: str


class _Index(_Split, forbid_unknown_fields=True):
    index: int


class _Range(_Split, forbid_unknown_fields=True):
    start: int | None = None
    stop: int | None = None


def openenv_routes(server: EnvServer) -> list[BaseRoute]:
    """OpenEnv's routes, for `create_app(..., mounts=[openenv_routes])`.

    A base URL of OpenEnv is that of one environment: `/openenv/<id>`, and also the root if only one is served.
    """
    environments = [OpenEnvRoutes(server, env_id) for env_id in server.sessions.classes]
    routes = [route for each in environments for route in each.routes(f"/openenv/{each.env_id}")]
    return routes + (environments[0].routes("") if len(environments) == 1 else [])


class OpenEnvRoutes:
    """The handlers of one environment."""

    def __init__(self, server: EnvServer, env_id: str) -> None:
        """`env_id` is served by `server`."""
        self._server, self.env_id = server, env_id
        self._tasks: TaskRows = {}

    def routes(self, base: str) -> list[BaseRoute]:
        """The routes under a base URL's path."""
        plain = [Route(base + path, handler, methods=[method]) for path, method, handler in self._handlers()]
        return [WebSocketRoute(f"{base}/ws", self.socket), *plain]

    async def socket(self, websocket: WebSocket) -> None:
        """Serve one WebSocket; its session ends with it."""
        await _Socket(self._server, self._new_session(), websocket).run()

    async def health(self, request: Request) -> Response:
        """OpenEnv's reply of a healthy server."""
        return _json({"status": "healthy"})

    async def metadata(self, request: Request) -> Response:
        """The name, description and version of the environment."""
        description = await self._server.sessions.describe(self.env_id)
        version = gym.spec(self.env_id).version
        about = {"name": self.env_id, "description": description["rules"], "version": str(version)}
        return _json({**about, "readme_content": description["instructions"]})

    async def schema(self, request: Request) -> Response:
        """The forms of actions, observations and state."""
        return _json(schemas())

    async def reset(self, request: Request) -> Response:
        """The first observation of an episode that is dropped at once, as in OpenEnv's plain HTTP."""
        data = read_object(protocol.load(await self._server.body(request) or b"{}"), "the body")
        async with self._session() as session:
            return _json(await session.reset(data))

    async def step(self, request: Request) -> Response:
        """Refuse the step, since plain HTTP keeps no episode."""
        raise EpisodeOver(
            "OpenEnv's plain HTTP keeps no episode: step over its WebSocket (/ws), or use POST /v2/sessions"
        )

    async def state(self, request: Request) -> Response:
        """The state before any episode."""
        return _json(self._new_session().state())

    async def mcp(self, request: Request) -> Response:
        """Refuse the call, since there are no tools: an action is text."""
        body = protocol.load(await self._server.body(request) or b"{}")
        error = {"code": _NO_TOOLS, "message": "this server offers no tools; act with reset and step over /ws"}
        number = body.get("id") if isinstance(body, dict) else None
        return _json({"jsonrpc": "2.0", "id": number, "error": error})

    async def openapi(self, request: Request) -> Response:
        """The routes as an OpenAPI document, for OpenEnv's validator."""
        paths: dict[str, Any] = {}
        for path, method, handler in self._handlers():
            summary = (handler.__doc__ or "").strip().splitlines()[0]
            replies = {"200": {"description": "JSON"}}
            paths.setdefault(path, {})[method.lower()] = {"summary": summary, "responses": replies}
        info = {"title": f"{self.env_id} over OpenEnv's protocol", "version": str(gym.spec(self.env_id).version)}
        return _json({"openapi": "3.1.0", "info": info, "paths": paths})

    async def environments(self, request: Request) -> Response:
        """The name of the environment."""
        return _json([self.env_id])

    async def splits(self, request: Request) -> Response:
        """The splits that have tasks."""
        async with self._session() as session:
            found = [split for split in SPLITS if await self._has_tasks(session, split)]
        return _json([{"name": split, "type": split} for split in found])

    async def tasks(self, request: Request) -> Response:
        """The tasks of a split."""
        body: _Split = await self._read(request, _Split)
        return _json({"tasks": await self._rows(body.split), "env_name": self.env_id})

    async def num_tasks(self, request: Request) -> Response:
        """The number of tasks of a split."""
        body: _Split = await self._read(request, _Split)
        return _json({"num_tasks": len(await self._rows(body.split))})

    async def task(self, request: Request) -> Response:
        """One task of a split."""
        body: _Index = await self._read(request, _Index)
        rows = await self._rows(body.split)
        if not 0 <= body.index < len(rows):
            raise UsageError(f"{body.split!r} has {len(rows)} tasks, so no task has the index {body.index}")
        return _json({"task": rows[body.index]})

    async def task_range(self, request: Request) -> Response:
        """Some tasks of a split, selected as by a Python slice."""
        body: _Range = await self._read(request, _Range)
        return _json({"tasks": (await self._rows(body.split))[body.start : body.stop]})

    def _handlers(self) -> list[tuple[str, str, Handler]]:
        return [
            ("/health", "GET", self.health),
            ("/metadata", "GET", self.metadata),
            ("/schema", "GET", self.schema),
            ("/openapi.json", "GET", self.openapi),
            ("/state", "GET", self.state),
            ("/reset", "POST", self.reset),
            ("/step", "POST", self.step),
            ("/mcp", "POST", self.mcp),
            ("/list_environments", "GET", self.environments),
            (f"/{self.env_id}/splits", "GET", self.splits),
            (f"/{self.env_id}/tasks", "POST", self.tasks),
            (f"/{self.env_id}/num_tasks", "POST", self.num_tasks),
            (f"/{self.env_id}/task", "POST", self.task),
            (f"/{self.env_id}/task_range", "POST", self.task_range),
        ]

    def _new_session(self) -> OpenEnvSession:
        return OpenEnvSession(self._server, self.env_id, self._tasks)

    @contextlib.asynccontextmanager
    async def _session(self) -> AsyncIterator[OpenEnvSession]:
        """A session for one request."""
        session = self._new_session()
        try:
            yield session
        finally:
            session.close()

    async def _rows(self, split: str) -> list[dict[str, Any]]:
        async with self._session() as session:
            return await session.tasks(split)

    async def _has_tasks(self, session: OpenEnvSession, split: str) -> bool:
        try:
            await session.tasks(split)
        except UsageError as error:  # an endless set cannot be listed, but has tasks
            return not isinstance(error, UnknownTask)
        return True

    async def _read(self, request: Request, form: type[msgspec.Struct]) -> Any:
        return read_form(protocol.load(await self._server.body(request) or b"{}"), form)


class _Socket:
    """The conversation over one WebSocket."""

    def __init__(self, server: EnvServer, session: OpenEnvSession, websocket: WebSocket) -> None:
        self._sessions, self._session, self._websocket = server.sessions, session, websocket
        self._listening: asyncio.Future[Any] | None = None
        self._methods: dict[str, Callable[[dict[str, Any]], Any]] = {"reset": session.reset, "step": session.step}

    async def run(self) -> None:
        """Accept, reply until the client leaves or is idle for too long, and close the session in any case."""
        try:
            await self._websocket.accept()
            code, reason = await self._converse()
            self._session.close()
            await self._within_idle_time(self._websocket.close(code, reason))
        except (WebSocketDisconnect, TimeoutError):
            pass
        except RuntimeError as error:  # raised by Starlette and uvicorn if the socket is closed while sending
            _log.debug("a WebSocket ended: %s", error)
        finally:
            self._session.close()
            if self._listening is not None:
                self._listening.cancel()

    async def _converse(self) -> tuple[int, str]:
        """Reply to messages. Returns the code and the reason to close with. Raises WebSocketDisconnect."""
        try:
            await self._session.open({})
        except AgentGymError as error:
            await self._send(self._refusal(error))
            await self._await_message()
            return _REFUSED, "no session"
        while True:
            try:
                message = await self._within_idle_time(self._next())
            except TimeoutError:
                self._session.give_up()
                return _IDLE, f"idle for {self._sessions.idle_seconds:g} s"
            reply = await self._reply_or_disconnect(message)
            if reply is None:
                return 1000, ""
            await self._within_idle_time(self._send(reply))

    async def _await_message(self) -> None:
        """Wait for a message of a refused client: older clients do not read the refusal before they send one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await self._next()

    async def _next(self) -> Any:
        """The next message. Raises WebSocketDisconnect."""
        listening, self._listening = self._listening, None
        message = await (listening or self._websocket.receive())
        if message["type"] == _DISCONNECT:
            raise WebSocketDisconnect(message.get("code", 1006))
        self._session.touch()
        return message

    async def _reply_or_disconnect(self, message: Any) -> bytes | None:
        """The reply. If the client leaves during a long call, close its session at once."""
        if not self._session.waits:
            return await self._reply(message)
        replying = asyncio.ensure_future(self._reply(message))
        self._listening = asyncio.ensure_future(self._websocket.receive())
        await asyncio.wait({replying, self._listening}, return_when=asyncio.FIRST_COMPLETED)
        if self._listening.done() and self._listening.result()["type"] == _DISCONNECT:
            self._session.close()
        return await replying  # not cancelled: it may be opening a session, which must then be closed

    async def _reply(self, message: Any) -> bytes | None:
        try:
            kind, data = read_message(message, self._sessions.limits.body_bytes)
            return None if kind == "close" else protocol.encode(await self._handle(kind, data))
        except AgentGymError as error:
            return self._refusal(error)

    async def _handle(self, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        if kind == "state":
            return {"type": "state", "data": self._session.state()}
        if kind not in self._methods:
            raise UnknownMessage(f"there is no message {kind[:80]!r}; there are reset, step, state and close")
        return {"type": "observation", "data": await self._methods[kind](data)}

    def _refusal(self, error: AgentGymError) -> bytes:
        load = {"active_sessions": len(self._sessions), "max_sessions": self._sessions.max_sessions}
        return protocol.encode(error_message(error, **(load if isinstance(error, ServerFull) else {})))

    async def _send(self, reply: bytes) -> None:
        await self._websocket.send_text(reply.decode())

    async def _within_idle_time(self, work: Any) -> Any:
        """Await work, including sending to a client that does not read, for the idle time. Raises TimeoutError."""
        async with asyncio.timeout(self._sessions.idle_seconds):
            return await work


def _json(value: Any) -> Response:
    return Response(protocol.encode(value), media_type="application/json")
