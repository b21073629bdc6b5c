"""The event loop of the browsers: one per process, in its own thread.

Playwright's calls can only be cancelled on an event loop; a synchronous call that hangs never returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from agentgym_envs.webarena.browser.per_process import once_per_process

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@once_per_process
def loop() -> asyncio.AbstractEventLoop:
    """The loop, started on first use."""
    new = asyncio.new_event_loop()
    new.set_exception_handler(_log_error)
    threading.Thread(target=new.run_forever, name="agentgym-browser", daemon=True).start()
    return new


def _log_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors of tasks that no caller awaits. Playwright leaves such tasks when its driver stops."""
    _log.debug("on the browsers' event loop: %s", context.get("message"), exc_info=context.get("exception"))


def run(work: Coroutine[Any, Any, _T], seconds: float | None = None) -> _T:
    """Run `work` on the loop and wait for its result, from any other thread. An interruption cancels it.

    Raises TimeoutError after `seconds`.
    """
    future = asyncio.run_coroutine_threadsafe(work, loop())
    try:
        return future.result(seconds)
    except BaseException:
        future.cancel()
        raise


async def run_async(work: Coroutine[Any, Any, _T]) -> _T:
    """Run `work` on the loop and await its result from another event loop."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop()))


def start(work: Coroutine[Any, Any, Any]) -> None:
    """Start `work` on the loop without waiting for it."""
    with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
        asyncio.run_coroutine_threadsafe(work, loop())
