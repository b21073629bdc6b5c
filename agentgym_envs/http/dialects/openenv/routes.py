"""OpenEnv's addresses: `/ws` and what surrounds it, for each environment that is served."""

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
from agentgym_envs.http.dialects.openenv.player import Player, TaskRows
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


class _Place(_Split, forbid_unknown_fields=True):
    index: int


class _Range(_Split, forbid_unknown_fields=True):
    start: int | None = None
    stop: int | None = None


def openenv_routes(server: EnvServer) -> list[BaseRoute]:
    """OpenEnv's routes, for `create_app(..., mounts=[openenv_routes])`.

    A base URL of OpenEnv stands for one environment: `/openenv/<id>`, and the root if only one is served.
    """
    environments = [OpenEnvRoutes(server, env_id) for env_id in server.sessions.classes]
    routes = [route for each in environments for route in each.routes(f"/openenv/{each.env_id}")]
    return routes + (environments[0].routes("") if len(environments) == 1 else [])


class OpenEnvRoutes:
    """The handlers of one environment."""

    def __init__(self, server: EnvServer, env_id: str) -> None:
        """`env_id` is one that `server` serves."""
        self._server, self.env_id = server, env_id
        self._tasks: TaskRows = {}

    def routes(self, base: str) -> list[BaseRoute]:
        """The routes under a base URL's path."""
        plain = [Route(base + path, handler, methods=[method]) for path, method, handler in self._handlers()]
        return [WebSocketRoute(f"{base}/ws", self.socket), *plain]

    async def socket(self, websocket: WebSocket) -> None:
        """A WebSocket is a session, which ends with it."""
        await _Socket(self._server, self._player(), websocket).run()

    async def health(self, request: Request) -> Response:
        """OpenEnv's word for being well."""
        return _json({"status": "healthy"})

    async def metadata(self, request: Request) -> Response:
        """What the environment is."""
        description = await self._server.sessions.describe(self.env_id)
        version = gym.spec(self.env_id).version
        about = {"name": self.env_id, "description": description["rules"], "version": str(version)}
        return _json({**about, "readme_content": description["instructions"]})

    async def schema(self, request: Request) -> Response:
        """The forms of actions, observations and state."""
        return _json(schemas())

    async def reset(self, request: Request) -> Response:
        """The first observation of an episode that is not kept, as OpenEnv's plain HTTP has it."""
        data = read_object(protocol.load(await self._server.body(request) or b"{}"), "the body")
        async with self._visit() as player:
            return _json(await player.reset(data))

    async def step(self, request: Request) -> Response:
        """There is never an episode to take a step in."""
        raise EpisodeOver(
            "OpenEnv's plain HTTP keeps no episode: step over its WebSocket (/ws), or use POST /v2/sessions"
        )

    async def state(self, request: Request) -> Response:
        """The state of an episode that was not begun."""
        return _json(self._player().state())

    async def mcp(self, request: Request) -> Response:
        """There are no tools: an action is text."""
        body = protocol.load(await self._server.body(request) or b"{}")
        error = {"code": _NO_TOOLS, "message": "this server offers no tools; act with reset and step over /ws"}
        number = body.get("id") if isinstance(body, dict) else None
        return _json({"jsonrpc": "2.0", "id": number, "error": error})

    async def openapi(self, request: Request) -> Response:
        """The routes, for OpenEnv's validator and people."""
        paths: dict[str, Any] = {}
        for path, method, handler in self._handlers():
            summary = (handler.__doc__ or "").strip().splitlines()[0]
            replies = {"200": {"description": "JSON"}}
            paths.setdefault(path, {})[method.lower()] = {"summary": summary, "responses": replies}
        info = {"title": f"{self.env_id} as OpenEnv has it", "version": str(gym.spec(self.env_id).version)}
        return _json({"openapi": "3.1.0", "info": info, "paths": paths})

    async def environments(self, request: Request) -> Response:
        """The name of the environment."""
        return _json([self.env_id])

    async def splits(self, request: Request) -> Response:
        """The splits that have tasks."""
        async with self._visit() as player:
            found = [split for split in SPLITS if await self._has_tasks(player, split)]
        return _json([{"name": split, "type": split} for split in found])

    async def tasks(self, request: Request) -> Response:
        """The tasks of a split."""
        body: _Split = await self._read(request, _Split)
        return _json({"tasks": await self._rows(body.split), "env_name": self.env_id})

    async def num_tasks(self, request: Request) -> Response:
        """How many tasks a split has."""
        body: _Split = await self._read(request, _Split)
        return _json({"num_tasks": len(await self._rows(body.split))})

    async def task(self, request: Request) -> Response:
        """One task of a split."""
        body: _Place = await self._read(request, _Place)
        rows = await self._rows(body.split)
        if not 0 <= body.index < len(rows):
            raise UsageError(f"{body.split!r} has {len(rows)} tasks, so there is none of index {body.index}")
        return _json({"task": rows[body.index]})

    async def task_range(self, request: Request) -> Response:
        """Some tasks of a split, as a slice of Python."""
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

    def _player(self) -> Player:
        return Player(self._server, self.env_id, self._tasks)

    @contextlib.asynccontextmanager
    async def _visit(self) -> AsyncIterator[Player]:
        """A player for one request."""
        player = self._player()
        try:
            yield player
        finally:
            player.close()

    async def _rows(self, split: str) -> list[dict[str, Any]]:
        async with self._visit() as player:
            return await player.tasks(split)

    async def _has_tasks(self, player: Player, split: str) -> bool:
        try:
            await player.tasks(split)
        except UsageError as error:  # a set without end cannot be listed, but has tasks
            return not isinstance(error, UnknownTask)
        return True

    async def _read(self, request: Request, form: type[msgspec.Struct]) -> Any:
        return read_form(protocol.load(await self._server.body(request) or b"{}"), form)


class _Socket:
    """One WebSocket from its beginning to its end."""

    def __init__(self, server: EnvServer, player: Player, websocket: WebSocket) -> None:
        self._sessions, self._player, self._websocket = server.sessions, player, websocket
        self._listening: asyncio.Future[Any] | None = None
        self._verbs: dict[str, Callable[[dict[str, Any]], Any]] = {"reset": player.reset, "step": player.step}

    async def run(self) -> None:
        """Accept, answer until the client leaves or is idle for too long, and free the session in any case."""
        try:
            await self._websocket.accept()
            code, reason = await self._converse()
            self._player.close()
            await self._within_idle_time(self._websocket.close(code, reason))
        except (WebSocketDisconnect, TimeoutError):
            pass
        except RuntimeError as error:  # so Starlette and uvicorn say that the socket was closed under a message
            _log.debug("a WebSocket ended: %s", error)
        finally:
            self._player.close()
            if self._listening is not None:
                self._listening.cancel()

    async def _converse(self) -> tuple[int, str]:
        """Answer messages; returns the code and the reason to close with. Raises WebSocketDisconnect."""
        try:
            await self._player.open({})
        except AgentGymError as error:
            await self._send(self._refusal(error))
            await self._linger()
            return _REFUSED, "no session"
        while True:
            try:
                message = await self._within_idle_time(self._next())
            except TimeoutError:
                self._player.give_up()
                return _IDLE, f"idle for {self._sessions.idle_seconds:g} s"
            reply = await self._attended(message)
            if reply is None:
                return 1000, ""
            await self._within_idle_time(self._send(reply))

    async def _linger(self) -> None:
        """Let a refused client say something: until then older ones do not read what they were told."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await self._next()

    async def _next(self) -> Any:
        """The next message. Raises WebSocketDisconnect."""
        listening, self._listening = self._listening, None
        message = await (listening or self._websocket.receive())
        if message["type"] == _DISCONNECT:
            raise WebSocketDisconnect(message.get("code", 1006))
        self._player.touch()
        return message

    async def _attended(self, message: Any) -> bytes | None:
        """The reply. A client that goes away under a long call does not keep its place until the call is over."""
        if not self._player.waits:
            return await self._reply(message)
        replying = asyncio.ensure_future(self._reply(message))
        self._listening = asyncio.ensure_future(self._websocket.receive())
        await asyncio.wait({replying, self._listening}, return_when=asyncio.FIRST_COMPLETED)
        if self._listening.done() and self._listening.result()["type"] == _DISCONNECT:
            self._player.close()
        return await replying  # not cancelled: it may be opening a session, which must then be closed

    async def _reply(self, message: Any) -> bytes | None:
        try:
            kind, data = read_message(message, self._sessions.limits.body_bytes)
            return None if kind == "close" else protocol.encode(await self._told(kind, data))
        except AgentGymError as error:
            return self._refusal(error)

    async def _told(self, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        if kind == "state":
            return {"type": "state", "data": self._player.state()}
        if kind not in self._verbs:
            raise UnknownMessage(f"there is no message {kind[:80]!r}; there are reset, step, state and close")
        return {"type": "observation", "data": await self._verbs[kind](data)}

    def _refusal(self, error: AgentGymError) -> bytes:
        load = {"active_sessions": len(self._sessions), "max_sessions": self._sessions.max_sessions}
        return protocol.encode(error_message(error, **(load if isinstance(error, ServerFull) else {})))

    async def _send(self, reply: bytes) -> None:
        await self._websocket.send_text(reply.decode())

    async def _within_idle_time(self, work: Any) -> Any:
        """A client that reads nothing is as idle as one that says nothing. Raises TimeoutError."""
        async with asyncio.timeout(self._sessions.idle_seconds):
            return await work


def _json(value: Any) -> Response:
    return Response(protocol.encode(value), media_type="application/json")
