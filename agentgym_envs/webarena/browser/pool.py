"""The browsers of this process: one Chromium for all episodes of a kind, each in a context of its own."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentgym_envs.errors import EnvError
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.chromium import check_packages, find_chromium, launch_options
from agentgym_envs.webarena.browser.hosts import HostRules

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

LAUNCH_SECONDS = 60.0
CONTEXT_SECONDS = 20.0
"""To make one and to close one, which takes milliseconds unless the browser or its driver hangs."""
CLOSE_SECONDS = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrowserOptions:
    """What decides which browser an episode gets.

    `chromium`: the program, by default the first that is found. `hosts`: what may be reached. `recycle_after`: after
    so many episodes a browser gets no more, and another is started; memory that Chromium leaks goes with it.
    `idle_seconds`: how long a browser waits for the next episode when none runs.
    """

    chromium: str | None = None
    hosts: HostRules = field(default_factory=HostRules)
    recycle_after: int = 500
    idle_seconds: float = 10.0


class _NoContext(EnvError):
    """A browser that runs, or seemed to, gave no context."""


class Chromium:
    """One running browser. `episodes` run in it now; it takes no more once it is `retired`."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.episodes, self.served, self.retired = 0, 0, False
        browser.on("disconnected", lambda _: self._end())

    async def close(self) -> None:
        """End it, also if it does not answer."""
        self.retired = True
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.browser.close()

    def _end(self) -> None:
        self.retired = True


class BrowserPool:
    """Gives contexts out. Everything in it happens on the browsers' loop.

    A browser that ends is replaced when the next episode begins; episodes in it fail.
    """

    def __init__(self, options: BrowserOptions) -> None:
        self.options = options
        self._running: Chromium | None = None
        self._all: set[Chromium] = set()
        self._launching = asyncio.Lock()
        self._closing: asyncio.TimerHandle | None = None

    async def warm(self) -> None:
        """Start the browser, if none runs. Raises UsageError without a Chromium, EnvError if it does not start."""
        await self._browser()

    async def enter(self, **arguments: Any) -> tuple[Chromium, BrowserContext]:
        """A fresh context, made with Playwright's arguments, and the browser that it is in. Raises EnvError."""
        try:
            return await self._enter(arguments)
        except _NoContext:
            _log.warning("a browser gave no context; trying once more with another")
            return await self._enter(arguments)

    async def _enter(self, arguments: dict[str, Any]) -> tuple[Chromium, BrowserContext]:
        chromium = await self._browser()
        chromium.episodes += 1
        chromium.served += 1
        chromium.retired = chromium.retired or chromium.served >= self.options.recycle_after
        made = asyncio.ensure_future(chromium.browser.new_context(**arguments))
        try:
            async with asyncio.timeout(CONTEXT_SECONDS):
                return chromium, await asyncio.shield(made)
        except BaseException as error:
            chromium.retired = chromium.retired or isinstance(error, Exception)
            made.add_done_callback(_close_late)
            await self.leave(chromium, None)
            if isinstance(error, Exception):
                raise _NoContext(f"the browser gave no context: {_why(error)}") from error
            raise

    async def leave(self, chromium: Chromium, context: BrowserContext | None) -> None:
        """Close a context. A retired browser ends with its last one.

        A page can keep Playwright's driver so busy that it answers nobody any more: it is ended then, with all
        browsers, since new episodes would wait for it, too.
        """
        if context is not None:
            try:
                async with asyncio.timeout(CONTEXT_SECONDS):
                    await context.close()
            except TimeoutError:
                _log.warning("a context does not close within %s s; every browser is replaced", CONTEXT_SECONDS)
                await _engine.stop()
            except Exception as error:  # it is gone already
                _log.debug("a context was lost: %s", error)
        chromium.episodes -= 1
        if chromium.retired and chromium.episodes == 0:
            self._all.discard(chromium)
            await chromium.close()
        self._rest()

    async def close(self) -> None:
        """End every browser of the pool."""
        browsers, self._running = self._all, None
        self._all = set()
        await asyncio.gather(*(chromium.close() for chromium in browsers))

    async def _browser(self) -> Chromium:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        async with self._launching:
            if self._running is None or self._running.retired:
                self._running = Chromium(await _engine.launch(self.options))
                self._all.add(self._running)
            return self._running

    def _rest(self) -> None:
        """End the browser a while after its last episode."""
        if self._running is not None and self._running.episodes == 0 and self._closing is None:
            later = asyncio.get_running_loop().call_later
            self._closing = later(self.options.idle_seconds, lambda: asyncio.ensure_future(self._close_idle()))

    async def _close_idle(self) -> None:
        self._closing = None
        if self._running is not None and self._running.episodes == 0:
            await self.close()
            await _engine.rest()


class _Engine:
    """Playwright's driver and the pools, by their options. Belongs to the browsers' loop."""

    def __init__(self) -> None:
        self.pools: dict[BrowserOptions, BrowserPool] = {}
        self._driver: Playwright | None = None
        self._manager: Any = None
        self._starting: asyncio.Lock | None = None

    async def launch(self, options: BrowserOptions) -> Browser:
        for attempt in (1, 2):
            driver = await self._get_driver()
            program = find_chromium(options.chromium, driver.chromium.executable_path)
            try:
                async with asyncio.timeout(LAUNCH_SECONDS):
                    return await driver.chromium.launch(**launch_options(program, options.hosts))
            except Exception as error:
                if attempt == 2:
                    raise EnvError(f"Chromium ({program}) does not start: {_why(error)}") from None
                _log.warning("Chromium did not start; trying once more with a new driver")
                _log.debug("why Chromium did not start: %s", error)
                await self.stop()
        raise AssertionError

    async def _get_driver(self) -> Playwright:
        check_packages()
        from playwright.async_api import async_playwright

        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._driver is None:
                self._manager = async_playwright()
                self._driver = await self._manager.start()
            return self._driver

    async def stop(self) -> None:
        """End all browsers, and the driver."""
        for pool in list(self.pools.values()):
            await pool.close()
        driver, self._driver = self._driver, None
        if driver is not None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await driver.stop()
            except Exception:
                _kill(self._manager, driver)

    async def rest(self) -> None:
        """End the driver if no pool has a browser."""
        if not any(pool._all for pool in self.pools.values()):
            await self.stop()


def _close_late(made: asyncio.Future[BrowserContext]) -> None:
    """Close a context that nobody waits for any more, should it come."""
    if not made.cancelled() and made.exception() is None:
        closing = asyncio.ensure_future(made.result().close())
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())


def _kill(manager: Any, driver: Any) -> None:
    """End a driver that does not answer; browsers end when their pipe to it breaks.

    Playwright has no word for it, and its versions keep the process in different places.
    """
    owners = getattr(manager, "_client", None), getattr(driver._impl_obj, "_connection", None)
    found = [getattr(getattr(owner, "_transport", None), "_proc", None) for owner in owners]
    for process in filter(None, found):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if not any(found):
        _log.warning("a driver that does not answer could not be ended")


def _why(error: Exception) -> str:
    """The first line of what Playwright tells, and what the program itself wrote."""
    first, *rest = str(error).splitlines() or [type(error).__name__]
    said = [line.partition("[err]")[2].strip() for line in rest if "[err]" in line]
    return " | ".join([first, *said[:3]])[:1000]


def pool_for(options: BrowserOptions) -> BrowserPool:
    """The pool of this process for these options. To be called on the browsers' loop."""
    if options not in _engine.pools:
        _engine.pools[options] = BrowserPool(options)
    return _engine.pools[options]


def shut_down(seconds: float = 10.0) -> None:
    """End every browser of this process. Episodes that still run end as `env_error`."""
    if _engine.pools:
        with contextlib.suppress(Exception):
            loop.wait_for(_engine.stop(), seconds)


def _leave_to_parent() -> None:
    """In the child of a fork, which has none of the parent's browsers."""
    global _engine
    _engine = _Engine()


_engine = _Engine()
atexit.register(shut_down)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
