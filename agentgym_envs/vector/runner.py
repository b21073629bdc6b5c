"""`EnvRunner`: runs the calls of one environment inline, in a thread, or on an event loop.

A runner never raises an infrastructure error: it ends the episode as `env_error`, and the next reset makes a new
environment. Caller errors are returned unchanged.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from agentgym_envs.core import ENV_FAILED, StopReason, describe, text_env
from agentgym_envs.errors import EnvError, EpisodeOver, UsageError
from agentgym_envs.hosting.connection import Connection, PendingCall, Request
from agentgym_envs.hosting.frames import GRACE_SECONDS
from agentgym_envs.hosting.methods import Env
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.session_host import close_quietly
from agentgym_envs.vector.env_thread import EnvThread, run_in_thread, shared_loop

MakeEnv = Callable[[], Env]
Mode = Literal["inline", "thread", "async"]
Result = Any
"""The return value of `reset` (2 values) or `step` (5 values), or the exception of a caller error."""
RoutedCall = tuple[Connection, PendingCall]
"""A call, and the connection to submit it to."""
_ENV_ERROR = StopReason.ENV_ERROR.value
_numbers = itertools.count()
_log = logging.getLogger(__name__)
_EMPTY_INFO: dict[str, Any] = {
    "task_id": "unknown",
    "seed": 0,
    "turn": 0,
    "score": 0.0,
    "success": False,
    "state_key": "0" * 16,
}


class EnvRunner:
    """One environment, and the way its calls run. One call at a time."""

    def __init__(self, make: MakeEnv, mode: Mode | None = None) -> None:
        """Make the environment.

        Args:
            make: makes the environment, and a new one after a failure.
            mode: the way calls run; by default the one that suits the environment's `native_async` and `blocking`.
        """
        env = make()
        self._make, self._thread, self._last_env = make, EnvThread(env), env
        self._mode = mode or _mode_of(env)
        self._remote = env if self._mode == "async" and isinstance(env, RemoteEnv) else None
        self._generation, self._lock = 0, threading.Lock()  # a result of an earlier generation is dropped
        self.number = next(_numbers)
        self._task: concurrent.futures.Future[Any] | None = None
        self._info: Mapping[str, Any] = {}
        self._info_before: Mapping[str, Any] = {}  # when the running call began
        self.error: Exception | None = None
        """The last failure of the environment."""

    @classmethod
    def wrapping(cls, env: Env) -> EnvRunner:
        """A runner over an environment of the caller, which the runner neither closes nor replaces."""
        runner = cls(lambda: env)
        runner._thread.owned = False
        return runner

    @property
    def env(self) -> Env:
        """The environment; a new one if the last call was given up."""
        if self._thread.env is None:
            self._replace_env(self._thread)
        assert self._thread.env is not None
        return self._thread.env

    @property
    def last_env(self) -> Env:
        """The environment of the last call, even if that call was given up."""
        return self._last_env

    @property
    def inline(self) -> bool:
        """True if calls run in the calling thread, where they cannot have a time limit."""
        return self._mode == "inline"

    def step(self, action: str) -> Result:
        """Take a step as `run_inline` does, with less overhead: some steps take only microseconds."""
        try:
            result = self._thread.env.step(action)  # type: ignore[union-attr]
            self._info = info = result[4]
            if info["stop_reason"] is not None:
                self._check_failure(info)
        except Exception as error:
            return self._settle(Request("step", action), error)
        return result

    def run_inline(self, request: Request) -> Result:
        """Carry out a request in the calling thread."""
        return self._settle(request, self._carry_out(self._thread, request))

    def start(self, request: Request, done: Callable[[Result], None]) -> RoutedCall | None:
        """Start a request without waiting.

        Args:
            request: a reset or a step.
            done: receives the result, on any thread, unless the call is given up before.

        Returns:
            A call that the caller must submit (`submit`), or None.
        """
        generation, self._info_before = self._generation, self._info

        def finish(result: Any) -> None:
            with self._lock:
                if generation != self._generation:
                    return
                settled = self._settle(request, result)
            done(settled)

        if self._mode == "inline":
            done(self.run_inline(request))
        elif self._remote is not None:
            return _pending_call(self._remote, request, finish)
        elif self._mode == "async":
            self._task = task = asyncio.run_coroutine_threadsafe(self._carry_out_async(request), shared_loop())
            task.add_done_callback(partial(self._end_task, finish))
        else:
            self._thread.run(partial(self._carry_out, self._thread, request), finish)
        return None

    async def run(self, request: Request, seconds: float | None = None) -> Result:
        """Carry out a request without blocking the event loop; give it up after `seconds`."""
        if self._mode == "inline":
            return self.run_inline(request)
        if self._mode == "async":
            self._info_before = self._info
            try:
                return self._settle(request, await asyncio.wait_for(self._carry_out_async(request), seconds))
            except TimeoutError:
                return self.give_up(request, seconds)
        outcome: concurrent.futures.Future[Result] = concurrent.futures.Future()
        outcome.set_running_or_notify_cancel()  # it accepts a result even if the caller was cancelled
        self.start(request, outcome.set_result)
        waiter = asyncio.wrap_future(outcome)
        try:
            await asyncio.wait([waiter], timeout=seconds)
            return waiter.result() if waiter.done() else self.give_up(request, seconds)
        finally:
            waiter.cancel()

    def give_up(self, request: Request, seconds: float | None) -> Result:
        """Give up a call that takes too long, and return the `env_error` that ends its episode."""
        self._cancel_call()
        self._info = self._info_before  # the reply may have arrived at the last moment
        if self._remote is not None:
            self._remote.abandon()
        else:
            self._thread.close()
            self._thread = EnvThread(None, self._thread.owned)
        return self._settle(request, TimeoutError(f"the environment did not answer within {seconds} s"))

    def close(self) -> None:
        """Close the environment and wait until that is done, but not for a running call."""
        close_all([self])

    def failed(self, request: Request, error: Exception) -> Result:
        """The result of a request that failed with an infrastructure error: an `env_error`."""
        _log.warning("an environment failed; its episode ends as env_error", exc_info=error)
        self.error, self._thread.broken = error, self._remote is None
        known = self._info if request.method == "step" else {}
        info = {**_EMPTY_INFO, **known, "stop_reason": _ENV_ERROR, "error": describe(error)}
        if request.method == "step":
            info |= {"turn": info["turn"] + 1, "invalid_action": None}
            return ENV_FAILED, 0.0, False, True, info
        names = {"task_id": (request.options or {}).get("task", "unknown"), "seed": request.seed or 0}
        return ENV_FAILED, {**info, **names}

    def _start_closing(self) -> EnvThread:
        self._cancel_call()
        self._thread.close()
        return self._thread

    def _end_task(self, finish: Callable[[Any], None], task: concurrent.futures.Future[Any]) -> None:
        if self._task is task:
            self._task = None  # the task would keep the objects of this runner's caller alive
        if not task.cancelled():
            finish(task.result())

    def _cancel_call(self) -> None:
        with self._lock:
            self._generation += 1
        if self._task is not None:
            self._task.cancel()

    def _carry_out(self, thread: EnvThread, request: Request) -> Any:
        """Call the environment. Returns its result or the exception that it raised."""
        try:
            if request.method == "step":
                return thread.env.step(request.action)  # type: ignore[union-attr]
            if thread.broken or thread.env is None:
                self._replace_env(thread)
            return thread.env.reset(seed=request.seed, options=request.options)  # type: ignore[union-attr]
        except Exception as error:
            return error

    async def _carry_out_async(self, request: Request) -> Any:
        thread: Any = self._thread
        try:
            if request.method == "step":
                return await thread.env.astep(request.action)
            if thread.broken or thread.env is None:
                await run_in_thread(lambda: self._replace_env(thread))
            return await thread.env.areset(seed=request.seed, options=request.options)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return EnvError(describe(error))  # cancelled inside the environment; this call was not
        except SystemExit as error:  # it would end the loop, and with it every environment there
            return EnvError(describe(error))
        except Exception as error:
            return error

    def _settle(self, request: Request, result: Any) -> Result:
        if isinstance(result, UsageError | EpisodeOver):
            return result
        if isinstance(result, Exception):
            return self.failed(request, result)
        try:
            self._info = result[-1]
            self._check_failure(self._info)
        except Exception as error:  # the environment returned a malformed result
            return self.failed(request, error)
        return result

    def _check_failure(self, info: Mapping[str, Any]) -> None:
        """Mark a failed environment, which the next reset replaces. A remote one is replaced by its host."""
        if info["stop_reason"] == _ENV_ERROR and self._remote is None:
            self._thread.broken = True

    def _replace_env(self, thread: EnvThread) -> None:
        old, thread.env = thread.env, None
        if old is not None and thread.owned:
            close_quietly(old)
        thread.env, thread.broken = self._make(), False
        text_env(thread.env).np_random = text_env(self._last_env).np_random  # continue the sequence of seeds
        if thread is self._thread:
            self._last_env = thread.env


def close_all(runners: Sequence[EnvRunner]) -> None:
    """Close runners in parallel. Wait for that (five seconds at most), but not for running calls."""
    threads = [runner._start_closing() for runner in runners]
    deadline = time.monotonic() + GRACE_SECONDS
    for thread in threads:
        thread.wait(deadline)


def submit(calls: Sequence[RoutedCall]) -> None:
    """Submit the calls that `EnvRunner.start` returned, those of one connection together."""
    by_connection: dict[Connection, list[PendingCall]] = {}
    for connection, call in calls:
        by_connection.setdefault(connection, []).append(call)
    for connection, together in by_connection.items():
        connection.submit(together)


def _pending_call(env: RemoteEnv, request: Request, finish: Callable[[Any], None]) -> RoutedCall | None:
    try:
        return env.pending_call(request, finish)
    except Exception as error:
        finish(error)
        return None


def _mode_of(env: Env) -> Mode:
    base = text_env(env)
    if base is env and base.native_async:
        return "async"
    return "thread" if base.blocking else "inline"
