"""`OpenEnvSession`: the episodes of one OpenEnv client, in a session of the server."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from agentgym_envs.core import ENV_FAILED, StopReason, describe
from agentgym_envs.errors import EnvError, EpisodeOver, ServerFull, SessionLost, UsageError
from agentgym_envs.http.app import EnvServer
from agentgym_envs.http.dialects.openenv.wire import ResetFields, ResetRequest, read_action, read_reset, result_message
from agentgym_envs.http.sessions import HttpSession

TaskRows = dict[str, list[dict[str, Any]]]
"""The tasks of each requested split, in table order."""


class OpenEnvSession:
    """The episodes of one client, in a session that is replaced if it is lost.

    An infrastructure error ends the episode, as everywhere in this suite; it is never an error of a call.
    """

    def __init__(self, server: EnvServer, env_id: str, tasks: TaskRows) -> None:
        """`tasks` caches the tasks without options; the sessions of an environment share it."""
        self._server, self._env_id, self._tasks = server, env_id, tasks
        self._session: HttpSession | None = None
        self._info: dict[str, Any] = {}
        self._episode_id: str | None = None

    @property
    def waits(self) -> bool:
        """True if a call may take long, because it goes to another process."""
        return self._session is None or self._session.worker is not None

    async def open(self, options: dict[str, Any]) -> HttpSession:
        """Replace the session by a new one. Raises ServerFull, UsageError, MissingExtra or EnvError."""
        self.close()
        self._info, self._episode_id = {}, None
        self._session = await self._server.sessions.open(self._env_id, options)
        return self._session

    def close(self) -> None:
        """Close the session; closing twice is fine."""
        session, self._session = self._session, None
        if session is not None:
            self._server.sessions.close(session.token)

    def touch(self) -> None:
        """Mark the session as used, since the client sent a message."""
        if self._session is not None:
            self._session.used = time.monotonic()

    def give_up(self) -> None:
        """Close the session because its client was idle."""
        if self._session is not None and not self._session.closed:
            self._server.sessions.on_reaped(self._session)
        self.close()

    async def reset(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Start an episode.

        Raises:
            UsageError, UnknownTask: invalid fields.
            ServerFull, MissingExtra: no session can be made.
        """
        request = read_reset(data, self._server.sessions.classes[self._env_id].remote_options)
        fields = request.fields
        began = {"task_id": fields.task, "seed": fields.seed, "turn": 0, "score": 0.0, "success": False}
        try:
            arguments = {"seed": fields.seed, "options": await self._options(request)}
            reply = await self._call_or_reopen(request.env_options, "reset", arguments)
        except ServerFull:
            raise
        except EnvError as error:
            reply = self._env_error(began, error)
        self._info, self._episode_id = reply["info"], fields.episode_id or secrets.token_hex(8)
        failed = self._info["stop_reason"] is not None
        return result_message(reply["observation"], None, False, failed, self._info, **self._system_prompt())

    async def step(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Take an action. Raises UsageError for an invalid action, EpisodeOver if no episode runs."""
        action = read_action(data)
        if self._session is None:
            raise EpisodeOver("no episode runs; reset first")
        try:
            reply = await self._call(self._session, "step", {"action": action})
        except EnvError as error:
            now = {**self._info, "turn": self._info.get("turn", 0) + 1, "invalid_action": None}
            reply = {"reward": 0.0, "terminated": False, "truncated": True, **self._env_error(now, error)}
        self._info = reply["info"]
        return result_message(
            reply["observation"], reply["reward"], reply["terminated"], reply["truncated"], self._info
        )

    def state(self) -> dict[str, Any]:
        """The state of the episode."""
        return {"episode_id": self._episode_id, "step_count": self._info.get("turn", 0), **self._info}

    async def tasks(self, split: str | None = None, env_options: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The tasks of a split (by default the one that resets draw from), in table order.

        Args:
            split: "train", "validation" or "test".
            env_options: the constructor arguments of the environment, on which its tasks may depend.

        Raises:
            UsageError, UnknownTask: an unknown split, or an endless task set.
        """
        options = env_options or {}
        known = {} if options else self._tasks  # options are unlimited, so their tasks are not cached
        wanted = split or (await self._server.sessions.describe(self._env_id))["split"]
        if wanted not in known:
            rows = await self._call_or_reopen(options, "sample", {"split": wanted})
            known[wanted] = [{name: row[name] for name in ("id", "split", "group", "goal")} for row in rows]
        return known[wanted]

    async def _options(self, request: ResetRequest) -> dict[str, Any]:
        """The options for the environment's `reset`."""
        fields: ResetFields = request.fields
        if fields.index is None:
            chosen = {"task": fields.task, "split": fields.split, "group": fields.group}
            return {name: value for name, value in chosen.items() if value is not None}
        rows = await self.tasks(fields.split, request.env_options)
        if fields.index >= len(rows):
            raise UsageError(f"there are {len(rows)} tasks of that split, so no task has the index {fields.index}")
        return {"task": rows[fields.index]["id"]}

    async def _call_or_reopen(self, options: dict[str, Any], method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method in a new session if the current one is lost or has other options."""
        if self._session is not None and self._session.options == options:
            try:
                return await self._call(self._session, method, arguments)
            except SessionLost:
                pass
        return await self._call(await self.open(options), method, arguments)

    async def _call(self, session: HttpSession, method: str, arguments: Mapping[str, Any]) -> Any:
        began = time.perf_counter()
        reply = await self._server.sessions.call(session.token, method, arguments)
        self._server.metrics.called(method, time.perf_counter() - began)
        return reply

    def _env_error(self, info: Mapping[str, Any], error: EnvError) -> dict[str, Any]:
        """The end of an episode after an infrastructure error; the next reset opens another session."""
        self.close()
        ended = {**info, "stop_reason": StopReason.ENV_ERROR.value, "error": describe(error)}
        return {"observation": ENV_FAILED, "info": ended}

    def _system_prompt(self) -> dict[str, str]:
        """The instructions for the model, under the key that OpenEnv's clients expect."""
        text = self._session.description["instructions"] if self._session else ""
        return {"system_prompt": text} if text else {}
