"""A session that is opened in advance, so that a reset need not wait for a context and a page."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from agentgym_envs.errors import EnvError

if TYPE_CHECKING:
    from agentgym_envs.webarena.browser.session import BrowserSession

QUIET_SECONDS = 0.05
"""Time without browser calls after which the spare session is prepared."""
_log = logging.getLogger(__name__)

MakeSession = Callable[[], Awaitable["BrowserSession"]]


class SpareSession:
    """Keeps one session of a browser pool that no episode has used.

    It is prepared when few calls run, so that it does not slow down the episodes that play. A session is used by one
    episode only: whoever takes the spare one keeps it, and the next one is new. It ends with the last episode.
    """

    def __init__(self) -> None:
        self._request: tuple[Any, MakeSession] | None = None
        self._ready: tuple[Any, BrowserSession] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._calls = 0
        self._most_calls = (os.cpu_count() or 1) // 4

    @property
    def ready(self) -> BrowserSession | None:
        """The session that waits for an episode."""
        return None if self._ready is None else self._ready[1]

    def request(self, kind: Any, make: MakeSession) -> None:
        """Have a session of this kind made soon. A later request replaces this one."""
        self._request = kind, make
        self._schedule()

    def take(self, kind: Any) -> BrowserSession | None:
        """Return the spare session if there is one of this kind that still works."""
        self._request = None  # the new episode makes the next request when it has begun
        if self._ready is None:
            return None
        (found, session), self._ready = self._ready, None
        if found == kind and session.usable:
            return session
        self._close(session)
        return None

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Count a browser call while it runs."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._schedule()

    def drop(self) -> None:
        """Close the spare session, and prepare no other one until the next request."""
        ready = self._ready
        self.forget()
        if ready is not None:
            self._close(ready[1])

    def forget(self) -> None:
        """As `drop`, for a browser that closes anyway."""
        self._request = self._ready = None
        if self._preparing is not None:
            self._preparing.cancel()

    def _schedule(self) -> None:
        """Begin after `QUIET_SECONDS` if few calls run; the end of the next call restarts the time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._request is not None and self._calls <= self._most_calls and self._preparing is None:
            self._timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self._request is None or self._ready is not None or self._calls > self._most_calls:
            return
        (kind, make), self._request = self._request, None
        self._preparing = asyncio.ensure_future(self._prepare(kind, make))
        self._preparing.add_done_callback(self._end)

    async def _prepare(self, kind: Any, make: MakeSession) -> None:
        try:
            session = await make()
        except EnvError as error:  # the next reset opens its own session
            _log.debug("no session could be prepared: %s", error)
            return
        self._ready = kind, session

    def _end(self, done: asyncio.Task[None]) -> None:
        self._preparing = None
        if not done.cancelled() and (error := done.exception()) is not None:
            _log.warning("a session could not be prepared", exc_info=error)
        self._schedule()

    def _close(self, session: BrowserSession) -> None:
        closing = asyncio.ensure_future(session.close())
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())
