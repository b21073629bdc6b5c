"""The browsers of this process: one Chromium per set of options; each episode has its own context in it."""

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
from agentgym_envs.webarena.browser.spare import SpareSession

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

LAUNCH_SECONDS = 60.0
CONTEXT_SECONDS = 20.0
"""The longest time to open or to close a context; it takes milliseconds unless the browser or its driver hangs."""
CLOSE_SECONDS = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrowserOptions:
    """Options of a browser. Episodes with equal options share one browser.

    Attributes:
        chromium: path of the program; by default the first one found.
        hosts: the hosts that may be reached.
        recycle_after: the number of episodes after which a new browser replaces it, since Chromium leaks memory.
        idle_seconds: how long an unused browser keeps running.
        small_heap: collect garbage early. After 64 pages of 400 elements a context takes a quarter of the memory, at
            the same CPU time; scripts that allocate a lot take several times as long. For sites with little script.
    """

    chromium: str | None = None
    hosts: HostRules = field(default_factory=HostRules)
    recycle_after: int = 500
    idle_seconds: float = 10.0
    small_heap: bool = False


class _NoContext(EnvError):
    """Raised when a running browser opens no context."""


class Chromium:
    """One running browser. It accepts no more contexts once it is `retired`.

    `episodes` are the contexts in use; `spares` are those that are prepared for a later episode.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.episodes, self.spares, self.served, self.retired = 0, 0, 0, False
        browser.on("disconnected", lambda _: self._retire())

    async def close(self) -> None:
        """Close the browser, even if it does not answer."""
        self.retired = True
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.browser.close()

    def _retire(self) -> None:
        self.retired = True


class BrowserPool:
    """Opens contexts in a shared browser. Used only on the event loop of the browsers.

    If the browser crashes, its episodes fail, and the next episode starts another browser.
    """

    def __init__(self, options: BrowserOptions) -> None:
        self.options = options
        self.spare = SpareSession()
        self._running: Chromium | None = None
        self._all: set[Chromium] = set()
        self._launching = asyncio.Lock()
        self._closing: asyncio.TimerHandle | None = None

    async def warm(self) -> None:
        """Start the browser unless it runs. Raises UsageError without a Chromium, EnvError if it does not start."""
        await self._browser()

    async def new_context(self, **arguments: Any) -> tuple[Chromium, BrowserContext]:
        """Open a context with Playwright's arguments; returns its browser as well. Raises EnvError."""
        try:
            return await self._new_context(arguments)
        except _NoContext:
            _log.warning("a browser opened no context; retrying with another one")
            return await self._new_context(arguments)

    async def _new_context(self, arguments: dict[str, Any]) -> tuple[Chromium, BrowserContext]:
        chromium = await self._browser()
        chromium.episodes += 1
        chromium.served += 1
        chromium.retired = chromium.retired or chromium.served >= self.options.recycle_after
        opening = asyncio.ensure_future(chromium.browser.new_context(**arguments))
        try:
            async with asyncio.timeout(CONTEXT_SECONDS):
                return chromium, await asyncio.shield(opening)
        except BaseException as error:
            chromium.retired = chromium.retired or isinstance(error, Exception)
            opening.add_done_callback(_close_late)
            await self.release(chromium, None)
            if isinstance(error, Exception):
                raise _NoContext(f"the browser opened no context: {_summary(error)}") from error
            raise

    async def release(self, chromium: Chromium, context: BrowserContext | None, *, spare: bool = False) -> None:
        """Close a context, and a retired browser with its last context.

        If the context does not close, a page has blocked Playwright's driver. All browsers and the driver are then
        stopped, because new episodes would wait for it as well.
        """
        if context is not None:
            try:
                async with asyncio.timeout(CONTEXT_SECONDS):
                    await context.close()
            except TimeoutError:
                _log.warning("a context did not close within %s s; all browsers are replaced", CONTEXT_SECONDS)
                await _engine.stop()
            except Exception as error:  # the context is closed already
                _log.debug("a context was lost: %s", error)
        chromium.spares -= spare
        chromium.episodes -= not spare
        if not any(one.episodes for one in self._all):
            self.spare.drop()
        if chromium.retired and chromium.episodes == chromium.spares == 0:
            self._all.discard(chromium)
            await chromium.close()
        self._close_when_idle()

    async def close(self) -> None:
        """Close every browser of the pool."""
        self.spare.forget()
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

    def _close_when_idle(self) -> None:
        """Schedule the end of a browser without episodes."""
        if self._running is not None and self._running.episodes == 0 and self._closing is None:
            later = asyncio.get_running_loop().call_later
            self._closing = later(self.options.idle_seconds, lambda: asyncio.ensure_future(self._close_idle()))

    async def _close_idle(self) -> None:
        self._closing = None
        if self._running is not None and self._running.episodes == 0:
            await self.close()
            await _engine.stop_if_idle()


class _Engine:
    """Playwright's driver and the pools by their options. Used only on the event loop of the browsers."""

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
                    return await driver.chromium.launch(
                        **launch_options(program, options.hosts, small_heap=options.small_heap)
                    )
            except Exception as error:
                if attempt == 2:
                    raise EnvError(f"Chromium ({program}) does not start: {_summary(error)}") from None
                _log.warning("Chromium did not start; retrying with a new driver")
                _log.debug("Chromium's error: %s", error)
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
        """Stop all browsers and the driver."""
        for pool in list(self.pools.values()):
            await pool.close()
        driver, self._driver = self._driver, None
        if driver is not None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await driver.stop()
            except Exception:
                _kill(self._manager, driver)

    async def stop_if_idle(self) -> None:
        """Stop the driver if no pool has a browser."""
        if not any(pool._all for pool in self.pools.values()):
            await self.stop()


def _close_late(opening: asyncio.Future[BrowserContext]) -> None:
    """Close a context that opened after its timeout."""
    if not opening.cancelled() and opening.exception() is None:
        closing = asyncio.ensure_future(opening.result().close())
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())


def _kill(manager: Any, driver: Any) -> None:
    """Kill a driver that does not answer; browsers exit when their pipe to it breaks.

    Playwright has no public function for this, and the attribute that holds the process differs between versions.
    """
    owners = getattr(manager, "_client", None), getattr(driver._impl_obj, "_connection", None)
    processes = [getattr(getattr(owner, "_transport", None), "_proc", None) for owner in owners]
    for process in filter(None, processes):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if not any(processes):
        _log.warning("a driver that does not answer could not be killed")


def _summary(error: Exception) -> str:
    """The first line of Playwright's message, and up to three lines of Chromium's own error output."""
    first, *rest = str(error).splitlines() or [type(error).__name__]
    errors = [line.partition("[err]")[2].strip() for line in rest if "[err]" in line]
    return " | ".join([first, *errors[:3]])[:1000]


def pool_for(options: BrowserOptions) -> BrowserPool:
    """The pool of this process for these options. Call it on the event loop of the browsers."""
    if options not in _engine.pools:
        _engine.pools[options] = BrowserPool(options)
    return _engine.pools[options]


def shut_down(seconds: float = 10.0) -> None:
    """Close every browser of this process. Running episodes end as `env_error`."""
    if _engine.pools:
        with contextlib.suppress(Exception):
            loop.run(_engine.stop(), seconds)


def _forget_after_fork() -> None:
    """Forget the parent's browsers in a forked child."""
    global _engine
    _engine = _Engine()


_engine = _Engine()
atexit.register(shut_down)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
