"""Observation backends: they describe a page as a tree and find the elements with the ids in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from agentgym_envs.webarena.browser.cdp import CdpBackend
from agentgym_envs.webarena.browser.tab import ContextLost, Tab
from agentgym_envs.webarena.browser.view import ElementBox, PageView, ViewOptions

_MAX_ATTEMPTS = 5


class Backend(Protocol):
    """A way to observe a page."""

    counts_ids: bool
    """True if the ids on a page do not depend on the pages that its process showed before."""

    async def observe(self, tab: Tab, options: ViewOptions) -> PageView:
        """Describe the current page. Raises ContextLost if it does not stop navigating."""

    async def call(self, tab: Tab, element: int, function: str, *arguments: Any) -> Any:
        """Call a JavaScript function in the isolated world with an element and further arguments (JSON).

        `element` is an id from the last observation. Returns None if the page no longer has it.
        """


class JsBackend:
    """The suite's own script, evaluated once per observation."""

    counts_ids = True

    async def observe(self, tab: Tab, options: ViewOptions) -> PageView:
        """Observe a page, as in `Backend`."""
        arguments = {"viewport": options.viewport, "maxChars": options.max_chars, "hidden": list(options.hidden)}
        arguments["boxes"] = options.boxes
        for _ in range(_MAX_ATTEMPTS):
            try:
                page = await tab.run("o => agentgym.observe(o)", arguments)
            except ContextLost:
                continue
            boxes = {number: ElementBox(*box) for number, *box in page.get("boxes", ())}
            return PageView(tab.url, page["title"], page["tree"], page["count"], page["truncated"], boxes)
        raise ContextLost("the page does not stop navigating")

    async def call(self, tab: Tab, element: int, function: str, *arguments: Any) -> Any:
        """Call a function with an element, as in `Backend`."""
        call = f"((id, ...rest) => {{ const e = agentgym.element(id); return e ? ({function})(e, ...rest) : null; }})"
        try:
            return await tab.run(call, element, *arguments)
        except ContextLost:
            return None


BACKENDS: dict[str, Callable[[], Backend]] = {"js": JsBackend, "cdp": CdpBackend}
"""The backends by name."""
