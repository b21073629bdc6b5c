"""One episode in the browser: a context of its own with its tabs, and what happens in it unasked."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_envs.errors import EnvError, InvalidAction, UsageError
from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.browser import execute
from agentgym_envs.webarena.browser.backends import Backend
from agentgym_envs.webarena.browser.pool import BrowserOptions, BrowserPool, Chromium, pool_for
from agentgym_envs.webarena.browser.recording import Requests
from agentgym_envs.webarena.browser.scripts import page_source
from agentgym_envs.webarena.browser.tab import ContextLost, Patience, ScriptFailed, Tab
from agentgym_envs.webarena.browser.view import View, ViewOptions

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Page, Request

MOST_TABS = 10
_WINDOW_SECONDS = 0.3
"""After so long without a window it is asked whether one is on its way."""
_MOST_DIALOG, _MOST_NOTES = 300, 5
_FIRST = asyncio.FIRST_COMPLETED
_EXPECTED = EnvError | OSError | TimeoutError | ContextLost | ScriptFailed
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How an episode's browser is set up.

    `call_seconds` is the most that one call may take; `size` the window in pixels; `headers` go with every request;
    `storage_state` is Playwright's, with cookies of a login; `record` keeps what the browser asks for.
    """

    browser: BrowserOptions = field(default_factory=BrowserOptions)
    view: ViewOptions = field(default_factory=ViewOptions)
    patience: Patience = field(default_factory=Patience)
    call_seconds: float = 30.0
    size: tuple[int, int] = (1280, 720)
    headers: Mapping[str, str] = field(default_factory=dict)
    storage_state: Any = None
    record: bool = False


class Session:
    """A browser context with its tabs. Everything in it happens on the browsers' loop.

    Whatever fails in a call but the agent's own mistakes raises EnvError, and the session is broken then.
    """

    def __init__(
        self, options: SessionOptions, backend: Backend, pool: BrowserPool, chromium: Chromium, context: BrowserContext
    ) -> None:
        self.options, self.backend, self.context = options, backend, context
        self._pool, self._chromium = pool, chromium
        self.tabs: list[Tab] = []
        self.tab: Tab
        """The one that the agent is on."""
        self.view = View("", "", "", 0)
        """What was seen last."""
        self.seen: Tab | None = None
        """Where it was seen: ids are of that tab."""
        self.kept: dict[str, Any] = {}
        """What an environment keeps of this episode."""
        self.at_close: list[Callable[[], None]] = []
        """What to call when the session closes."""
        self.notes: list[str] = []
        """What happened unasked since the last look."""
        self.settled = True
        """Whether the page had come to rest when it was last waited for."""
        self.failure = ""
        """Why the last page that did not come did not."""
        self.requests = Requests(context) if options.record else None
        self._own: set[Page] = set()  # those that no page opened
        self._making = asyncio.Lock()
        self._taking = asyncio.Lock()
        self._windows, self._asked_by_gone = 0, 0  # that pages opened; that closed tabs asked for
        self._window_came = asyncio.Event()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed = False
        self._listen()

    @classmethod
    async def open(cls, options: SessionOptions, backend: Backend) -> Session:
        """A session with one empty tab. Raises EnvError, and UsageError without a Chromium."""
        pool = pool_for(options.browser)
        width, height = options.size
        chromium, context = await pool.enter(
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
        try:
            await session.guarded(session._prepare())
        except BaseException:
            await session.close()
            raise
        return session

    @property
    def url(self) -> str:
        """The address of the page that the agent is on."""
        return self.tab.url

    async def goto(self, url: str) -> None:
        """Go to a page and wait until it has come to rest. Raises EnvError, InvalidAction if it may not be visited."""
        await self.guarded(execute.goto(self, url))

    async def act(self, action: Action) -> str:
        """Carry out an action and wait for what comes of it; returns what the agent should know besides.

        Raises InvalidAction and EnvError.
        """
        self.notes = []
        await self.guarded(execute.act(self, action))
        notes = list(dict.fromkeys(self.notes))
        more = [f"And {len(notes) - _MOST_NOTES} more such notes."] if len(notes) > _MOST_NOTES else []
        return " ".join([*notes[:_MOST_NOTES], *more])

    async def look(self) -> View:
        """What is on the page now; kept as `view`. Raises EnvError."""
        self.view = await self.guarded(self.backend.observe(self.tab, self.options.view))
        self.seen, self.tab.title = self.tab, self.view.title
        return self.view

    async def evaluate(self, expression: str) -> Any:
        """What a JavaScript expression is worth in the page's own world (JSON). Raises EnvError."""
        return await self.guarded(self.tab.page.evaluate(expression))

    async def screenshot(self) -> bytes:
        """The window as a PNG. Raises EnvError."""
        return await self.guarded(self.tab.page.screenshot())

    async def read(self, url: str | None, script: str = "") -> str:
        """See `evaluators.base.Reader`."""
        return await self.guarded(self._read(url, script))

    async def har(self) -> list[dict[str, Any]]:
        """The requests so far as entries of the HTTP Archive format; none unless they are recorded. Raises EnvError."""
        return [] if self.requests is None else await self.guarded(self.requests.har())

    async def close(self) -> None:
        """Free everything; twice is fine."""
        if self._closed:
            return
        self._closed = True
        self.fail("the session was closed")
        self._chromium.browser.remove_listener("disconnected", self._on_disconnect)
        for call in self.at_close:
            call()
        await self._pool.leave(self._chromium, self.context)

    async def guarded(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do `work` until it is done, the session breaks or the time is up. Raises EnvError for all that fails."""
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
                _log.exception("a call of the browser failed in a way that it should not")
            self.fail(_in_short(error))
            raise EnvError(str(self._broken.exception())) from error
        finally:
            task.cancel()

    def fail(self, why: str) -> None:
        """Break the session: every call from now on raises EnvError with the first reason that was given."""
        if not self._broken.done():
            self._broken.set_exception(EnvError(why))
            self._broken.exception()  # nobody need wait for it

    async def settle(self) -> None:
        """Wait until the page that is shown has come to rest, which may be in a window that it opened."""
        while True:
            await self._settle_tab()
            settled = self.tab
            await self._await_windows()
            if self.tab is settled:
                return

    async def _await_windows(self) -> None:
        """Wait for the windows that were asked for; they are not there before their first page answers."""
        asked = self._windows_asked()
        try:
            async with asyncio.timeout(self.options.patience.load):
                while self._windows < asked and await self._window_comes():
                    pass
        except TimeoutError:
            self.settled = False
        self._windows = asked

    async def _window_comes(self) -> bool:
        """Wait for a window; False if none is on its way, since it was closed at once, say."""
        self._window_came.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WINDOW_SECONDS):
                await self._window_came.wait()
        if self._window_came.is_set():
            return True
        known = {tab.page for tab in self.tabs} | self._own
        return await self.tab.count_windows() > sum(not page.is_closed() for page in known)

    def _windows_asked(self) -> int:
        return self._asked_by_gone + sum(tab.windows_asked for tab in self.tabs)

    async def _settle_tab(self) -> None:
        """Of a page that closes itself, the next tab is waited for; there is always one."""
        while True:
            tab = self.tab
            try:
                self.settled = await tab.settle(self.options.patience)
                return
            except Exception:
                if not tab.page.is_closed():
                    raise
            self._forget(tab)
            self.notes.append("The page closed itself.")
            if not self.tabs:
                await self.add_tab()

    async def add_tab(self) -> None:
        """Open an empty tab and go to it. Raises InvalidAction if there are too many."""
        if len(self.tabs) >= MOST_TABS:
            raise InvalidAction(f"There are {MOST_TABS} tabs already. Close one first.")
        await self._adopt(await self._own_page(), focus=True)

    async def _prepare(self) -> None:
        await self.context.add_init_script(page_source())
        await self.add_tab()

    async def _own_page(self) -> Page:
        async with self._making:
            page = await self.context.new_page()
            self._own.add(page)
            return page

    async def _adopt(self, page: Page, *, focus: bool) -> None:
        tab = await Tab.attach(page)
        page.on("download", lambda _: self.notes.append("A download was refused; there are none here."))
        page.on("crash", lambda _: self.fail("the page crashed"))
        page.on("close", lambda _: self._forget(tab))
        self.tabs.append(tab)
        if focus:
            self.tab = tab

    def _forget(self, tab: Tab) -> None:
        """A tab was closed, by the agent or by its page."""
        if tab not in self.tabs:
            return
        place = self.tabs.index(tab)
        self._asked_by_gone += tab.windows_asked
        self.tabs.remove(tab)
        if tab is self.tab and self.tabs:
            self.tab = self.tabs[max(0, place - 1)]

    def _listen(self) -> None:
        self.context.on("page", self._on_page)
        self.context.on("dialog", self._on_dialog)
        self.context.on("requestfailed", self._on_failure)
        self._chromium.browser.on("disconnected", self._on_disconnect)

    def _on_disconnect(self, _: object) -> None:
        self.fail("the browser ended")

    def _on_failure(self, request: Request) -> None:
        if request.is_navigation_request() and _of_page(request):
            self.failure = request.failure or ""

    async def _on_page(self, page: Page) -> None:
        """A window that a page opened becomes a tab."""
        async with self._making:
            if page in self._own:
                return
        try:
            async with self._taking:
                await self._take_window(page)
        except Exception as error:  # it may be gone already; if the browser is, other calls fail of that
            _log.debug("a new window was lost: %s", error)
        finally:
            self._windows += 1
            self._window_came.set()

    async def _take_window(self, page: Page) -> None:
        if len(self.tabs) >= MOST_TABS:
            self.notes.append(f"A new window was closed at once, since there are {MOST_TABS} tabs already.")
            await page.close()
            return
        expected = self._windows < self._windows_asked()
        await self._adopt(page, focus=expected)  # the agent does not go to one that comes when it has acted

    async def _on_dialog(self, dialog: Dialog) -> None:
        """Nobody can answer it: an alert is acknowledged, a page that asks is left, any other question is declined."""
        agreed = dialog.type in ("alert", "beforeunload")
        if dialog.type != "beforeunload":
            done = "was acknowledged" if agreed else "was declined"
            self.notes.append(f"A dialog said {dialog.message[:_MOST_DIALOG]!r} and {done}.")
        with contextlib.suppress(Exception):
            await (dialog.accept() if agreed else dialog.dismiss())

    async def _read(self, url: str | None, script: str) -> str:
        if url is None:
            return await _worth(self.tab.page, script)
        page = await self._own_page()
        try:
            tab = await Tab.attach(page)  # before it goes anywhere, so that it sees what is asked for
            there = self.options.browser.hosts.check(url)
            await page.goto(there, wait_until="load", timeout=1e3 * self.options.patience.load)
            await tab.settle(self.options.patience)
            return await _worth(page, script)
        finally:
            await page.close()


async def _worth(page: Page, script: str) -> str:
    """What an expression is worth on a page, as text; "" if it raises, as it does where what it asks for is not."""
    from playwright.async_api import Error

    if not script:
        return await page.content()
    try:
        value = await page.evaluate(f"() => String({script})")
    except Error:
        return ""
    return str(value)


def _of_page(request: Request) -> bool:
    """Whether a document was asked for as a page of its own, not in a frame."""
    from playwright.async_api import Error

    try:
        return request.frame.parent_frame is None
    except Error:  # a window that has no page yet
        return True


def _in_short(error: Exception) -> str:
    """What failed, without the log that Playwright adds."""
    return str(error).partition("Call log:")[0].strip()[:1000] or type(error).__name__
