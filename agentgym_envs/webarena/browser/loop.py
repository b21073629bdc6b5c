"""One event loop in a thread of its own, on which all browsers of this process are driven.

Playwright's calls can only be cut short on an event loop: one that hangs in its synchronous form hangs for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from agentgym_envs.webarena.browser.per_process import once_a_process

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@once_a_process
def loop() -> asyncio.AbstractEventLoop:
    """The loop, begun when it is first needed."""
    made = asyncio.new_event_loop()
    made.set_exception_handler(_note)
    threading.Thread(target=made.run_forever, name="agentgym-browser", daemon=True).start()
    return made


def _note(_: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
    """What nobody waited for: Playwright leaves such behind when its driver ends, and whoever asked is told anyway."""
    _log.debug("on the browsers' loop: %s", about.get("message"), exc_info=about.get("exception"))


def wait_for(work: Coroutine[Any, Any, _T], seconds: float | None = None) -> _T:
    """Have `work` done on the loop and wait for it, from any other thread. Interrupted, it is cancelled.

    Raises TimeoutError after `seconds`.
    """
    future = asyncio.run_coroutine_threadsafe(work, loop())
    try:
        return future.result(seconds)
    except BaseException:
        future.cancel()
        raise


async def awaited(work: Coroutine[Any, Any, _T]) -> _T:
    """The same from another event loop, which goes on meanwhile."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop()))


def begin(work: Coroutine[Any, Any, Any]) -> None:
    """Have `work` done on the loop without waiting for it."""
    with contextlib.suppress(RuntimeError):  # the interpreter is ending
        asyncio.run_coroutine_threadsafe(work, loop())
