"""`EpisodeTable`: the episodes of one environment by handle, in sessions of a server.

MCP has no session that both of its protocol versions share, so a handle names the episode in every call. Limits of
sessions and idle time, worker processes and the clean-up are those of `agentgym serve`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentgym_envs.core import ENV_FAILED, StopReason, TextEnv, describe
from agentgym_envs.errors import EnvError, EpisodeOver, SessionLost, UsageError
from agentgym_envs.grammar import ActionGrammar, make_grammar
from agentgym_envs.http.sessions import HttpSession, Sessions
from agentgym_envs.image_observations import ImageObservations
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn

_REMEMBERED = 1024
"""The most handles of ended episodes that get an explanation instead of "unknown"."""


def shows_images(kind: type[TextEnv]) -> bool:
    """True for environments whose observations have images, which these tools do not show."""
    return issubclass(kind, ImageObservations)


class PinnedEpisode(NamedTuple):
    """The one episode of an evaluation: neither its task nor its seed is the agent's choice."""

    task: str
    seed: int


@dataclass(slots=True)
class McpEpisode:
    """A running episode, or one that has just ended. `last` is its last reply."""

    handle: str
    session: str
    instructions: str
    task: Task
    last: dict[str, Any]
    turns: list[Turn] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def info(self) -> dict[str, Any]:
        """The info of the last reset or step."""
        info: dict[str, Any] = self.last["info"]
        return info

    @property
    def done(self) -> bool:
        """True after the end."""
        return self.info["stop_reason"] is not None


class EpisodeTable:
    """The episodes of one environment. All methods run on one event loop."""

    def __init__(
        self,
        sessions: Sessions,
        env_id: str,
        *,
        max_turns: int = 30,
        pinned: PinnedEpisode | None = None,
        recorder: TrajectoryWriter | None = None,
    ) -> None:
        """Make an empty table.

        Args:
            sessions: holds the environments, and limits their number and idle time.
            env_id: an id that `sessions` serves.
            max_turns: the turn limit of every episode.
            pinned: the only episode that there will be; None for any number of any tasks.
            recorder: gets the trajectory of every episode that ends.

        Raises UsageError for an environment whose observations have images.
        """
        if shows_images(sessions.classes[env_id]):
            raise UsageError(f"{env_id} shows images, and the tools here show text: choose one without Pixels")
        self.sessions, self.env_id, self.max_turns, self.pinned = sessions, env_id, max_turns, pinned
        self._recorder = recorder
        self._running: dict[str, McpEpisode] = {}
        self._ended: deque[str] = deque(maxlen=_REMEMBERED)
        self._pin_used = False

    @property
    def options(self) -> Mapping[str, Any]:
        """The arguments of the environment."""
        return self.sessions.defaults[self.env_id]

    @property
    def grammars(self) -> Mapping[str, Callable[[], ActionGrammar]]:
        """The grammars of the environment by name."""
        return self.sessions.classes[self.env_id].grammars_for(self.options)

    @property
    def grammar(self) -> ActionGrammar:
        """The grammar of the environment's actions."""
        return make_grammar(self.options.get("grammar", "bare"), self.grammars)

    async def check(self) -> None:
        """Make an environment, so that errors come before the first call. Raises UnknownTask for the pinned task."""
        await self.sessions.describe(self.env_id)
        if self.pinned is not None:
            await self._ask("task", {"id": self.pinned.task})

    async def begin(self, task: str | None, seed: int | None) -> McpEpisode:
        """Begin an episode. Raises UsageError, UnknownTask, ServerFull, EnvError, and EpisodeOver for a second pin."""
        if self.pinned is not None:
            if self._pin_used:
                raise EpisodeOver("this server has one episode, which was begun already")
            self._pin_used, (task, seed) = True, self.pinned
        self._forget_closed()
        try:
            session, reply = await self._reset(task, seed)
        except BaseException:
            self._pin_used = False  # the agent has seen nothing, so it may ask again
            raise
        instructions, task_row = session.description["instructions"], Task(**reply["task"])
        last = {**reply, "reward": 0.0}
        episode = McpEpisode(secrets.token_hex(8), session.token, instructions, task_row, last)
        self._running[episode.handle] = episode
        self._finish_if_done(episode)
        return episode

    async def step(self, handle: str | None, action: str) -> McpEpisode:
        """Take an action. Without a handle, in the newest episode.

        Raises:
            UsageError: an unknown handle.
            EpisodeOver: the episode has ended.
        """
        episode = self._find(handle)
        async with episode.lock:
            if episode.done:
                raise EpisodeOver("this episode is over")
            before = episode.last["observation"]
            episode.last = await self._step(episode, action)
            episode.turns.append(Turn(before, action, episode.last["reward"], episode.info))
            if episode.info["turn"] >= self.max_turns and not episode.done:
                episode.info["stop_reason"] = StopReason.TURN_LIMIT.value
            self._finish_if_done(episode)
        return episode

    async def tasks(self, split: str) -> list[dict[str, str]]:
        """The id, group and goal of the tasks of a split. Raises UsageError if they are endless."""
        rows = await self._ask("sample", {"split": split})
        return [{name: row[name] for name in ("id", "group", "goal")} for row in rows]

    def close(self) -> None:
        """Close all episodes; those that were running are recorded as closed."""
        for episode in list(self._running.values()):
            self._end(episode)

    async def _reset(self, task: str | None, seed: int | None) -> tuple[HttpSession, dict[str, Any]]:
        session = await self.sessions.open(self.env_id, {})
        arguments = {"seed": seed, "options": None if task is None else {"task": task}}
        try:
            return session, await self.sessions.call(session.token, "reset", arguments)
        except BaseException:
            self.sessions.close(session.token)
            raise

    async def _ask(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method of an environment that is made for this call."""
        session = await self.sessions.open(self.env_id, {})
        try:
            return await self.sessions.call(session.token, method, arguments)
        finally:
            self.sessions.close(session.token)

    async def _step(self, episode: McpEpisode, action: str) -> dict[str, Any]:
        try:
            reply: dict[str, Any] = await self.sessions.call(episode.session, "step", {"action": action})
            return {**reply, "info": dict(reply["info"])}
        except EnvError as error:
            ended = {"stop_reason": StopReason.ENV_ERROR.value, "error": describe(error), "invalid_action": None}
            return {
                "observation": ENV_FAILED,
                "reward": 0.0,
                "info": {**episode.info, "turn": len(episode.turns) + 1, **ended},
            }

    def _find(self, handle: str | None) -> McpEpisode:
        self._forget_closed()
        name = handle or next(reversed(self._running), None) or (self._ended[-1] if self._ended else None)
        if name in self._running:
            return self._running[name]
        if name in self._ended:
            raise EpisodeOver("this episode is over")
        raise UsageError(
            "no episode has been begun: call reset" if name is None else f"there is no episode {name!r:.40}"
        )

    def _forget_closed(self) -> None:
        """End the episodes whose session the server has closed, for example because they were idle."""
        for episode in list(self._running.values()):
            try:
                self.sessions.get(episode.session)
            except SessionLost:
                if not episode.lock.locked():
                    self._end(episode)

    def _finish_if_done(self, episode: McpEpisode) -> None:
        if episode.done:
            self._end(episode)

    def _end(self, episode: McpEpisode) -> None:
        del self._running[episode.handle]
        self._ended.append(episode.handle)
        self.sessions.close(episode.session)
        if self._recorder is not None:
            self._recorder.write(self._trajectory(episode))

    def _trajectory(self, episode: McpEpisode) -> Trajectory:
        info = episode.info
        return Trajectory(
            env_id=self.env_id,
            env_kwargs=dict(self.options),
            task=episode.task,
            seed=info["seed"],
            instructions=episode.instructions,
            turns=tuple(episode.turns),
            final_observation=episode.last["observation"],
            score=info["score"],
            success=info["success"],
            stop_reason=info["stop_reason"] or StopReason.CLOSED.value,
            error=info.get("error"),
            meta={"policy": "mcp", "max_turns": self.max_turns},
        )
