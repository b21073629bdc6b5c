"""A lane is one environment and the way it is called: at once, in a thread of its own, or on an event loop.

What the machine gets wrong never comes out of a lane as an exception: it ends the episode as `env_error`, and the
environment is made anew at the next reset. What the caller got wrong comes out as it is.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import gymnasium as gym

from agentgym_envs.core import ENV_FAILED, StopReason, describe, text_env
from agentgym_envs.errors import EpisodeOver, UsageError
from agentgym_envs.hosting.connection import Connection, Posted
from agentgym_envs.hosting.host import close_quietly
from agentgym_envs.hosting.twin import Ask, TwinEnv

Env = gym.Env[str, str]
MakeEnv = Callable[[], Env]
Mode = Literal["inline", "thread", "async"]
Result = Any
"""What `reset` (2 values) or `step` (5 values) returned, or the exception that the caller is to blame for."""
ToPost = tuple[Connection, Posted]
_log = logging.getLogger(__name__)


class Lane:
    """One environment and the way it is called. One call at a time."""

    def __init__(self, make: MakeEnv, mode: Mode | None = None) -> None:
        """`mode=None` goes by what the environment says of itself (`native_async`, `blocking`)."""
        env = make()
        self._make, self._box = make, _Box(env)
        self._mode = mode or _mode_of(env)
        self._twin = env if self._mode == "async" and isinstance(env, TwinEnv) else None
        self._age, self._lock = 0, threading.Lock()
        self._info: Mapping[str, Any] = {}
        self.error: Exception | None = None
        """What the environment last failed of."""

    @property
    def env(self) -> Env:
        """The environment, or its twin."""
        if self._box.env is None:
            self._renew(self._box)
        assert self._box.env is not None
        return self._box.env

    @property
    def inline(self) -> bool:
        """Whether a call is carried out at once, so that it can have no time limit."""
        return self._mode == "inline"

    def attempt(self, ask: Ask) -> Result:
        """Carry out a call here and now."""
        result = self._carry_out(self._box, ask)
        return self._settle(ask, result)

    def begin(self, ask: Ask, done: Callable[[Result], None]) -> ToPost | None:
        """Begin a call; `done` takes its result, on any thread, unless the call is given up before.

        Returns a call for the twin's connection, which the caller must post (`post_all`), or None.
        """
        age = self._age

        def finish(result: Any) -> None:
            with self._lock:
                if age != self._age:
                    return
                settled = self._settle(ask, result)
            done(settled)

        if self._mode == "inline":
            done(self.attempt(ask))
        elif self._twin is not None:
            return _posted(self._twin, ask, finish)
        elif self._mode == "async":
            task = asyncio.run_coroutine_threadsafe(self._carry_out_async(ask), shared_loop())
            task.add_done_callback(lambda task: None if task.cancelled() else finish(task.result()))
        else:
            box = self._box
            box.thread().put(lambda: finish(self._carry_out(box, ask)))
        return None

    async def ask(self, ask: Ask, seconds: float | None = None) -> Result:
        """Carry out a call without blocking the event loop; one that takes longer than `seconds` is given up."""
        if self._mode == "inline":
            return self.attempt(ask)
        if self._mode == "async":
            try:
                return self._settle(ask, await asyncio.wait_for(self._carry_out_async(ask), seconds))
            except TimeoutError:
                return self.give_up(ask, seconds)
        outcome: concurrent.futures.Future[Result] = concurrent.futures.Future()
        outcome.set_running_or_notify_cancel()  # so that it takes a result even if nobody waits any more
        self.begin(ask, outcome.set_result)
        waiter = asyncio.wrap_future(outcome)
        try:
            await asyncio.wait([waiter], timeout=seconds)
            return waiter.result() if waiter.done() else self.give_up(ask, seconds)
        finally:
            waiter.cancel()

    def give_up(self, ask: Ask, seconds: float | None) -> Result:
        """Give up a call that takes too long; returns the `env_error` that it comes to."""
        with self._lock:
            self._age += 1
        if self._twin is not None:
            self._twin.abandon()
        else:
            self._box.close()
            self._box = _Box(None)
        return self._settle(ask, TimeoutError(f"the environment did not answer within {seconds} s"))

    def close(self) -> None:
        """Close the environment."""
        with self._lock:
            self._age += 1
        self._box.close()

    def _carry_out(self, box: _Box, ask: Ask) -> Any:
        """What the environment returns, or the exception that it raises."""
        try:
            if ask.verb == "step":
                return box.env.step(ask.action)  # type: ignore[union-attr]
            if box.spoiled or box.env is None:
                self._renew(box)
            return box.env.reset(seed=ask.seed, options=ask.options)  # type: ignore[union-attr]
        except Exception as error:
            return error

    async def _carry_out_async(self, ask: Ask) -> Any:
        box: Any = self._box
        try:
            if ask.verb == "step":
                return await box.env.astep(ask.action)
            if box.spoiled or box.env is None:
                self._renew(box)
            return await box.env.areset(seed=ask.seed, options=ask.options)
        except Exception as error:
            return error

    def _settle(self, ask: Ask, result: Any) -> Result:
        if isinstance(result, Exception):
            return result if isinstance(result, UsageError | EpisodeOver) else self._failed(ask, result)
        self._info = info = result[-1]
        # A machine that failed once is not trusted with another episode. A twin sees to that itself.
        if info["stop_reason"] == StopReason.ENV_ERROR and self._twin is None:
            self._box.spoiled = True
        return result

    def _failed(self, ask: Ask, error: Exception) -> Result:
        _log.warning("an environment failed; its episode ends as env_error", exc_info=error)
        self.error, self._box.spoiled = error, self._twin is None
        info = {**_EMPTY, **self._info, "stop_reason": StopReason.ENV_ERROR.value, "error": describe(error)}
        if ask.verb == "step":
            info |= {"turn": info["turn"] + 1, "invalid_action": None}
            return ENV_FAILED, 0.0, False, True, info
        names = {"task_id": (ask.options or {}).get("task", "unknown"), "seed": ask.seed or 0}
        return ENV_FAILED, {**info, **names, "turn": 0, "score": 0.0, "success": False}

    def _renew(self, box: _Box) -> None:
        old, box.env = box.env, None
        if old is not None:
            close_quietly(old)
        box.env, box.spoiled = self._make(), False


class LanePool:
    """Lanes by the kind of their environment. Idle ones are kept, so that kinds may alternate."""

    def __init__(self, makers: MakeEnv | Mapping[str, MakeEnv], size: int) -> None:
        """`size` is the most lanes that there are at a time, idle ones included."""
        self._makers, self._size = makers, size
        self._idle: list[tuple[str, Lane]] = []
        self._busy = 0

    def take(self, kind: str) -> Lane:
        """An idle lane of that kind, or a new one. Raises UsageError for an unknown kind."""
        self._busy += 1
        for place, (name, lane) in enumerate(self._idle):
            if name == kind:
                del self._idle[place]
                return lane
        if len(self._idle) + self._busy > self._size and self._idle:
            self._idle.pop(0)[1].close()
        try:
            return Lane(self._maker(kind))
        except BaseException:
            self._busy -= 1
            raise

    def give(self, kind: str, lane: Lane) -> None:
        """Hand a lane back."""
        self._busy -= 1
        self._idle.append((kind, lane))

    def drop(self, lane: Lane) -> None:
        """Close a lane that was taken."""
        self._busy -= 1
        lane.close()

    def close(self) -> None:
        """Close the idle lanes."""
        while self._idle:
            self._idle.pop()[1].close()

    def _maker(self, kind: str) -> MakeEnv:
        if callable(self._makers):
            return self._makers
        if kind not in self._makers:
            raise UsageError(f"an episode wants the environment {kind!r}; known here: {', '.join(self._makers)}")
        return self._makers[kind]


def post_all(calls: Sequence[ToPost]) -> None:
    """Post the calls that `Lane.begin` returned, those of one connection together."""
    by_connection: dict[Connection, list[Posted]] = {}
    for connection, call in calls:
        by_connection.setdefault(connection, []).append(call)
    for connection, together in by_connection.items():
        connection.post(together)


@cache
def shared_loop() -> asyncio.AbstractEventLoop:
    """An event loop in a thread, for asynchronous environments that are called from synchronous code."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="agentgym-environments", daemon=True).start()
    return loop


class _Box:
    """An environment and, if it needs one, its thread. A call that never comes back keeps its box to itself."""

    def __init__(self, env: Env | None) -> None:
        self.env, self.spoiled = env, False
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] | None = None

    def thread(self) -> queue.SimpleQueue[Callable[[], None] | None]:
        """Where jobs are put that its thread does one after the other."""
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(self._jobs,), daemon=True).start()
        return self._jobs

    def close(self) -> None:
        """Close the environment, by its thread if it has one: a call may be under way."""
        if self._jobs is None:
            self._shut()
        else:
            self._jobs.put(None)

    def _work(self, jobs: queue.SimpleQueue[Callable[[], None] | None]) -> None:
        while (job := jobs.get()) is not None:
            job()
        self._shut()

    def _shut(self) -> None:
        env, self.env = self.env, None
        if env is not None:
            close_quietly(env)


_EMPTY: dict[str, Any] = {
    "task_id": "unknown",
    "seed": 0,
    "turn": 0,
    "score": 0.0,
    "success": False,
    "state_key": "0" * 16,
}


def _posted(twin: TwinEnv, ask: Ask, finish: Callable[[Any], None]) -> ToPost | None:
    try:
        return twin.posted(ask, finish)
    except Exception as error:
        finish(error)
        return None


def _mode_of(env: Env) -> Mode:
    base = text_env(env)
    if base is env and base.native_async:
        return "async"
    return "thread" if base.blocking else "inline"
