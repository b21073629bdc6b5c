"""The routes of NeMo-Gym's Gymnasium protocol: `/reset`, `/step`, `/close` and `/aggregate_metrics`.

A cookie names the session. A repeated step with the same request id gets the same reply, since NeMo-Gym repeats a
request whose connection broke. An infrastructure error is answered with status 500, which fails the rollout: as a
truncation with reward 0, it would be trained on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentgym_envs.core import StopReason
from agentgym_envs.errors import AgentGymError, EnvError, EpisodeOver, SessionLost, UsageError
from agentgym_envs.http import protocol
from agentgym_envs.http.app import EnvServer
from agentgym_envs.http.dialects.nemo.wire import (
    REQUEST_ID,
    RowFields,
    StepMemory,
    mean_rewards,
    read_answer,
    read_row,
    tool_outputs,
)

PREFIX, COOKIE = "/nemo", "agentgym_session"
_CAPABILITIES = {"supports_explicit_close": True, "supports_step_idempotency": True}
_log = logging.getLogger(__name__)


def nemo_routes(server: EnvServer) -> list[Route]:
    """NeMo-Gym's routes, for `create_app(..., mounts=[nemo_routes])`.

    They serve every environment, at the root, as NeMo-Gym knows a server by host and port, and under `/nemo`.
    """
    handlers = NemoRoutes(server)
    return [*handlers.routes(PREFIX), *handlers.routes("")]


@dataclass(slots=True)
class NemoSession:
    """An episode of one rollout: its session of the server, and its last step."""

    token: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    memory: StepMemory = field(default_factory=StepMemory)


class NemoRoutes:
    """The handlers, and the sessions by cookie, which are the tokens of the server's sessions."""

    def __init__(self, server: EnvServer) -> None:
        self._server = server
        self._sessions: dict[str, NemoSession] = {}

    def routes(self, base: str) -> list[Route]:
        """The routes under a path."""
        handlers: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "reset": self.reset,
            "step": self.step,
            "close": self.close,
            "aggregate_metrics": self.aggregate_metrics,
        }
        return [Route(f"{base}/{name}", handler, methods=["POST"]) for name, handler in handlers.items()]

    async def reset(self, request: Request) -> Response:
        """Begin the episode that a row names, in a new session. An earlier one of this cookie is closed."""
        fields = read_row(protocol.load(await self._server.body(request) or b"{}"))
        self._forget(request.cookies.get(COOKIE, ""))
        self._drop_lost_sessions()
        session = await self._server.sessions.open(self._env_id(fields), fields.options)
        try:
            reply = await self._call(session.token, "reset", fields.reset_arguments)
            _raise_env_error(reply["info"])
        except BaseException:
            self._server.sessions.close(session.token)
            raise
        self._sessions[session.token] = NemoSession(session.token)
        info = {**reply["info"], **_CAPABILITIES}
        response = _json({"observation": reply["observation"], "info": info})
        response.set_cookie(COOKIE, session.token, httponly=True)
        return response

    async def step(self, request: Request) -> Response:
        """Take the action in a model's response."""
        row = protocol.load(await self._server.body(request) or b"{}")
        session = self._session(request)
        request_id = row.get(REQUEST_ID) if isinstance(row, dict) else None
        async with session.lock:
            if not session.memory.remembers(request_id):
                outcome = await self._outcome(session, row)
                session.memory = StepMemory(request_id, outcome)
            outcome = session.memory.outcome
        if isinstance(outcome, Exception):
            raise outcome.with_traceback(None)
        return _json(outcome)

    async def close(self, request: Request) -> Response:
        """Close the session; closing twice is fine."""
        self._forget(request.cookies.get(COOKIE, ""))
        return _json({})

    async def aggregate_metrics(self, request: Request) -> Response:
        """Means over finished rollouts."""
        return _json(mean_rewards(protocol.load(await self._server.body(request) or b"{}")))

    async def _outcome(self, session: NemoSession, row: Any) -> dict[str, Any] | AgentGymError:
        """The reply to a step, or the error to raise now and for every repetition."""
        answer = read_answer(row)
        try:
            reply = await self._call(session.token, "step", {"action": answer.text})
            _raise_env_error(reply["info"])
        except EnvError as error:
            self._server.sessions.close(session.token)
            _log.warning("NeMo-Gym: a rollout fails: %s", error)
            return error
        except (EpisodeOver, UsageError) as error:
            return error
        done, observation, info = reply["terminated"] or reply["truncated"], reply["observation"], reply["info"]
        if answer.call_ids and not done:
            info, observation = {**info, "tool_outputs": tool_outputs(answer.call_ids, observation)}, None
        names = ("reward", "terminated", "truncated")
        return {"observation": observation, **{name: reply[name] for name in names}, "info": info}

    async def _call(self, token: str, method: str, arguments: Mapping[str, Any]) -> Any:
        began = time.perf_counter()
        reply = await self._server.sessions.call(token, method, arguments)
        self._server.metrics.called(method, time.perf_counter() - began)
        return reply

    def _env_id(self, fields: RowFields) -> str:
        served = list(self._server.sessions.classes)
        if fields.env is None and len(served) > 1:
            raise UsageError(f"this server serves {', '.join(served)}: a row must name one as 'env' under 'agentgym'")
        return fields.env or served[0]

    def _session(self, request: Request) -> NemoSession:
        """The session of the cookie. One that failed is kept for the repetition of its last step."""
        session = self._sessions.get(request.cookies.get(COOKIE, ""))
        if session is None:
            raise SessionLost("there is no session of this cookie (any more): /reset first, and send its cookie back")
        return session

    def _forget(self, cookie: str) -> None:
        session = self._sessions.pop(cookie, None)
        if session is not None:
            self._server.sessions.close(session.token)

    def _drop_lost_sessions(self) -> None:
        """Forget expired sessions, so that this table does not outgrow that of the server."""
        if len(self._sessions) < self._server.sessions.max_sessions:
            return
        for cookie in list(self._sessions):
            try:
                self._server.sessions.get(cookie)
            except SessionLost:
                del self._sessions[cookie]


def _raise_env_error(info: Mapping[str, Any]) -> None:
    if info["stop_reason"] == StopReason.ENV_ERROR.value:
        raise EnvError(str(info.get("error")))


def _json(value: Any) -> Response:
    return Response(protocol.encode(value), media_type="application/json")
