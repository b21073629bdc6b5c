"""The event loop of a scheduler: in a thread, or on a virtual clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from agentgym_envs.rollout.virtual_loop import VirtualLoop

_T = TypeVar("_T")


class Driver(Protocol):
    """Runs coroutines on one event loop, which outlives the call."""

    def call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine and return its result."""

    def close(self) -> None:
        """End the loop."""


class VirtualDriver:
    """An event loop with a virtual clock, which moves only during a call."""

    def __init__(self, now: float = 0.0) -> None:
        """The clock begins at `now`."""
        self._loop = VirtualLoop(now)

    def call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine to its end; other tasks continue meanwhile."""
        return self._loop.run_until_complete(coroutine)

    def close(self) -> None:
        """End the loop."""
        self._loop.close()


class ThreadDriver:
    """An event loop in a thread, which also runs between calls."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agentgym-episodes", daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the loop, and wait for its result."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def until(time: float) -> None:
    """Wait until a time of the loop's clock, exactly."""
    loop = asyncio.get_running_loop()
    reached: asyncio.Future[None] = loop.create_future()
    timer = loop.call_at(time, _reach, reached)
    try:
        await reached
    finally:
        timer.cancel()


def _reach(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
