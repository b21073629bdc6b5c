"""AgentGym's protocols over the sessions of our server, so that an unmodified AgentGym client can train on it.

    create_app(["AgentGym/TextCraft-v0"], mounts=[agentgym_routes])

Each scenario lies under `/agentgym/<scenario>`, which is what an AgentGym client takes as its server's address. If
the server serves one environment only, the same paths are at the root too.
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
from agentgym_envs.http.dialects.agentgym.ids import PREFIXES, scenario_of
from agentgym_envs.http.dialects.agentgym.scenarios import SCENARIOS, Refused, Scenario, Slot, whole
from agentgym_envs.http.protocol import BadRequest, load
from agentgym_envs.http.wire import dump

_log = logging.getLogger(__name__)
_MOUNT = "/agentgym"
Body = Mapping[str, Any]
Work = Callable[[Body], Awaitable[Any]]


class SessionTable:
    """The handlers of one scenario, and the table of its environments by number."""

    def __init__(self, server: EnvServer, scenario: Scenario, env_id: str) -> None:
        """`env_id` is the environment that the server serves under this protocol."""
        self._server, self._scenario, self._env_id = server, scenario, env_id
        self._slots: dict[int, Slot] = {}
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
        posts |= {path: self._asker(path) for path in scenario.orders}
        gets |= {path: self._asker(path) for path in scenario.questions}
        return [
            Route(f"{prefix}/", self._greet, methods=["GET"]),
            *(Route(f"{prefix}/{path}", self._posted(work), methods=["POST"]) for path, work in posts.items()),
            *(Route(f"{prefix}/{path}", self._gotten(work), methods=["GET"]) for path, work in gets.items()),
        ]

    async def _greet(self, request: Request) -> Response:
        return _json(self._scenario.greeting)

    def _posted(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            body = load(await self._server.body(request) or b"{}")
            if not isinstance(body, dict):
                raise BadRequest(f"the body must be a JSON object, got {type(body).__name__}")
            return await self._answered(work, body)

        return handle

    def _gotten(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            key = self._scenario.key
            try:
                number = int(request.query_params[key])
            except (KeyError, ValueError):
                raise BadRequest(f"the query must hold {key}, a whole number") from None
            return await self._answered(work, {key: number})

        return handle

    async def _answered(self, work: Work, body: Body) -> Response:
        """What the work returns, or its failure in AgentGym's form."""
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
        self._forget_the_lost()
        session = await self._server.sessions.open(self._env_id, self._options())
        slot = Slot(self._next, session.token)
        self._next += 1
        try:
            index = self._scenario.index_at_creation(slot.number, body)
            if index is not None:
                await self._begin(slot, index)
        except BaseException:
            self._server.sessions.close(slot.token)
            raise
        self._slots[slot.number] = slot
        return self._scenario.created(slot)

    def _options(self) -> dict[str, Any]:
        """What an environment is made with: of what the scenario wants, that which it knows."""
        made = self._server.sessions.classes[self._env_id]
        options = {name: value for name, value in self._scenario.options.items() if name in made.remote_options}
        if options.get("render_mode") not in made.metadata["render_modes"]:
            options.pop("render_mode", None)
        return options

    async def _reset(self, body: Body) -> Any:
        slot, scenario = self._slot(body), self._scenario
        index = whole(body, scenario.index_key, scenario.first_index)
        async with slot.lock:
            try:
                await self._begin(slot, index)
            except AgentGymError as error:
                reply = scenario.not_begun(error)
                _log.warning("AgentGym's %s: no episode of index %d: %s", scenario.name, index, error)
                return reply
            return scenario.began(slot)

    async def _step(self, body: Body) -> Any:
        slot, scenario = self._slot(body), self._scenario
        action = body.get("action")
        if not isinstance(action, str):
            raise BadRequest("the body must hold 'action', a string")
        async with slot.lock:
            scenario.refuse_if_over(slot)
            reply = await scenario.act(slot, action, self._caller(slot))
            slot.advance(reply)
            _raise_failure(reply["info"])
            return scenario.stepped(slot)

    async def _observe(self, body: Body) -> Any:
        return self._scenario.observed(self._slot(body))

    async def _close(self, body: Body) -> Any:
        number = whole(body, self._scenario.key)
        slot = self._slots.pop(number, None)
        if slot is not None:
            self._server.sessions.close(slot.token)
        return self._scenario.closed(number, slot is not None)

    def _asker(self, path: str) -> Work:
        async def ask(body: Body) -> Any:
            slot = self._slot(body)
            async with slot.lock:
                return await self._scenario.answer(path, slot, self._caller(slot))

        return ask

    def _slot(self, body: Body) -> Slot:
        """The environment of the number in the body. Raises Refused."""
        number = whole(body, self._scenario.key)
        try:
            self._server.sessions.get(self._slots[number].token)
        except (KeyError, SessionLost):
            self._slots.pop(number, None)
            raise Refused(self._scenario.no_slot(number, 0 <= number < self._next)) from None
        return self._slots[number]

    async def _begin(self, slot: Slot, index: int) -> None:
        options = self._scenario.options_of(index)
        try:
            reply = await self._caller(slot)("reset", {"seed": self._scenario.seed, "options": options})
        except UnknownTask as error:
            raise UnknownTask(f"{error}{self._scenario.about_indices}") from None
        _raise_failure(reply["info"])
        slot.begin(index, reply)

    def _caller(self, slot: Slot) -> Callable[[str, Mapping[str, Any]], Awaitable[Any]]:
        def call(method: str, arguments: Mapping[str, Any]) -> Awaitable[Any]:
            return self._server.sessions.call(slot.token, method, arguments)

        return call

    def _forget_the_lost(self) -> None:
        """Keep the table as bounded as that of the sessions: numbers whose session was reaped mean nothing."""
        sessions = self._server.sessions
        if len(self._slots) < sessions.max_sessions:
            return
        for number, slot in list(self._slots.items()):
            try:
                sessions.get(slot.token)
            except SessionLost:
                del self._slots[number]


def agentgym_routes(server: EnvServer) -> list[Route]:
    """The routes for those environments of a server that AgentGym has too. Raises UsageError if there is none."""
    return agentgym_mount()(server)


def agentgym_mount(env_ids: Mapping[str, str] | None = None) -> Callable[[EnvServer], list[Route]]:
    """A mount for `create_app`.

    Args:
        env_ids: scenario -> id of the environment that is served as it. By default the first id of the server that
            begins like the scenario's ("AgentGym/TextCraft..."); for searchqa rather one that lets guessing go on.

    Raises (the mount):
        UsageError: a scenario or id that is not there, or none at all.
    """

    def mount(server: EnvServer) -> list[Route]:
        served = list(server.sessions.classes)
        chosen = _match(served) if env_ids is None else _check(env_ids, served)
        if not chosen:
            known = ", ".join(f"{prefix}-..." for prefix in PREFIXES.values())
            raise UsageError(f"none of {', '.join(served)} is an environment that AgentGym has too ({known})")
        desks = [
            SessionTable(server, scenario(), chosen[scenario.name]) for scenario in SCENARIOS if scenario.name in chosen
        ]
        routes = [route for desk in desks for route in desk.routes(f"{_MOUNT}/{desk._scenario.name}")]
        return routes + (desks[0].routes("") if len(served) == 1 else [])

    return mount


def _match(served: list[str]) -> dict[str, str]:
    """The environment of each scenario, by how the ids begin; the first of several."""
    chosen = dict[str, str]()
    for scenario in SCENARIOS:
        if fitting := [env_id for env_id in served if scenario_of(env_id) == scenario.kind]:
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


def _raise_failure(info: Mapping[str, Any]) -> None:
    """A failure of the machine must not look like a turn without reward."""
    if info["stop_reason"] == StopReason.ENV_ERROR:
        raise Refused(str(info["error"]))


def _json(value: Any, status: int = 200) -> Response:
    return Response(dump(value), status, media_type="application/json")
