"""The browser context of one episode, with its tabs, windows and dialogs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_envs.errors import EnvError, InvalidAction, UsageError
from agentgym_envs.webarena.browser.backends import Backend
from agentgym_envs.webarena.browser.hosts import BLANK
from agentgym_envs.webarena.browser.pool import BrowserOptions, BrowserPool, Chromium, pool_for
from agentgym_envs.webarena.browser.recording import RequestRecorder
from agentgym_envs.webarena.browser.scripts import page_source
from agentgym_envs.webarena.browser.tab import ContextLost, ImageFormat, ScriptFailed, SettleTimeouts, Tab
from agentgym_envs.webarena.browser.view import PageView, ViewOptions

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Page, Request

MAX_TABS = 10
_WINDOW_SECONDS = 0.3
"""Wait this long for a new window before asking Chromium whether one is on its way."""
_MAX_DIALOG = 300
_FIRST = asyncio.FIRST_COMPLETED
_EXPECTED = EnvError | OSError | TimeoutError | ContextLost | ScriptFailed
_log = logging.getLogger(__name__)
_T = TypeVar("_T")
WarmUp = Callable[["BrowserSession"], Awaitable[None]]
"""Shows a page in a session that no episode uses yet."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of an episode's browser context.

    Attributes:
        browser: the browser to use and the hosts it may reach.
        view: options of observations.
        timeouts: how long to wait for a page to settle.
        call_seconds: the longest time of one call.
        size: width and height of the window, in pixels.
        headers: HTTP headers sent with every request.
        storage_state: Playwright's storage state, for example the cookies of a login.
        record: whether to record the browser's requests.
    """

    browser: BrowserOptions = field(default_factory=BrowserOptions)
    view: ViewOptions = field(default_factory=ViewOptions)
    timeouts: SettleTimeouts = field(default_factory=SettleTimeouts)
    call_seconds: float = 30.0
    size: tuple[int, int] = (1280, 720)
    headers: Mapping[str, str] = field(default_factory=dict)
    storage_state: Any = None
    record: bool = False

    @property
    def context_kind(self) -> Any:
        """The options on which a context depends. A prepared one can be used for options with an equal value."""
        return self.size, dict(self.headers), self.storage_state


class BrowserSession:
    """A browser context with its tabs, used only on the event loop of the browsers.

    A call that fails raises EnvError and breaks the session, except for the agent's own mistakes (InvalidAction).
    """

    def __init__(
        self, options: SessionOptions, backend: Backend, pool: BrowserPool, chromium: Chromium, context: BrowserContext
    ) -> None:
        self.options, self.backend, self.context = options, backend, context
        self._pool, self._chromium = pool, chromium
        self.tabs: list[Tab] = []
        self.tab: Tab
        """The agent's current tab."""
        self.view = PageView("", "", "", 0)
        """The last observation."""
        self.picture: bytes | None = None
        """The last screenshot that the environment took for its agent or its record."""
        self.observed_tab: Tab | None = None
        """The tab of the last observation, to which element ids refer."""
        self.state: dict[str, Any] = {}
        """State that an environment stores for this episode."""
        self.on_close: list[Callable[[], None]] = []
        """Functions to call when the session closes."""
        self.notes: list[str] = []
        """Messages for the agent about events of the current action, such as dialogs."""
        self.settled = True
        """True if the page settled in time after the last action."""
        self.clipboard = ""
        """The text that was copied last in this episode; the browser's clipboard belongs to all episodes."""
        self.navigation_error = ""
        """Chromium's error for the last page that failed to load."""
        self.requests = RequestRecorder(context) if options.record else None
        self.is_spare = False
        """True while no episode uses the session."""
        self._own_pages: set[Page] = set()  # opened by this session, not by a page
        self._new_page_lock = asyncio.Lock()
        self._new_window_lock = asyncio.Lock()
        self._windows_opened = 0  # by pages
        self._requested_by_closed_tabs = 0
        self._window_opened = asyncio.Event()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed = False
        self._listen()

    @classmethod
    async def open(cls, options: SessionOptions, backend: Backend) -> BrowserSession:
        """Open a session with one empty tab. Raises EnvError, and UsageError without a Chromium."""
        spare = pool_for(options.browser).spare.take(options.context_kind)
        return await cls._open(options, backend) if spare is None else spare._begin(options, backend)

    def prepare_next(self, warm_up: WarmUp) -> None:
        """Have a session for the next episode prepared while this one is played.

        `warm_up` shows a page like the next episode's first one, so that the renderer process and the sites' files are
        in memory. Then the tab is emptied. It is not called for a backend whose ids depend on earlier pages.
        """
        shown = warm_up if self.backend.counts_ids else show_nothing
        make = partial(self._open_spare, self.options, self.backend, shown)
        self._pool.spare.request(self.options.context_kind, make)

    @classmethod
    async def _open(cls, options: SessionOptions, backend: Backend, *, spare: bool = False) -> BrowserSession:
        pool = pool_for(options.browser)
        width, height = options.size
        chromium, context = await pool.new_context(
            viewport={"width": width, "height": height},
            extra_http_headers=dict(options.headers),
            storage_state=options.storage_state,
            accept_downloads=False,
            service_workers="block",
            permissions=[],
            reduced_motion="reduce",
            locale="en-US",
            timezone_id="UTC",
        )
        session = cls(options, backend, pool, chromium, context)
        session._set_spare(spare)
        try:
            await session.guarded(session._prepare())
        except BaseException:
            await session.close()
            raise
        return session

    @classmethod
    async def _open_spare(cls, options: SessionOptions, backend: Backend, warm_up: WarmUp) -> BrowserSession:
        session = await cls._open(replace(options, record=False), backend, spare=True)
        try:
            await warm_up(session)
            await session.guarded(session._empty())
            if session._chromium.episodes == 0:
                raise EnvError("the last episode has ended")
        except BaseException:
            await session.close()
            raise
        return session

    async def _empty(self) -> None:
        """Leave the page of the warm-up, and remove all traces of it but the cached files."""
        [tab] = self.tabs
        if tab.url == BLANK:
            return
        await self.context.set_extra_http_headers(dict(self.options.headers))
        origin = "/".join(tab.url.split("/")[:3])
        await tab.run("() => sessionStorage.clear()")
        await tab.page.goto(BLANK)
        await tab.send("Page.resetNavigationHistory")
        await tab.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})

    def _begin(self, options: SessionOptions, backend: Backend) -> BrowserSession:
        """Use this spare session for an episode."""
        self._set_spare(False)
        self.options, self.backend = options, backend
        self.requests = RequestRecorder(self.context) if options.record else None
        self.view, self.observed_tab, self.tab.title = PageView("", "", "", 0), None, ""
        self.notes, self.state, self.settled, self.navigation_error = [], {}, True, ""
        return self

    def _set_spare(self, spare: bool) -> None:
        """Count the context as one in use or as a spare one."""
        change = spare - self.is_spare
        self.is_spare = spare
        self._chromium.spares += change
        self._chromium.episodes -= change

    @property
    def usable(self) -> bool:
        """False once the session is broken, or its browser takes no more episodes."""
        return not (self._broken.done() or self._chromium.retired)

    @property
    def url(self) -> str:
        """The URL of the current tab."""
        return self.tab.url

    async def observe(self) -> PageView:
        """Observe the current page and store the result as `view`. Raises EnvError."""
        self.view = await self.guarded(self.backend.observe(self.tab, self.options.view))
        self.observed_tab, self.tab.title = self.tab, self.view.title
        return self.view

    async def evaluate(self, expression: str) -> Any:
        """Evaluate a JavaScript expression in the page's own world; the result is JSON. Raises EnvError."""
        return await self.guarded(self.tab.page.evaluate(expression))

    async def screenshot(self, image_format: ImageFormat = "png") -> bytes:
        """An image of the window. Raises EnvError."""
        return await self.guarded(self.tab.screenshot(image_format))

    async def read(self, url: str | None, script: str = "") -> str:
        """Read a page for an evaluator; see `evaluators.base.ReadPage`."""
        return await self.guarded(self._read(url, script))

    async def har(self) -> list[dict[str, Any]]:
        """The recorded requests as HTTP Archive entries; empty unless `record` is set. Raises EnvError."""
        return [] if self.requests is None else await self.guarded(self.requests.har())

    async def close(self) -> None:
        """Close the context. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.fail("the session was closed")
        self._chromium.browser.remove_listener("disconnected", self._on_disconnect)
        for call in self.on_close:
            call()
        await self._pool.release(self._chromium, self.context, spare=self.is_spare)

    async def guarded(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Await `work` until it finishes, the session breaks or the time is up. Raises EnvError for any failure."""
        with self._pool.spare.call():
            return await self._guarded(work)

    async def _guarded(self, work: Coroutine[Any, Any, _T]) -> _T:
        from playwright.async_api import Error

        task = asyncio.ensure_future(work)
        try:
            either: set[asyncio.Future[Any]] = {task, self._broken}
            await asyncio.wait(either, timeout=self.options.call_seconds, return_when=_FIRST)
            if not task.done():
                self.fail(f"the page did not answer within {self.options.call_seconds:g} s")
                self._broken.result()
            return task.result()
        except (InvalidAction, UsageError):
            raise
        except Exception as error:
            if not isinstance(error, _EXPECTED | Error):
                _log.exception("a browser call failed unexpectedly")
            self.fail(_message(error))
            raise EnvError(str(self._broken.exception())) from error
        finally:
            task.cancel()

    def fail(self, why: str) -> None:
        """Break the session: every later call raises EnvError with the first reason given."""
        if not self._broken.done():
            self._broken.set_exception(EnvError(why))
            self._broken.exception()  # marked as retrieved, since no call may be waiting for it

    async def settle(self) -> None:
        """Wait until the current page, or a window that it opened, has settled."""
        while True:
            await self._settle_tab()
            settled = self.tab
            await self._wait_for_windows()
            if self.tab is settled:
                return

    async def _wait_for_windows(self) -> None:
        """Wait for the windows that pages requested; a window appears when its first page answers."""
        requested = self._windows_requested()
        try:
            async with asyncio.timeout(self.options.timeouts.load):
                while self._windows_opened < requested and await self._next_window():
                    pass
        except TimeoutError:
            self.settled = False
        self._windows_opened = requested

    async def _next_window(self) -> bool:
        """Wait for a window; False if none is on its way, for example because it was closed immediately."""
        self._window_opened.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WINDOW_SECONDS):
                await self._window_opened.wait()
        if self._window_opened.is_set():
            return True
        known = {tab.page for tab in self.tabs} | self._own_pages
        return await self.tab.count_windows() > sum(not page.is_closed() for page in known)

    def _windows_requested(self) -> int:
        return self._requested_by_closed_tabs + sum(tab.windows_requested for tab in self.tabs)

    async def _settle_tab(self) -> None:
        """Settle the current tab. If its page closes itself, settle the next tab, or a new one."""
        while True:
            tab = self.tab
            try:
                self.settled = await tab.settle(self.options.timeouts)
                return
            except Exception:
                if not tab.page.is_closed():
                    raise
            self._remove(tab)
            if not self.tabs:
                await self.add_tab()

    async def add_tab(self) -> None:
        """Open an empty tab and switch to it. Raises InvalidAction if there are too many."""
        if len(self.tabs) >= MAX_TABS:
            raise InvalidAction(f"There are {MAX_TABS} tabs already. Close one first.")
        await self._add_page(await self._new_page(), focus=True)

    async def _prepare(self) -> None:
        await self.context.add_init_script(page_source())
        await self.add_tab()

    async def _new_page(self) -> Page:
        async with self._new_page_lock:
            page = await self.context.new_page()
            self._own_pages.add(page)
            return page

    async def _add_page(self, page: Page, *, focus: bool) -> None:
        tab = await Tab.attach(page)
        tab.on_copy = self._copied
        page.on("download", lambda _: self.notes.append("A download was refused; there are none here."))
        page.on("crash", lambda _: self.fail("the page crashed"))
        page.on("close", lambda _: self._remove(tab))
        self.tabs.append(tab)
        if focus:
            self.tab = tab

    def _copied(self, text: str) -> None:
        self.clipboard = text

    def _remove(self, tab: Tab) -> None:
        """Remove a tab that the agent or its page closed."""
        if tab not in self.tabs:
            return
        index = self.tabs.index(tab)
        self._requested_by_closed_tabs += tab.windows_requested
        self.tabs.remove(tab)
        if tab is self.tab and self.tabs:
            self.tab = self.tabs[max(0, index - 1)]

    def _listen(self) -> None:
        self.context.on("page", self._on_page)
        self.context.on("dialog", self._on_dialog)
        self.context.on("requestfailed", self._on_request_failed)
        self._chromium.browser.on("disconnected", self._on_disconnect)

    def _on_disconnect(self, _: object) -> None:
        self.fail("the browser ended")

    def _on_request_failed(self, request: Request) -> None:
        if request.is_navigation_request() and _is_top_level(request):
            self.navigation_error = request.failure or ""

    async def _on_page(self, page: Page) -> None:
        """Turn a window that a page opened into a tab."""
        async with self._new_page_lock:
            if page in self._own_pages:
                return
        try:
            async with self._new_window_lock:
                await self._add_window(page)
        except Exception as error:  # the window may be closed already; a browser crash fails other calls
            _log.debug("a new window was lost: %s", error)
        finally:
            self._windows_opened += 1
            self._window_opened.set()

    async def _add_window(self, page: Page) -> None:
        if len(self.tabs) >= MAX_TABS:
            self.notes.append(f"A new window was closed at once, since there are {MAX_TABS} tabs already.")
            await page.close()
            return
        expected = self._windows_opened < self._windows_requested()
        await self._add_page(page, focus=expected)  # an unexpected window does not take the focus from the agent

    async def _on_dialog(self, dialog: Dialog) -> None:
        """Answer a dialog: accept an alert and the leaving of a page, and decline any other question."""
        agreed = dialog.type in ("alert", "beforeunload")
        if dialog.type != "beforeunload":
            done = "was acknowledged" if agreed else "was declined"
            self.notes.append(f"A dialog said {dialog.message[:_MAX_DIALOG]!r} and {done}.")
        with contextlib.suppress(Exception):
            await (dialog.accept() if agreed else dialog.dismiss())

    async def _read(self, url: str | None, script: str) -> str:
        if url is None:
            return await _evaluate(self.tab.page, script)
        page = await self._new_page()
        try:
            tab = await Tab.attach(page)  # before the navigation, so that it counts the requests
            target = self.options.browser.hosts.check(url)
            await page.goto(target, wait_until="load", timeout=1e3 * self.options.timeouts.load)
            await tab.settle(self.options.timeouts)
            return await _evaluate(page, script)
        finally:
            await page.close()


async def show_nothing(session: BrowserSession) -> None:
    """Leave the tab of a session empty; see `BrowserSession.prepare_next`."""


async def _evaluate(page: Page, script: str) -> str:
    """Evaluate an expression to text; "" if it raises, for example because its element does not exist."""
    from playwright.async_api import Error

    if not script:
        return await page.content()
    try:
        value = await page.evaluate(f"() => String({script})")
    except Error:
        return ""
    return str(value)


def _is_top_level(request: Request) -> bool:
    """Return True for the document of a page, False for one in a frame."""
    from playwright.async_api import Error

    try:
        return request.frame.parent_frame is None
    except Error:  # a window without a page yet
        return True


def _message(error: Exception) -> str:
    """The error's message without Playwright's call log."""
    return str(error).partition("Call log:")[0].strip()[:1000] or type(error).__name__
