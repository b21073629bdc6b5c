"""One page: an isolated world of JavaScript in it, and when it has come to rest."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_envs.webarena.browser.scripts import WORLD, world_source

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

_MOST_HOPS = 10
"""How many documents may follow one another before a page is taken as it is."""
_GRACE = 0.3
"""Seconds for which a page that stopped loading may still be replaced by the next."""
_LOST = ("Cannot find context", "Execution context was destroyed", "navigated or closed", "context with specified id")


_SHOWN = ("http:", "https:", "about:", "blob:")
"""A window for any other address stays empty, and Playwright never tells of it."""


class Patience(NamedTuple):
    """How long a page is waited for, in seconds.

    It has settled once nothing in it has changed for `quiet`; a page that never rests is taken as it is after `most`,
    and one that does not even load after `load`.
    """

    quiet: float = 0.03
    most: float = 1.0
    load: float = 15.0


class ContextLost(Exception):
    """The document that a script was to run in is gone: another one has taken its place."""


class ScriptFailed(Exception):
    """A script of the isolated world raised."""


class Tab:
    """A page of a browser's context, with a connection of its own to Chromium's debugger."""

    def __init__(self, page: Page, cdp: CDPSession, frame: str) -> None:
        self.page, self._cdp, self._frame = page, cdp, frame
        self._world: int | None = None
        self._arrivals = 0
        self._loading: dict[str, float] = {}  # frames, and since when
        self._moved = asyncio.Event()
        self.title = ""
        """As it was last seen."""
        self.windows_asked = 0
        """How many windows the page has asked for that will show something."""
        cdp.on("Page.frameNavigated", self._on_arrival)
        cdp.on("Page.frameStartedLoading", self._on_start)
        cdp.on("Page.frameStoppedLoading", self._on_stop)
        cdp.on("Page.frameDetached", self._on_stop)
        cdp.on("Page.windowOpen", self._on_window)

    @classmethod
    async def attach(cls, page: Page) -> Tab:
        """Set up the isolated world of a page, in the document that it shows and in all that follow."""
        cdp = await page.context.new_cdp_session(page)
        script = {"source": world_source(), "worldName": WORLD, "runImmediately": True}
        replies = await asyncio.gather(
            cdp.send("Page.enable"),
            cdp.send("Page.addScriptToEvaluateOnNewDocument", script),
            cdp.send("Page.getFrameTree"),
        )
        tree: Any = replies[2]
        return cls(page, cdp, tree["frameTree"]["frame"]["id"])

    @property
    def url(self) -> str:
        """The address of the page that is shown."""
        return self.page.url

    async def send(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """A command of Chrome's DevTools Protocol. Raises ContextLost if the document is gone."""
        from playwright.async_api import Error

        try:
            return await self._cdp.send(method, params or {})
        except Error as error:
            if any(words in error.message for words in _LOST):
                self._world = None
                raise ContextLost(error.message) from None
            raise

    async def context_id(self) -> int:
        """The isolated world of the document that is shown, as the protocol names it."""
        if self._world is None:
            made = await self.send("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": WORLD})
            self._world = made["executionContextId"]
        return self._world

    async def run(self, function: str, *arguments: Any) -> Any:
        """What a JavaScript function returns in the isolated world; arguments and result are JSON.

        Raises ContextLost, and ScriptFailed if it raises.
        """
        expression = f"({function})({', '.join(map(json.dumps, arguments))})"
        context = await self.context_id()
        asked = {"expression": expression, "contextId": context, "returnByValue": True, "awaitPromise": True}
        reply = await self.send("Runtime.evaluate", asked)
        return script_value(reply)

    async def count_windows(self) -> int:
        """How many windows there are in the context of this page, those included that are still to show a page."""
        targets = (await self.send("Target.getTargets"))["targetInfos"]
        contexts = {target["targetId"]: target["browserContextId"] for target in targets if target["type"] == "page"}
        return sum(context == contexts.get(self._frame) for context in contexts.values())

    async def settle(self, patience: Patience) -> bool:
        """Wait until the page has come to rest, in whichever document that is; False if it does not."""
        words = {name: 1e3 * seconds for name, seconds in zip(("quiet", "most", "patience"), patience, strict=True)}
        for _ in range(_MOST_HOPS):
            arrivals = self._arrivals
            try:
                how = await self.run("o => agentgym.settled(o)", words)
                if how == "leaving":
                    await self._see_off(arrivals, patience.load)
                elif how != "settled" or not await self._saw_frames_load(patience.most):
                    return bool(how == "settled" and not self._loading_frames())
            except ContextLost:
                continue
            except TimeoutError:
                return False
        return False

    async def _see_off(self, arrivals: int, seconds: float) -> None:
        """Wait until the document that was asked for has come, or has turned out to be none: a download, say."""
        async with asyncio.timeout(seconds):
            while self._arrivals == arrivals and self._frame in self._loading:
                await self._move()
        try:
            async with asyncio.timeout(_GRACE):
                while self._arrivals == arrivals:
                    await self._move()
        except TimeoutError:
            await self.run("() => agentgym.stay()")

    async def _saw_frames_load(self, most: float) -> bool:
        """Wait for frames within the page, each for no longer than `most` seconds; False if none loads."""
        clock = asyncio.get_running_loop().time
        saw = False
        while since := [began for began in self._loading_frames() if clock() - began < most]:
            saw = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(since) + most):
                    await self._move()
        return saw

    def _loading_frames(self) -> list[float]:
        """Since when frames within the page have been loading."""
        return [began for frame, began in self._loading.items() if frame != self._frame]

    async def _move(self) -> None:
        """Wait until something loads, or has loaded."""
        self._moved.clear()
        await self._moved.wait()

    def _on_arrival(self, event: dict[str, Any]) -> None:
        if "parentId" not in event["frame"]:
            self._world = None
            self._arrivals += 1
            self._moved.set()

    def _on_start(self, event: dict[str, Any]) -> None:
        self._loading[event["frameId"]] = asyncio.get_running_loop().time()

    def _on_stop(self, event: dict[str, Any]) -> None:
        self._loading.pop(event["frameId"], None)
        self._moved.set()

    def _on_window(self, event: dict[str, Any]) -> None:
        if not event["url"] or event["url"].startswith(_SHOWN):
            self.windows_asked += 1


def script_value(reply: dict[str, Any]) -> Any:
    """The value in a reply of Runtime.evaluate or callFunctionOn. Raises ScriptFailed if the script raised."""
    if "exceptionDetails" in reply:
        raised = reply["exceptionDetails"].get("exception", {})
        raise ScriptFailed(raised.get("description", reply["exceptionDetails"].get("text", "?")))
    return reply["result"].get("value")
