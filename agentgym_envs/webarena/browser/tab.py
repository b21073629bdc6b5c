"""One page with an isolated JavaScript world, and the test of when it has settled."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentgym_envs.webarena.browser.scripts import WORLD, world_source

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

ImageFormat = Literal["png", "jpeg"]
JPEG_QUALITY = 80
_MAX_HOPS = 10
"""The number of consecutive navigations after which a page counts as not settled."""
_GRACE = 0.3
"""Seconds in which the next document may still arrive after loading stopped."""
_LOST = ("Cannot find context", "Execution context was destroyed", "navigated or closed", "context with specified id")


_SHOWN = ("http:", "https:", "about:", "blob:")
"""Playwright reports no page for a window with any other URL."""


class SettleTimeouts(NamedTuple):
    """The times to wait for a page to settle, in seconds.

    Attributes:
        quiet: a page has settled after this time without a change.
        busy: the longest wait for a loaded page that keeps changing.
        load: the longest wait for a page to load.
    """

    quiet: float = 0.03
    busy: float = 1.0
    load: float = 15.0


class ContextLost(Exception):
    """Raised when another document has replaced the one that a script was to run in."""


class ScriptFailed(Exception):
    """Raised when a script in the isolated world throws."""


class Tab:
    """A page of a browser context, with its own connection to Chromium's debugger."""

    def __init__(self, page: Page, cdp: CDPSession, frame: str) -> None:
        self.page, self._cdp, self._frame = page, cdp, frame
        self._world: int | None = None
        self._navigations = 0
        self._loading: dict[str, float] = {}  # frame -> start time
        self._loading_changed = asyncio.Event()
        self.title = ""
        """The title in the last observation."""
        self.windows_requested = 0
        """The number of windows with a page that this page requested."""
        cdp.on("Page.frameNavigated", self._on_navigated)
        cdp.on("Page.frameStartedLoading", self._on_start)
        cdp.on("Page.frameStoppedLoading", self._on_stop)
        cdp.on("Page.frameDetached", self._on_stop)
        cdp.on("Page.windowOpen", self._on_window)
        self.on_copy: Callable[[str], None] = lambda text: None
        """A function to call with each text that is copied on the page."""
        cdp.on("Runtime.bindingCalled", lambda event: self.on_copy(event["payload"]))

    @classmethod
    async def attach(cls, page: Page) -> Tab:
        """Set up the isolated world in a page's current document and in all later ones."""
        cdp = await page.context.new_cdp_session(page)
        script = {"source": world_source(), "worldName": WORLD, "runImmediately": True}
        replies = await asyncio.gather(
            cdp.send("Page.enable"),
            cdp.send("Runtime.enable"),
            cdp.send("Runtime.addBinding", {"name": "agentgymCopied", "executionContextName": WORLD}),
            cdp.send("Page.addScriptToEvaluateOnNewDocument", script),
            cdp.send("Page.getFrameTree"),
        )
        tree: Any = replies[-1]
        return cls(page, cdp, tree["frameTree"]["frame"]["id"])

    @property
    def url(self) -> str:
        """The URL of the current page."""
        return self.page.url

    async def send(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a command of Chrome's DevTools Protocol. Raises ContextLost if the document is gone."""
        from playwright.async_api import Error

        try:
            return await self._cdp.send(method, params or {})
        except Error as error:
            if any(words in error.message for words in _LOST):
                self._world = None
                raise ContextLost(error.message) from None
            raise

    async def context_id(self) -> int:
        """The protocol's id of the isolated world in the current document."""
        if self._world is None:
            world = await self.send("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": WORLD})
            self._world = world["executionContextId"]
        return self._world

    async def run(self, function: str, *arguments: Any) -> Any:
        """Call a JavaScript function in the isolated world; arguments and result are JSON.

        Raises ContextLost, and ScriptFailed if the function throws.
        """
        expression = f"({function})({', '.join(map(json.dumps, arguments))})"
        context = await self.context_id()
        parameters = {"expression": expression, "contextId": context, "returnByValue": True, "awaitPromise": True}
        return script_value(await self.send("Runtime.evaluate", parameters))

    async def screenshot(self, image_format: ImageFormat) -> bytes:
        """An image of the window without the text cursor, which blinks. Raises ContextLost.

        This takes a third of the time of Playwright's own screenshots.
        """
        parameters: dict[str, Any] = {"format": image_format, "optimizeForSpeed": True}
        if image_format == "jpeg":
            parameters["quality"] = JPEG_QUALITY
        hidden = await self.run("async () => agentgym.hideCaret() && (await agentgym.nextFrame(), true)")
        try:
            return base64.b64decode((await self.send("Page.captureScreenshot", parameters))["data"])
        finally:
            if hidden:
                with contextlib.suppress(ContextLost):
                    await self.run("() => agentgym.showCaret()")

    async def count_windows(self) -> int:
        """The number of windows in the context of this page, including those that still have no page."""
        targets = (await self.send("Target.getTargets"))["targetInfos"]
        contexts = {target["targetId"]: target["browserContextId"] for target in targets if target["type"] == "page"}
        return sum(context == contexts.get(self._frame) for context in contexts.values())

    async def settle(self, timeouts: SettleTimeouts) -> bool:
        """Wait until the page has settled, across navigations; False if it does not settle in time."""
        milliseconds = {name: 1e3 * seconds for name, seconds in timeouts._asdict().items()}
        for _ in range(_MAX_HOPS):
            navigations = self._navigations
            try:
                state = await self.run("o => agentgym.settled(o)", milliseconds)
                if state == "leaving":
                    await self._wait_for_navigation(navigations, timeouts.load)
                elif state != "settled" or not await self._wait_for_frames(timeouts.busy):
                    return bool(state == "settled" and not self._loading_frames())
            except ContextLost:
                continue
            except TimeoutError:
                return False
        return False

    async def _wait_for_navigation(self, navigations: int, seconds: float) -> None:
        """Wait until the requested document has arrived, or no document comes, as for a download."""
        async with asyncio.timeout(seconds):
            while self._navigations == navigations and self._frame in self._loading:
                await self._wait_for_loading()
        try:
            async with asyncio.timeout(_GRACE):
                while self._navigations == navigations:
                    await self._wait_for_loading()
        except TimeoutError:
            await self.run("() => agentgym.cancelLeaving()")

    async def _wait_for_frames(self, max_seconds: float) -> bool:
        """Wait for each frame in the page, for up to `max_seconds` seconds; False if no frame is loading."""
        clock = asyncio.get_running_loop().time
        waited = False
        while starts := [start for start in self._loading_frames() if clock() - start < max_seconds]:
            waited = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(starts) + max_seconds):
                    await self._wait_for_loading()
        return waited

    def _loading_frames(self) -> list[float]:
        """The start times of the frames in the page that are loading."""
        return [start for frame, start in self._loading.items() if frame != self._frame]

    async def _wait_for_loading(self) -> None:
        """Wait until a document has arrived or has stopped loading."""
        self._loading_changed.clear()
        await self._loading_changed.wait()

    def _on_navigated(self, event: dict[str, Any]) -> None:
        if "parentId" not in event["frame"]:
            self._world = None
            self._navigations += 1
            self._loading_changed.set()

    def _on_start(self, event: dict[str, Any]) -> None:
        self._loading[event["frameId"]] = asyncio.get_running_loop().time()

    def _on_stop(self, event: dict[str, Any]) -> None:
        self._loading.pop(event["frameId"], None)
        self._loading_changed.set()

    def _on_window(self, event: dict[str, Any]) -> None:
        if not event["url"] or event["url"].startswith(_SHOWN):
            self.windows_requested += 1


def script_value(reply: dict[str, Any]) -> Any:
    """The value in a reply of Runtime.evaluate or callFunctionOn. Raises ScriptFailed if the script threw."""
    if "exceptionDetails" in reply:
        exception = reply["exceptionDetails"].get("exception", {})
        raise ScriptFailed(exception.get("description", reply["exceptionDetails"].get("text", "?")))
    return reply["result"].get("value")
