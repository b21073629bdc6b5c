"""An event loop whose clock does not wait: where nothing is left to do until some time, it is that time.

What sleeps and waits in asyncio runs unchanged on it, in the same order as on a clock that ticks, and the times that it
tells are those of a machine on which nothing but sleeping takes time. Threads and sockets do not know of it: they may
be used while no timer runs, as for opening and closing.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class _Skipping(selectors.SelectSelector):
    """Skips the time until the next timer, unless something has come in."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """As a selector, with `timeout` spent at once; without one there is a thread to wait for."""
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; its clock begins at 0."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        """Seconds on the virtual clock."""
        return self._skipping.now


def run_virtual(coroutine: Coroutine[Any, Any, _T]) -> tuple[_T, float]:
    """Run a coroutine to its end; what it returns, and how many seconds it would have taken."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(coroutine)
        return result, runner.get_loop().time()
