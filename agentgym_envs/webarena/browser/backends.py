"""Who tells what is on a page, and finds the elements that it numbered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from agentgym_envs.webarena.browser.cdp import CdpBackend
from agentgym_envs.webarena.browser.tab import ContextLost, Tab
from agentgym_envs.webarena.browser.view import View, ViewOptions

_TRIES = 5


class Backend(Protocol):
    """One way to tell a page."""

    async def observe(self, tab: Tab, options: ViewOptions) -> View:
        """What is on the page now."""

    async def call(self, tab: Tab, element: int, function: str, *arguments: Any) -> Any:
        """What a JavaScript function returns in the isolated world for an element and further arguments (JSON).

        `element` is an id of the last observation; None if it is not there (any more).
        """


class JsBackend:
    """One evaluation of our own script."""

    async def observe(self, tab: Tab, options: ViewOptions) -> View:
        """See `Backend`."""
        asked = {"viewport": options.viewport, "maxChars": options.max_chars, "hidden": list(options.hidden)}
        for _ in range(_TRIES):
            try:
                seen = await tab.run("o => agentgym.observe(o)", asked)
            except ContextLost:
                continue
            return View(tab.url, seen["title"], seen["tree"], seen["count"], seen["cut"])
        raise ContextLost("the page goes on to another one all the time")

    async def call(self, tab: Tab, element: int, function: str, *arguments: Any) -> Any:
        """See `Backend`."""
        found = f"((id, ...rest) => {{ const e = agentgym.element(id); return e ? ({function})(e, ...rest) : null; }})"
        try:
            return await tab.run(found, element, *arguments)
        except ContextLost:
            return None


BACKENDS: dict[str, Callable[[], Backend]] = {"js": JsBackend, "cdp": CdpBackend}
"""By their names."""
