"""AgentGym's protocols over the sessions of our server, so that unmodified AgentGym clients can train on it.

    create_app(["AgentGym/TextCraft-v0"], mounts=[agentgym_routes])

Each scenario has the paths under `/agentgym/<scenario>`, which is the server address for an AgentGym client. If the
server serves only one environment, the same paths are also at the root.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentgym_envs.core import StopReason
from agentgym_envs.errors import AgentGymError, ServerFull, SessionLost, UnknownTask, UsageError
from agentgym_envs.http.app import EnvServer
from agentgym_envs.http.dialects.agentgym.ids import PREFIXES
from agentgym_envs.http.dialects.agentgym.scenarios import (
    SCENARIOS,
    ClientSession,
    Refused,
    ScenarioServer,
    whole_number,
)
from agentgym_envs.http.protocol import BadRequest, load
from agentgym_envs.http.wire import dump

_log = logging.getLogger(__name__)
_MOUNT = "/agentgym"
_SERVED = {**PREFIXES, "webarena": "AgentGym/WebArenaOfficial"}
"""The prefix of the environment that has AgentGym's indices; the embedded sites have other tasks."""
Body = Mapping[str, Any]
Work = Callable[[Body], Awaitable[Any]]


class SessionTable:
    """The handlers of one scenario, and its sessions by number."""

    def __init__(self, server: EnvServer, scenario: ScenarioServer, env_id: str) -> None:
        """`env_id` is the served environment of this scenario."""
        self._server, self._scenario, self._env_id = server, scenario, env_id
        self._sessions: dict[int, ClientSession] = {}
        self._next = 0

    def routes(self, prefix: str) -> list[Route]:
        """The routes under a prefix."""
        scenario = self._scenario
        posts: dict[str, Work] = {
            "create": self._create,
            "reset": self._reset,
            "step": self._step,
            "close": self._close,
        }
        gets: dict[str, Work] = {"observation": self._observe}
        posts |= {path: self._path_work(path) for path in scenario.post_paths}
        gets |= {path: self._path_work(path) for path in scenario.get_paths}
        return [
            Route(f"{prefix}/", self._greet, methods=["GET"]),
            *(Route(f"{prefix}/{path}", self._post_handler(work), methods=["POST"]) for path, work in posts.items()),
            *(Route(f"{prefix}/{path}", self._get_handler(work), methods=["GET"]) for path, work in gets.items()),
        ]

    async def _greet(self, request: Request) -> Response:
        return _json(self._scenario.greeting)

    def _post_handler(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            body = load(await self._server.body(request) or b"{}")
            if not isinstance(body, dict):
                raise BadRequest(f"the body must be a JSON object, got {type(body).__name__}")
            return await self._respond(work, body)

        return handle

    def _get_handler(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            key = self._scenario.key
            try:
                number = int(request.query_params[key])
            except (KeyError, ValueError):
                raise BadRequest(f"the query must hold {key}, a whole number") from None
            return await self._respond(work, {key: number})

        return handle

    async def _respond(self, work: Work, body: Body) -> Response:
        """The result of the work, or its failure in AgentGym's form."""
        began = time.perf_counter()
        try:
            response = _json(await work(body))
        except (ServerFull, BadRequest):
            raise
        except AgentGymError as error:
            _log.info("AgentGym's %s: %s", self._scenario.name, error)
            return _json({"error": str(error)}, self._scenario.error_status)
        self._server.metrics.called(f"agentgym {self._scenario.name}", time.perf_counter() - began)
        return response

    async def _create(self, body: Body) -> Any:
        self._drop_lost_sessions()
        opened = await self._server.sessions.open(self._env_id, self._options())
        session = ClientSession(self._next, opened.token)
        self._next += 1
        try:
            index = self._scenario.index_at_creation(session.number, body)
            if index is not None:
                await self._begin(session, index)
        except BaseException:
            self._server.sessions.close(session.token)
            raise
        self._sessions[session.number] = session
        return self._scenario.creation_reply(session)

    def _options(self) -> dict[str, Any]:
        """The constructor arguments: those of the scenario that the environment accepts."""
        made = self._server.sessions.classes[self._env_id]
        options = {name: value for name, value in self._scenario.options.items() if name in made.remote_options}
        if options.get("render_mode") not in made.metadata["render_modes"]:
            options.pop("render_mode", None)
        return options

    async def _reset(self, body: Body) -> Any:
        session, scenario = self._session(body), self._scenario
        index = whole_number(body, scenario.index_key, scenario.first_index)
        async with session.lock:
            try:
                await self._begin(session, index)
            except AgentGymError as error:
                reply = scenario.failed_reset_reply(error)
                _log.warning("AgentGym's %s: no episode of index %d: %s", scenario.name, index, error)
                return reply
            return scenario.reset_reply(session)

    async def _step(self, body: Body) -> Any:
        session, scenario = self._session(body), self._scenario
        action = body.get("action")
        if not isinstance(action, str):
            raise BadRequest("the body must hold 'action', a string")
        async with session.lock:
            scenario.refuse_if_over(session)
            reply = await scenario.act(session, action, self._caller(session))
            session.advance(reply)
            _raise_env_error(reply["info"])
            return scenario.step_reply(session)

    async def _observe(self, body: Body) -> Any:
        return self._scenario.observation_reply(self._session(body))

    async def _close(self, body: Body) -> Any:
        number = whole_number(body, self._scenario.key)
        session = self._sessions.pop(number, None)
        if session is not None:
            self._server.sessions.close(session.token)
        return self._scenario.close_reply(number, session is not None)

    def _path_work(self, path: str) -> Work:
        async def ask(body: Body) -> Any:
            session = self._session(body)
            async with session.lock:
                return await self._scenario.path_reply(path, session, self._caller(session))

        return ask

    def _session(self, body: Body) -> ClientSession:
        """The session with the number in the body. Raises Refused."""
        number = whole_number(body, self._scenario.key)
        try:
            self._server.sessions.get(self._sessions[number].token)
        except (KeyError, SessionLost):
            self._sessions.pop(number, None)
            raise Refused(self._scenario.missing_message(number, 0 <= number < self._next)) from None
        return self._sessions[number]

    async def _begin(self, session: ClientSession, index: int) -> None:
        options = self._scenario.options_of(index)
        try:
            reply = await self._caller(session)("reset", {"seed": self._scenario.seed, "options": options})
        except UnknownTask as error:
            raise UnknownTask(f"{error}{self._scenario.about_indices}") from None
        _raise_env_error(reply["info"])
        session.begin(index, reply)

    def _caller(self, session: ClientSession) -> Callable[[str, Mapping[str, Any]], Awaitable[Any]]:
        def call(method: str, arguments: Mapping[str, Any]) -> Awaitable[Any]:
            return self._server.sessions.call(session.token, method, arguments)

        return call

    def _drop_lost_sessions(self) -> None:
        """Forget expired sessions, so that this table does not outgrow that of the server."""
        sessions = self._server.sessions
        if len(self._sessions) < sessions.max_sessions:
            return
        for number, session in list(self._sessions.items()):
            try:
                sessions.get(session.token)
            except SessionLost:
                del self._sessions[number]


def agentgym_routes(server: EnvServer) -> list[Route]:
    """The routes for the served environments that AgentGym has too. Raises UsageError without any."""
    return agentgym_mount()(server)


def agentgym_mount(env_ids: Mapping[str, str] | None = None) -> Callable[[EnvServer], list[Route]]:
    """Make a mount for `create_app`.

    Args:
        env_ids: for each scenario, the id of the environment that serves it. By default the first served id with the
            prefix of the scenario ("AgentGym/TextCraft..."). For searchqa the prefix is that of the variant that
            allows several answers.

    Raises (the mount):
        UsageError: an unknown scenario or id, or no served environment that AgentGym has too.
    """

    def mount(server: EnvServer) -> list[Route]:
        served = list(server.sessions.classes)
        chosen = _match(served) if env_ids is None else _check(env_ids, served)
        if not chosen:
            known = ", ".join(f"{prefix}-..." for prefix in _SERVED.values())
            raise UsageError(f"none of {', '.join(served)} is an environment that AgentGym has too ({known})")
        _warn_without_questions(server, chosen)
        tables = [
            SessionTable(server, scenario(), chosen[scenario.name]) for scenario in SCENARIOS if scenario.name in chosen
        ]
        routes = [route for table in tables for route in table.routes(f"{_MOUNT}/{table._scenario.name}")]
        return routes + (tables[0].routes("") if len(served) == 1 else [])

    return mount


def _match(served: list[str]) -> dict[str, str]:
    """The environment of each scenario: the first served id with its prefix."""
    chosen = dict[str, str]()
    for scenario in SCENARIOS:
        if fitting := [env_id for env_id in served if env_id.startswith(_SERVED[scenario.kind])]:
            chosen[scenario.name] = fitting[0]
    return chosen


def _check(env_ids: Mapping[str, str], served: list[str]) -> dict[str, str]:
    names = [scenario.name for scenario in SCENARIOS]
    for name, env_id in env_ids.items():
        if name not in names:
            raise UsageError(f"AgentGym has no scenario {name!r}; choose from {', '.join(names)}")
        if env_id not in served:
            raise UsageError(f"{env_id!r} is not served, only {', '.join(served)}")
    return dict(env_ids)


def _warn_without_questions(server: EnvServer, chosen: Mapping[str, str]) -> None:
    env_id = chosen.get("searchqa")
    if env_id and "questions" not in server.sessions.defaults[env_id]:
        _log.warning("%s: without --env-arg questions=DIR, AgentGym's indices have no questions to ask", env_id)


def _raise_env_error(info: Mapping[str, Any]) -> None:
    """Raise Refused for an infrastructure error, which must not look like a turn without reward."""
    if info["stop_reason"] == StopReason.ENV_ERROR:
        raise Refused(str(info["error"]))


def _json(value: Any, status: int = 200) -> Response:
    return Response(dump(value), status, media_type="application/json")
