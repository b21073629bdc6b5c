"""What one OpenEnv client plays, in a session of the server."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from agentgym_envs.core import ENV_FAILED, StopReason, describe
from agentgym_envs.errors import EnvError, EpisodeOver, ServerFull, SessionLost, UsageError
from agentgym_envs.http.app import EnvServer
from agentgym_envs.http.dialects.openenv.wire import ResetFields, Wish, read_action, read_reset, told
from agentgym_envs.http.sessions import HttpSession

TaskRows = dict[str, list[dict[str, Any]]]
"""The tasks of each split that was asked for, in table order."""


class Player:
    """One episode after another, in a session that is replaced if it is lost.

    A failure of the machine ends the episode, as it does everywhere in this suite; it is never an error of a call.
    """

    def __init__(self, server: EnvServer, env_id: str, tasks: TaskRows) -> None:
        """`tasks`, those without options, is shared by the players of an environment; who needs it first fills it."""
        self._server, self._env_id, self._tasks = server, env_id, tasks
        self._session: HttpSession | None = None
        self._info: dict[str, Any] = {}
        self._episode_id: str | None = None

    @property
    def waits(self) -> bool:
        """Whether a call may take long, because it goes to another process."""
        return self._session is None or self._session.worker is not None

    async def open(self, options: dict[str, Any]) -> HttpSession:
        """Take a session in place of the one at hand. Raises ServerFull, UsageError, MissingExtra or EnvError."""
        self.close()
        self._info, self._episode_id = {}, None
        self._session = await self._server.sessions.open(self._env_id, options)
        return self._session

    def close(self) -> None:
        """Free the session; closing twice is fine."""
        session, self._session = self._session, None
        if session is not None:
            self._server.sessions.close(session.token)

    def touch(self) -> None:
        """Note that the client lives, whether or not it asks the environment anything."""
        if self._session is not None:
            self._session.used = time.monotonic()

    def give_up(self) -> None:
        """Free the session because its client was idle."""
        if self._session is not None and not self._session.closed:
            self._server.sessions.on_reaped(self._session)
        self.close()

    async def reset(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Begin an episode.

        Raises:
            UsageError, UnknownTask: fields that cannot be.
            ServerFull, MissingExtra: no session can be had.
        """
        wish = read_reset(data, self._server.sessions.classes[self._env_id].remote_options)
        fields = wish.fields
        began = {"task_id": fields.task, "seed": fields.seed, "turn": 0, "score": 0.0, "success": False}
        try:
            arguments = {"seed": fields.seed, "options": await self._options(wish)}
            reply = await self._ask_anew(wish.env_options, "reset", arguments)
        except ServerFull:
            raise
        except EnvError as error:
            reply = self._failed(began, error)
        self._info, self._episode_id = reply["info"], fields.episode_id or secrets.token_hex(8)
        failed = self._info["stop_reason"] is not None
        return told(reply["observation"], None, False, failed, self._info, **self._system_prompt())

    async def step(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Take an action. Raises UsageError if it is none, EpisodeOver if no episode runs."""
        action = read_action(data)
        if self._session is None:
            raise EpisodeOver("no episode runs; reset first")
        try:
            reply = await self._ask(self._session, "step", {"action": action})
        except EnvError as error:
            now = {**self._info, "turn": self._info.get("turn", 0) + 1, "invalid_action": None}
            reply = {"reward": 0.0, "terminated": False, "truncated": True, **self._failed(now, error)}
        self._info = reply["info"]
        return told(reply["observation"], reply["reward"], reply["terminated"], reply["truncated"], self._info)

    def state(self) -> dict[str, Any]:
        """How the episode stands."""
        return {"episode_id": self._episode_id, "step_count": self._info.get("turn", 0), **self._info}

    async def tasks(self, split: str | None = None, env_options: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The tasks of a split (by default the one that resets draw from), in table order.

        Args:
            split: "train", "validation" or "test".
            env_options: what the environment is made with; some have other tasks with other options.

        Raises:
            UsageError, UnknownTask: no such split, or tasks without end.
        """
        options = env_options or {}
        known = {} if options else self._tasks  # there is no end of options, so theirs are not kept
        wanted = split or (await self._server.sessions.describe(self._env_id))["split"]
        if wanted not in known:
            rows = await self._ask_anew(options, "sample", {"split": wanted})
            known[wanted] = [{name: row[name] for name in ("id", "split", "group", "goal")} for row in rows]
        return known[wanted]

    async def _options(self, wish: Wish) -> dict[str, Any]:
        """The options of the environment's `reset`."""
        fields: ResetFields = wish.fields
        if fields.index is None:
            chosen = {"task": fields.task, "split": fields.split, "group": fields.group}
            return {name: value for name, value in chosen.items() if value is not None}
        rows = await self.tasks(fields.split, wish.env_options)
        if fields.index >= len(rows):
            raise UsageError(f"there are {len(rows)} tasks of that split, so there is none of index {fields.index}")
        return {"task": rows[fields.index]["id"]}

    async def _ask_anew(self, options: dict[str, Any], method: str, arguments: Mapping[str, Any]) -> Any:
        """Ask where a session may be replaced, because it was lost or was made with other options."""
        if self._session is not None and self._session.options == options:
            try:
                return await self._ask(self._session, method, arguments)
            except SessionLost:
                pass
        return await self._ask(await self.open(options), method, arguments)

    async def _ask(self, session: HttpSession, method: str, arguments: Mapping[str, Any]) -> Any:
        began = time.perf_counter()
        reply = await self._server.sessions.call(session.token, method, arguments)
        self._server.metrics.called(method, time.perf_counter() - began)
        return reply

    def _failed(self, info: Mapping[str, Any], error: EnvError) -> dict[str, Any]:
        """The end of an episode whose machine failed; the next reset takes another session."""
        self.close()
        told_info = {**info, "stop_reason": StopReason.ENV_ERROR.value, "error": describe(error)}
        return {"observation": ENV_FAILED, "info": told_info}

    def _system_prompt(self) -> dict[str, str]:
        """What a model must know before it acts, under the name that OpenEnv's clients know."""
        text = self._session.description["instructions"] if self._session else ""
        return {"system_prompt": text} if text else {}
