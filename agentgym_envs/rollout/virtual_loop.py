"""`VirtualLoop`: an event loop with a virtual clock, which jumps to the next timer when nothing else is left to do.

Code that sleeps and waits in asyncio runs unchanged, in the same order as in real time, as on a machine on which only
sleeping takes time. Threads and sockets do not use the virtual clock: use them only while no timer runs.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _Skipping(selectors.SelectSelector):
    """Skips the time until the next timer, unless a file is ready."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        """Select, with `timeout` skipped; without a timeout there is a thread to wait for."""
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self.loop.jump()
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock begins at `now` and moves by timers only."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now
        selector = _Skipping()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        """Seconds on the virtual clock."""
        return self._now

    def jump(self) -> None:
        """Set the clock to the time of the next timer, exactly: a sum of waiting times would be rounded."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]  # CPython's name
        if timers:
            self._now = max(self._now, timers[0].when())
