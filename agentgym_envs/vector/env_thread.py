"""Threads for environments: `EnvThread` runs the calls of one environment; `run_in_thread` runs one slow call."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import queue
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from agentgym_envs.core import describe
from agentgym_envs.errors import EnvError
from agentgym_envs.hosting.methods import Env
from agentgym_envs.hosting.session_host import close_quietly

_T = TypeVar("_T")
_Job = tuple[Callable[[], Any], Callable[[Any], None]]


class EnvThread:
    """An environment and, once `run` is called, the thread that runs its calls.

    A call that hangs occupies its thread for ever, so its caller continues with another `EnvThread`.
    """

    def __init__(self, env: Env | None, owned: bool = True) -> None:
        """`owned` says whether `close` closes the environment."""
        self.env, self.broken, self.owned = env, False, owned
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = False

    def run(self, call: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run `call` in the thread, then `done` with its result."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._busy = True
        self._jobs.put((call, done))

    def close(self) -> None:
        """Close the environment. If it has a thread, that thread closes it after the running call."""
        if self._thread is None:
            self._close_env()
        else:
            self._jobs.put(None)

    def wait(self, deadline: float) -> None:
        """Wait until the environment is closed, unless a call is running, which may never end."""
        own = self._thread is threading.current_thread()  # if the garbage is collected there
        if self._thread is not None and not self._busy and not own:
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            call, done = job
            try:
                result = call()
            except BaseException as error:  # it would silently end this thread
                result = EnvError(describe(error))
            self._busy = False  # first, since `done` may close at once
            done(result)
            del job, call, done, result  # or the waiting thread would keep the objects of the last call alive
        self._close_env()

    def _close_env(self) -> None:
        env, self.env = self.env, None
        if env is not None and self.owned:
            close_quietly(env)


async def run_in_thread(call: Callable[[], _T], undo: Callable[[_T], None] | None = None) -> _T:
    """Run a slow call in a thread of its own.

    The event loop's own pool is small, so calls would queue, and at exit it waits for calls that hang.

    Args:
        call: the function to run.
        undo: receives the result if the caller was cancelled meanwhile.
    """
    outcome: concurrent.futures.Future[_T] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()  # it accepts a result even if the caller was cancelled

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


@cache
def shared_loop() -> asyncio.AbstractEventLoop:
    """An event loop in a thread, for asynchronous environments that are called from synchronous code."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="agentgym-environments", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=shared_loop.cache_clear)  # the loop's thread belongs to the parent
