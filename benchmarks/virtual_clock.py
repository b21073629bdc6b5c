"""An event loop with a virtual clock: when nothing is left to do until some time, the clock jumps to that time.

Code that sleeps and waits in asyncio runs unchanged, in the same order as in real time, as on a machine on which only
sleeping takes time. Threads and sockets do not use the virtual clock: use them only while no timer runs.
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
