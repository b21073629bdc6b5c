"""A runner is one environment and the way it is called: at once, in a thread of its own, or on an event loop.

What the machine gets wrong never comes out of a runner as an exception: it ends the episode as `env_error`, and the
environment is made anew at the next reset. What the caller got wrong comes out as it is.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import os
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any, Literal, TypeVar

import gymnasium as gym

from agentgym_envs.core import ENV_FAILED, StopReason, describe, text_env
from agentgym_envs.errors import EnvError, EpisodeOver, UsageError
from agentgym_envs.hosting.connection import Connection, PendingCall
from agentgym_envs.hosting.frames import GRACE_SECONDS
from agentgym_envs.hosting.remote_env import RemoteEnv, Request
from agentgym_envs.hosting.session_host import close_quietly

Env = gym.Env[str, str]
MakeEnv = Callable[[], Env]
MakeEnvs = MakeEnv | Mapping[str, MakeEnv]
"""How to make an environment; with several kinds of them, how to make each, by its name."""
Mode = Literal["inline", "thread", "async"]
Result = Any
"""What `reset` (2 values) or `step` (5 values) returned, or the exception that the caller is to blame for."""
ToPost = tuple[Connection, PendingCall]
_ENV_ERROR = StopReason.ENV_ERROR.value
_T = TypeVar("_T")
_numbers = itertools.count()
_PARALLEL_OPENINGS = 16
_log = logging.getLogger(__name__)


class EnvRunner:
    """One environment and the way it is called. One call at a time."""

    def __init__(self, make: MakeEnv, mode: Mode | None = None) -> None:
        """`mode=None` goes by what the environment says of itself (`native_async`, `blocking`)."""
        env = make()
        self._make, self._box, self._last = make, _Box(env), env
        self._mode = mode or _mode_of(env)
        self._twin = env if self._mode == "async" and isinstance(env, RemoteEnv) else None
        self._age, self._lock = 0, threading.Lock()
        self.number = next(_numbers)
        self._task: concurrent.futures.Future[Any] | None = None
        self._info: Mapping[str, Any] = {}
        self._before: Mapping[str, Any] = {}  # as it was when the call began
        self.error: Exception | None = None
        """What the environment last failed of."""

    @classmethod
    def over(cls, env: Env) -> EnvRunner:
        """A runner over an environment that stays its caller's: it is neither closed nor made anew."""
        runner = cls(lambda: env)
        runner._box.owned = False
        return runner

    @property
    def env(self) -> Env:
        """The environment, or its twin."""
        if self._box.env is None:
            self._renew(self._box)
        assert self._box.env is not None
        return self._box.env

    @property
    def last_env(self) -> Env:
        """The environment of the last call, also if that call was given up."""
        return self._last

    @property
    def inline(self) -> bool:
        """Whether a call is carried out at once, so that it can have no time limit."""
        return self._mode == "inline"

    def step(self, action: str) -> Result:
        """`attempt` of a step, by the shortest way: environments of microseconds feel every call."""
        try:
            result = self._box.env.step(action)  # type: ignore[union-attr]
            self._info = info = result[4]
            if info["stop_reason"] is not None:
                self._distrust(info)
        except Exception as error:
            return self._settle(Request("step", action), error)
        return result

    def attempt(self, ask: Request) -> Result:
        """Carry out a call here and now."""
        result = self._carry_out(self._box, ask)
        return self._settle(ask, result)

    def begin(self, ask: Request, done: Callable[[Result], None]) -> ToPost | None:
        """Begin a call; `done` takes its result, on any thread, unless the call is given up before.

        Returns a call for the twin's connection, which the caller must post (`submit`), or None.
        """
        age, self._before = self._age, self._info

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
            self._task = task = asyncio.run_coroutine_threadsafe(self._carry_out_async(ask), shared_loop())
            task.add_done_callback(partial(self._end_task, finish))
        else:
            self._box.run(partial(self._carry_out, self._box, ask), finish)
        return None

    async def ask(self, ask: Request, seconds: float | None = None) -> Result:
        """Carry out a call without blocking the event loop; one that takes longer than `seconds` is given up."""
        if self._mode == "inline":
            return self.attempt(ask)
        if self._mode == "async":
            self._before = self._info
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

    def give_up(self, ask: Request, seconds: float | None) -> Result:
        """Give up a call that takes too long; returns the `env_error` that it comes to."""
        self._forget_call()
        self._info = self._before  # the call may have been answered at the last moment
        if self._twin is not None:
            self._twin.abandon()
        else:
            self._box.close()
            self._box = _Box(None, self._box.owned)
        return self._settle(ask, TimeoutError(f"the environment did not answer within {seconds} s"))

    def close(self) -> None:
        """Close the environment. Waits until that is done, but for no call that is under way."""
        close_all([self])

    def failed(self, ask: Request, error: Exception) -> Result:
        """The `env_error` that a failure of the machine in `ask` comes to."""
        _log.warning("an environment failed; its episode ends as env_error", exc_info=error)
        self.error, self._box.spoiled = error, self._twin is None
        known = self._info if ask.method == "step" else {}
        info = {**_EMPTY, **known, "stop_reason": _ENV_ERROR, "error": describe(error)}
        if ask.method == "step":
            info |= {"turn": info["turn"] + 1, "invalid_action": None}
            return ENV_FAILED, 0.0, False, True, info
        names = {"task_id": (ask.options or {}).get("task", "unknown"), "seed": ask.seed or 0}
        return ENV_FAILED, {**info, **names}

    def _begin_close(self) -> _Box:
        self._forget_call()
        self._box.close()
        return self._box

    def _end_task(self, finish: Callable[[Any], None], task: concurrent.futures.Future[Any]) -> None:
        if self._task is task:
            self._task = None  # it knows its callbacks for ever, and they know whom this runner works for
        if not task.cancelled():
            finish(task.result())

    def _forget_call(self) -> None:
        with self._lock:
            self._age += 1
        if self._task is not None:
            self._task.cancel()

    def _carry_out(self, box: _Box, ask: Request) -> Any:
        """What the environment returns, or the exception that it raises."""
        try:
            if ask.method == "step":
                return box.env.step(ask.action)  # type: ignore[union-attr]
            if box.spoiled or box.env is None:
                self._renew(box)
            return box.env.reset(seed=ask.seed, options=ask.options)  # type: ignore[union-attr]
        except Exception as error:
            return error

    async def _carry_out_async(self, ask: Request) -> Any:
        box: Any = self._box
        try:
            if ask.method == "step":
                return await box.env.astep(ask.action)
            if box.spoiled or box.env is None:
                await _in_thread(lambda: self._renew(box))
            return await box.env.areset(seed=ask.seed, options=ask.options)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return EnvError(describe(error))  # of something inside the environment, and not of this call
        except SystemExit as error:  # it would end the loop, and with it every environment on it
            return EnvError(describe(error))
        except Exception as error:
            return error

    def _settle(self, ask: Request, result: Any) -> Result:
        if isinstance(result, UsageError | EpisodeOver):
            return result
        if isinstance(result, Exception):
            return self.failed(ask, result)
        try:
            self._info = result[-1]
            self._distrust(self._info)
        except Exception as error:  # it returned what no environment returns
            return self.failed(ask, error)
        return result

    def _distrust(self, info: Mapping[str, Any]) -> None:
        """A machine that failed once is not trusted with another episode. A twin's host sees to that itself."""
        if info["stop_reason"] == _ENV_ERROR and self._twin is None:
            self._box.spoiled = True

    def _renew(self, box: _Box) -> None:
        old, box.env = box.env, None
        if old is not None and box.owned:
            close_quietly(old)
        box.env, box.spoiled = self._make(), False
        text_env(box.env).np_random = text_env(self._last).np_random  # the sequence of episodes goes on
        if box is self._box:
            self._last = box.env


class EnvPool:
    """Lanes by the kind of their environment. Idle ones are kept, so that kinds may alternate."""

    def __init__(self, makers: MakeEnvs, size: int) -> None:
        """`size` is the most runners that are in use at a time; of several kinds, as many again are kept idle.

        With room for no more than those in use, kinds that take turns would be made anew for every second episode.
        """
        self._makers, self._size = makers, size if callable(makers) else 2 * size
        self._idle: list[tuple[MakeEnv, EnvRunner]] = []
        self._busy = 0
        self._quick: set[int] = set()  # the makers of environments that are called at once, by identity
        self._openings: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    def take(self, kind: str) -> EnvRunner:
        """An idle runner of that kind, or a new one. Raises UsageError for an unknown kind."""
        make = self._maker(kind)
        runner = self._reuse(make) or self._note(make, EnvRunner(make))
        self._busy += 1
        return runner

    async def open(self, kind: str) -> EnvRunner:
        """`take` for an event loop: runners are made side by side, in threads, unless their calls take no time.

        Whether that is so is known once the first of a kind is there.
        """
        make = self._maker(kind)
        if id(make) in self._quick:
            return self.take(kind)
        runner = self._reuse(make)
        self._busy += 1
        if runner is not None:
            return runner
        try:
            async with self._gate():
                return self._note(make, await _in_thread(partial(EnvRunner, make), EnvRunner.close))
        except BaseException:
            self._busy -= 1
            raise

    @asynccontextmanager
    async def lease(self, kind: str) -> AsyncIterator[EnvRunner]:
        """A runner for one episode; dropped if that did not come to its end, since a call may be under way."""
        runner = await self.open(kind)
        try:
            yield runner
        except BaseException:
            self.drop(runner)
            raise
        self.give(kind, runner)

    def give(self, kind: str, runner: EnvRunner) -> None:
        """Hand a runner back."""
        self._busy -= 1
        self._idle.append((self._maker(kind), runner))

    def drop(self, runner: EnvRunner) -> None:
        """Close a runner that was taken."""
        self._busy -= 1
        runner.close()

    def close(self) -> None:
        """Close the idle runners."""
        runners, self._idle = [runner for _, runner in self._idle], []
        close_all(runners)

    def _reuse(self, make: MakeEnv) -> EnvRunner | None:
        """An idle runner; without one, there is room for a new one afterwards."""
        if fitting := [idle for idle in self._idle if idle[0] is make]:
            oldest = min(fitting, key=lambda idle: idle[1].number)  # the same order whoever ended first
            self._idle.remove(oldest)
            return oldest[1]
        if len(self._idle) + self._busy >= self._size and self._idle:
            self._idle.pop(0)[1].close()
        return None

    def _note(self, make: MakeEnv, runner: EnvRunner) -> EnvRunner:
        if runner.inline:
            self._quick.add(id(make))
        return runner

    def _gate(self) -> asyncio.Semaphore:
        """What bounds the openings. A semaphore belongs to one event loop, and a pool may outlive it."""
        loop = asyncio.get_running_loop()
        if self._openings is None or self._openings[0] is not loop:
            self._openings = loop, asyncio.Semaphore(_PARALLEL_OPENINGS)
        return self._openings[1]

    def _maker(self, kind: str) -> MakeEnv:
        if callable(self._makers):
            return self._makers
        if kind not in self._makers:
            raise UsageError(f"an episode wants the environment {kind!r}; known here: {', '.join(self._makers)}")
        return self._makers[kind]


def close_all(runners: Sequence[EnvRunner]) -> None:
    """Close runners in parallel. Wait for that (five seconds at most), but not for calls in progress."""
    boxes = [runner._begin_close() for runner in runners]
    deadline = time.monotonic() + GRACE_SECONDS
    for box in boxes:
        box.wait(deadline)


def submit(calls: Sequence[ToPost]) -> None:
    """Post the calls that `EnvRunner.begin` returned, those of one connection together."""
    by_connection: dict[Connection, list[PendingCall]] = {}
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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=shared_loop.cache_clear)  # the loop's thread is the parent's


class _Box:
    """An environment and, if it needs one, its thread. A call that never comes back keeps its box to itself."""

    def __init__(self, env: Env | None, owned: bool = True) -> None:
        """`owned` says whether the environment is closed with the box."""
        self.env, self.spoiled, self.owned = env, False, owned
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = False

    def run(self, call: Callable[[], Any], finish: Callable[[Any], None]) -> None:
        """Have the thread make a call, and then `finish` with what it returned."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._busy = True
        self._jobs.put((call, finish))

    def close(self) -> None:
        """Close the environment, by its thread if it has one: a call may be under way."""
        if self._thread is None:
            self._shut()
        else:
            self._jobs.put(None)

    def wait(self, deadline: float) -> None:
        """Wait until it is closed, unless a call is under way, which may never come back."""
        mine = self._thread is threading.current_thread()  # if the last of what it worked for is collected there
        if self._thread is not None and not self._busy and not mine:
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            call, finish = job
            try:
                result = call()
            except BaseException as error:  # it would end this thread, and nobody would hear of it
                result = EnvError(describe(error))
            self._busy = False  # first: whoever hears of the result may close at once
            finish(result)
            del job, call, finish, result  # or a thread that waits would keep alive what it last worked for
        self._shut()

    def _shut(self) -> None:
        env, self.env = self.env, None
        if env is not None and self.owned:
            close_quietly(env)


_Job = tuple[Callable[[], Any], Callable[[Any], None]]
_EMPTY: dict[str, Any] = {
    "task_id": "unknown",
    "seed": 0,
    "turn": 0,
    "score": 0.0,
    "success": False,
    "state_key": "0" * 16,
}


async def _in_thread(call: Callable[[], _T], undo: Callable[[_T], None] | None = None) -> _T:
    """A thread a call: the loop's own pool is small, so calls would queue, and it waits for hung ones at the end.

    `undo` takes the result if nobody waits for it any more.
    """
    outcome: concurrent.futures.Future[_T] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()  # so that it takes a result even if nobody waits any more

    def target() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=target, daemon=True).start()
    try:
        return await asyncio.wrap_future(outcome)
    except asyncio.CancelledError:
        if undo is not None:
            outcome.add_done_callback(lambda done: None if done.exception() else undo(done.result()))
        raise


def _posted(twin: RemoteEnv, ask: Request, finish: Callable[[Any], None]) -> ToPost | None:
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
