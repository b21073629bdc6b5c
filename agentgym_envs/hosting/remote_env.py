"""`RemoteEnv`: an environment in another process or on another machine, behind the interface of a local one."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.core import Snapshot, StopReason, TextEnv, Transition
from agentgym_envs.errors import EnvError, NoOracle, SessionLost, UsageError
from agentgym_envs.grammar import GRAMMARS, ActionGrammar
from agentgym_envs.hosting.connection import Connection, EnvProvider, PendingCall, RemoteSession, Request
from agentgym_envs.hosting.images import image_from_json
from agentgym_envs.hosting.json_forms import info_from_json, rng_to_json, set_rng
from agentgym_envs.hosting.remote_tasks import RemoteTaskSet
from agentgym_envs.hosting.session_manager import SessionManager, call_abandoned
from agentgym_envs.registration import env_class
from agentgym_envs.task import Task
from agentgym_envs.trajectory import placeholder_task

ResetResult = tuple[str, dict[str, Any]]
StepResult = tuple[str, float, bool, bool, dict[str, Any]]


class RemoteEnv(TextEnv):
    """A remote environment: same observations, rewards, infos and exceptions as a local one.

    A lost connection or a failure of the remote process ends the running episode as `env_error`. The next reset opens
    another session. Seeds are drawn locally, so the sequence of episodes equals that of a local environment.
    """

    blocking = True
    native_async = True

    def __init__(self, env_id: str, provider: EnvProvider, options: Mapping[str, Any]) -> None:
        """Make an environment through `provider`.

        Args:
            env_id: the id of the environment.
            provider: opens its sessions.
            options: arguments of the environment's constructor.

        Raises:
            EnvError: no process could be reached. Errors of the constructor are raised as by a local environment.
        """
        self._env_id = env_id
        self._sessions = SessionManager(env_id, provider, options)
        description = self._sessions.open().description
        self.rules, self.grammars = description["rules"], _grammars_of(env_id, options)
        self.metadata = TextEnv.metadata | {"render_modes": description["render_modes"]}
        self.tasks = RemoteTaskSet(self._sessions.call_or_reopen, description["tasks"])
        super().__init__(
            grammar=options.get("grammar", "bare"),
            split=description["split"],
            groups=description["groups"],
            instructions=description["instructions"],
            render_mode=options.get("render_mode"),
        )
        # Episode records take the environment's id and arguments from here. `gym.make` overwrites it.
        self.spec = EnvSpec(env_id.rpartition(":")[2], kwargs=dict(options))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Start an episode; see `TextEnv.reset`."""
        arguments = self._reset_arguments(seed, options)
        try:
            return self._reset_result(arguments, self._sessions.call_or_reopen("reset", arguments))
        except EnvError as error:
            return self._failed_remote_reset(arguments, error)

    def step(self, action: str) -> StepResult:
        """Take an action; see `TextEnv.step`."""
        self._take(action)
        try:
            return self._step_result(self._sessions.call("step", {"action": self._actions[-1]}))
        except EnvError as error:
            return self._failed_step(error)

    async def areset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Like `reset`, without blocking the event loop."""
        result: ResetResult = await self._await_result(Request("reset", seed=seed, options=options))
        return result

    async def astep(self, action: str) -> StepResult:
        """Like `step`, without blocking the event loop."""
        result: StepResult = await self._await_result(Request("step", action))
        return result

    def pending_call(self, request: Request, done: Callable[[Any], None]) -> tuple[Connection, PendingCall] | None:
        """The call that carries out a request, and the connection to submit it to, together with other calls.

        Args:
            request: a reset or a step.
            done: receives what `reset` or `step` returns or raises.

        Returns:
            None if no call needs to be submitted; `done` receives the result all the same.

        Raises:
            UsageError: the request is invalid.
            EpisodeOver: there is no running episode to step in.
        """
        if request.method == "reset":
            return self._pending_reset(self._reset_arguments(request.seed, request.options), done)
        self._take(request.action)
        session = self._sessions.current
        if session is None:
            done(self._failed_step(SessionLost("the session was lost")))
            return None
        arguments = {"action": self._actions[-1]}
        call = PendingCall(session.session, "step", arguments, lambda reply: done(self._settle_step(session, reply)))
        return session.connection, call

    @property
    def session(self) -> RemoteSession | None:
        """The current session; None if it was lost."""
        return self._sessions.current

    def abandon(self) -> None:
        """Give up a call that hangs: close its session by force. The next reset opens another."""
        self._sessions.abandon()

    def oracle(self) -> Iterator[str]:
        """The commands that solve the current state; see `TextEnv.oracle`."""
        if self._stop is not None:
            raise NoOracle("no episode is running, so there is nothing to solve; call reset() first")
        return iter(self._sessions.call("oracle", {}))

    def random_command(self, rng: random.Random) -> str:
        """A random command; see `TextEnv.random_command`. The state of `rng` is sent and set to the one returned."""
        reply = self._sessions.call("random_command", {"rng": rng_to_json(rng)})
        set_rng(rng, reply["rng"])
        return str(reply["command"])

    def restore(self, snapshot: Snapshot) -> str:
        """Return to a snapshot; see `TextEnv.restore`. The remote process replays the actions in one call."""
        self._seed_episode(snapshot.seed)  # a restore is a reset
        return self._replay(snapshot)

    def _replay(self, snapshot: Snapshot) -> str:
        arguments = {"task_id": snapshot.task_id, "seed": snapshot.seed, "actions": list(snapshot.actions)}
        reply = self._sessions.call_or_reopen("restore", arguments)
        self._start(self.tasks.get(snapshot.task_id), snapshot.seed)
        self._actions = list(snapshot.actions)
        self._update(reply["observation"], reply)
        return self._observation

    def render(self) -> Any:
        """The state in the render mode; see `TextEnv.render`."""
        if self.render_mode is None:
            return None
        return image_from_json(self._sessions.call_or_reopen("render", {}))

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["tasks"] = None
        state["_snapshot"] = self.snapshot() if self.task is not None and self._stop is None else None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        snapshot = state.pop("_snapshot")
        self.__dict__.update(state)
        if self._closed:
            return
        description = self._sessions.open().description
        self.tasks = RemoteTaskSet(self._sessions.call_or_reopen, description["tasks"])
        if snapshot is not None:
            self._replay(snapshot)

    def _reset_arguments(self, seed: int | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
        episode_seed = self._seed_episode(seed)
        if not isinstance(options or {}, Mapping):
            raise UsageError(f"the options of reset are a dict, got {options!r:.80}")
        chosen = dict(options or {})
        try:
            json.dumps(chosen)
        except (TypeError, ValueError) as error:
            raise UsageError(f"the options of reset must be JSON, got {chosen!r:.200}: {error}") from None
        return {"seed": int(episode_seed), "options": chosen}

    def _reset_result(self, arguments: Mapping[str, Any], reply: Mapping[str, Any]) -> ResetResult:
        task, info = Task(**reply["task"]), info_from_json(reply["info"])
        if isinstance(self.tasks, RemoteTaskSet):
            self.tasks.remember(task)
        self._start(task, arguments["seed"])
        self._update(reply["observation"], info)
        return self._observation, info

    def _step_result(self, reply: Mapping[str, Any]) -> StepResult:
        info = info_from_json(reply["info"])
        self._update(reply["observation"], info)
        return self._observation, reply["reward"], reply["terminated"], reply["truncated"], info

    def _update(self, observation: str, status: Mapping[str, Any]) -> None:
        self._observation = observation
        self._turn, self._score, self._success = status["turn"], status["score"], status["success"]
        stop = status["stop_reason"]
        self._stop = None if stop is None else StopReason(stop)

    def _failed_remote_reset(self, arguments: Mapping[str, Any], error: EnvError) -> ResetResult:
        """The result of a reset that failed; its task cannot be looked up any more."""
        self._start(placeholder_task(arguments["options"].get("task")), arguments["seed"])
        return self._failed_reset(error)

    def _settle_step(self, session: RemoteSession, reply: Any) -> StepResult | Exception:
        """Convert the reply of a connection to what `step` returns or raises."""
        if self._sessions.current is not session:
            return call_abandoned()
        if isinstance(reply, SessionLost):
            self._sessions.forget(session)
        if isinstance(reply, Exception):
            return self._failed_step(reply) if isinstance(reply, EnvError) else reply
        try:
            return self._step_result(reply)
        except EnvError as error:  # its screenshot is no image
            return self._failed_step(error)

    def _settle_reset(self, arguments: Mapping[str, Any], reply: Any) -> ResetResult | Exception:
        """Convert the reply of a connection to what `reset` returns or raises."""
        if isinstance(reply, Exception):
            return self._failed_remote_reset(arguments, reply) if isinstance(reply, EnvError) else reply
        try:
            return self._reset_result(arguments, reply)
        except EnvError as error:  # its screenshot is no image
            return self._failed_remote_reset(arguments, error)

    def _pending_reset(
        self, arguments: dict[str, Any], done: Callable[[Any], None]
    ) -> tuple[Connection, PendingCall] | None:
        session = self._sessions.current
        if session is None:
            self._reset_in_thread(arguments, done)
            return None

        def settle(reply: Any) -> None:
            if self._sessions.current is not session:
                done(call_abandoned())
            elif isinstance(reply, SessionLost):
                self._sessions.forget(session)
                self._reset_in_thread(arguments, done)
            else:
                done(self._settle_reset(arguments, reply))

        return session.connection, PendingCall(session.session, "reset", arguments, settle)

    def _reset_in_thread(self, arguments: Mapping[str, Any], done: Callable[[Any], None]) -> None:
        """Open a session and reset in a thread, since opening is slow. An abandoned reset changes nothing here."""
        generation = self._sessions.generation

        def target() -> None:
            try:
                reply = self._sessions.call_or_reopen("reset", arguments)
                obsolete = generation != self._sessions.generation
                done(call_abandoned() if obsolete else self._reset_result(arguments, reply))
            except EnvError as error:
                obsolete = generation != self._sessions.generation
                done(error if obsolete else self._failed_remote_reset(arguments, error))
            except Exception as error:  # the caller waits for `done`
                done(error)

        threading.Thread(target=target, daemon=True).start()

    async def _await_result(self, request: Request) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def done(result: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_set_result, future, result)

        if pending := self.pending_call(request, done):
            connection, call = pending
            connection.submit([call])
        result = await future
        if isinstance(result, Exception):
            raise result
        return result

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        raise AssertionError("a remote environment is reset by its host")

    def _act(self, command: str) -> Transition:
        raise AssertionError("a remote environment is stepped by its host")

    def _close(self) -> None:
        self._sessions.close()


def _grammars_of(env_id: str, options: Mapping[str, Any]) -> Mapping[str, Callable[[], ActionGrammar]]:
    """The grammars of an environment; the common ones if only the server knows the id."""
    try:
        return env_class(env_id).grammars_for(options)
    except (gym.error.Error, ImportError, UsageError):
        return GRAMMARS


def _set_result(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():  # cancelled: its caller no longer waits
        future.set_result(result)
