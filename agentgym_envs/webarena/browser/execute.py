"""Functions that carry out an agent's actions in a browser session."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agentgym_envs.errors import EnvError, InvalidAction
from agentgym_envs.webarena import actions
from agentgym_envs.webarena.browser.hosts import BLANK
from agentgym_envs.webarena.browser.session import BrowserSession
from agentgym_envs.webarena.browser.tab import ContextLost, Tab

_MAX_NOTES = 5
_MAX_TYPED = 100
"""The last characters of a text are typed key by key, so that pages notice the key events. The rest is inserted."""
_MAX_QUOTED = 200
_ERROR_PAGE = "chrome-error://"
_NOT_TYPED = {
    "disabled": "is disabled",
    "read-only": "can only be read",
    "no field": "is no field that can be typed into",
    "no such option": "has no option of that text",
    "malformed": "does not take that text (dates are written as 2024-05-31, times as 13:45, colours as #ff0000)",
}
_REFUSED_BY_BROWSER = (
    "ERR_BLOCKED_BY_",
    "ERR_CACHE_MISS",
    "ERR_INVALID_REDIRECT",
    "ERR_INVALID_RESPONSE",
    "ERR_TOO_MANY_REDIRECTS",
    "ERR_UNSAFE_PORT",
    "ERR_UNSAFE_REDIRECT",
)
"""Chromium errors that a link or a redirect of a page causes, although the site answers. They are no EnvError."""


async def execute(session: BrowserSession, action: actions.Action) -> str:
    """Carry out an action and wait until the page has settled. Returns the notes for the agent.

    Raises InvalidAction and EnvError.
    """
    session.notes = []
    await session.guarded(_execute(session, action))
    notes = list(dict.fromkeys(session.notes))
    more = [f"And {len(notes) - _MAX_NOTES} more such notes."] if len(notes) > _MAX_NOTES else []
    return " ".join([*notes[:_MAX_NOTES], *more])


async def goto(session: BrowserSession, url: str) -> None:
    """Visit a page and wait until it has settled. Raises EnvError, and InvalidAction if its host is not allowed."""
    await session.guarded(_goto_or_fail(session, url))


async def open_tabs(
    session: BrowserSession, urls: Sequence[str], check: Callable[[BrowserSession, str], Awaitable[None]] | None = None
) -> None:
    """Open each URL in a tab of its own, `check` each page, and show the first tab. Raises EnvError."""
    for index, url in enumerate(urls):
        if index:
            await session.observe()  # so that the line of tabs has its title
            await session.guarded(session.add_tab())
        await goto(session, url)
        if check is not None:
            await check(session, url)
    if len(urls) > 1:
        await session.observe()
        await execute(session, actions.TabFocus(0))


async def _execute(session: BrowserSession, action: actions.Action) -> None:
    from playwright.async_api import Error

    before, page = (session.tab, session.url), session.tab.page
    session.navigation_error = ""
    handler: Callable[[BrowserSession, Any], Awaitable[None]] = _HANDLERS[type(action)]
    try:
        await handler(session, action)
    except Error:
        if not page.is_closed():  # a page may close itself during a click
            raise
    await session.settle()
    if page.is_closed() and not isinstance(action, actions.CloseTab):
        session.notes.append("The page closed itself.")
    if url := await _return_to_allowed_page(session, *before):
        session.notes.append(f"That led to {url[:100]!r}, which cannot be shown here, so you are back where you were.")


async def _goto_or_fail(session: BrowserSession, url: str) -> None:
    before = session.tab, session.url
    session.navigation_error = ""
    await _visit(session, session.options.browser.hosts.check(url))
    await session.settle()
    if reached := await _return_to_allowed_page(session, *before):
        raise EnvError(f"{url[:200]} led to {reached[:200]}, which cannot be shown {session.navigation_error}".rstrip())


async def _visit(session: BrowserSession, url: str) -> None:
    await _navigate(session, url, session.tab.page.goto(url, wait_until="commit", timeout=_load_ms(session)))


async def _navigate(session: BrowserSession, url: str, navigation: Awaitable[Any]) -> None:
    """Await a navigation. Raises InvalidAction for an impossible URL, EnvError if a site does not answer."""
    from playwright.async_api import Error

    try:
        await navigation
    except Error as error:
        why = error.message.partition("\n")[0]
        if "invalid URL" in why:
            raise InvalidAction(f"{url[:200]!r} cannot be visited: it is no address of a page.") from None
        if "net::ERR_ABORTED" in why or "Download" in why:
            session.notes.append("No page came.")
        elif "net::" in why:
            await _wait_for_url(session, lambda shown: shown.startswith(_ERROR_PAGE))
        else:
            raise EnvError(f"{url[:200]} did not answer: {why[:300]}") from error


async def _wait_for_url(session: BrowserSession, matches: Callable[[str], bool]) -> None:
    await session.tab.page.wait_for_url(matches, wait_until="commit", timeout=_load_ms(session))


def _load_ms(session: BrowserSession) -> float:
    return 1e3 * session.options.timeouts.load


async def _return_to_allowed_page(session: BrowserSession, tab: Tab, url: str) -> str:
    """Leave a page that is not allowed, and return its URL; return "" if the current page is allowed.

    `tab` and `url` are those before the action. Raises EnvError if a site of the task does not answer.
    """
    allows = session.options.browser.hosts.allows
    failed = session.url.startswith(_ERROR_PAGE)
    reached = await _failed_url(session.tab) if failed else session.url
    if allows(reached):
        if not failed:
            return ""
        if not any(reason in session.navigation_error for reason in _REFUSED_BY_BROWSER):
            raise EnvError(f"{reached[:200]} did not answer: {session.navigation_error}")
    if session.tab is not tab and len(session.tabs) > 1:
        await session.tab.page.close()
    else:
        await _go_back_to(session, url if allows(url) else BLANK)
    await session.settle()
    return reached


async def _failed_url(tab: Tab) -> str:
    """The URL that could not be loaded."""
    tree = await tab.send("Page.getFrameTree")
    return str(tree["frameTree"]["frame"].get("unreachableUrl", ""))


async def _go_back_to(session: BrowserSession, url: str) -> None:
    """Go to the nearest history entry with this URL."""
    history = await session.tab.send("Page.getNavigationHistory")
    current, entries = history["currentIndex"], history["entries"]
    others = sorted((index for index in range(len(entries)) if index != current), key=lambda i: abs(i - current))
    entry = next((entries[index] for index in others if entries[index]["url"] == url), None)
    if entry is None:
        await session.tab.page.goto(url, wait_until="commit", timeout=_load_ms(session))
    else:
        await session.tab.send("Page.navigateToHistoryEntry", {"entryId": entry["id"]})
        await _wait_for_url(session, lambda shown: shown == url)


async def _call(session: BrowserSession, element: int, function: str, *arguments: Any) -> Any:
    """Call a JavaScript function with an element. Raises InvalidAction if the page has no such element."""
    if session.tab is not session.observed_tab:
        raise InvalidAction("The tab that you saw is gone, so nothing was done. `wait` shows the one that you are on.")
    reply = await session.backend.call(session.tab, element, function, *arguments)
    if reply is None:
        raise InvalidAction(f"There is no element [{element}] on the page. Use an id that you see; `wait` looks again.")
    return reply


async def _point(session: BrowserSession, element: int) -> tuple[float, float] | None:
    """The point at which a click hits an element; None if it has no size. Raises InvalidAction if it is covered."""
    point = await _call(session, element, "e => agentgym.point(e)")
    if isinstance(point, dict):
        cover = f"element [{point['covered']}]" if point["covered"] else "another one"
        raise InvalidAction(f"Element [{element}] cannot be reached: it is covered by {cover}. See to that first.")
    return None if point == "nowhere" else (point[0], point[1])


async def _click(session: BrowserSession, action: actions.Click) -> None:
    choice = await _call(session, action.id, "e => agentgym.choose(e)")
    if choice == "disabled":
        raise InvalidAction(f"Element [{action.id}] cannot be clicked: it is disabled.")
    if choice == "chosen":
        return
    point = await _point(session, action.id)
    if point is None:
        await _call(session, action.id, "e => (agentgym.press(e), true)")
    else:
        await session.tab.page.mouse.click(*point)


async def _type(session: BrowserSession, action: actions.Type) -> None:
    state = await _call(session, action.id, "(e, text) => agentgym.prepare(e, text)", action.text)
    if state in _NOT_TYPED:
        options = await _list_options(session, action.id) if state == "no such option" else ""
        raise InvalidAction(f"Element [{action.id}] {_NOT_TYPED[state]}.{options}")
    if state != "done":
        text = action.text if state == "lines" else " ".join(action.text.splitlines())
        await _type_over_selection(session, text)
        await _note_changed_text(session, action.id, text)
    if action.enter:
        await session.tab.page.keyboard.press("Enter")


async def _list_options(session: BrowserSession, element: int) -> str:
    options = await _call(session, element, "e => agentgym.options(e)")
    return f" There are: {', '.join(options)}." if options else ""


async def _note_changed_text(session: BrowserSession, element: int, text: str) -> None:
    """Add a note if the page changed the typed text, for example shortened it."""
    with contextlib.suppress(InvalidAction, ContextLost):  # typing may have opened another page
        field = await _call(session, element, "e => agentgym.fieldValue(e)")
        if field and field["value"].splitlines() != text.splitlines():
            session.notes.append(f"The field now holds {field['value'][:_MAX_QUOTED]!r}.")


async def _type_over_selection(session: BrowserSession, text: str) -> None:
    if not text:
        await session.tab.page.keyboard.press("Delete")
    await _type_text(session, text)


async def _type_text(session: BrowserSession, text: str) -> None:
    """Type a text where the focus is."""
    keyboard = session.tab.page.keyboard
    if text[:-_MAX_TYPED]:
        await keyboard.insert_text(text[:-_MAX_TYPED])
    await keyboard.type(text[-_MAX_TYPED:])


async def _hover(session: BrowserSession, action: actions.Hover) -> None:
    point = await _point(session, action.id)
    if point is None:
        raise InvalidAction(f"Element [{action.id}] has no place on the page where the mouse could be.")
    await session.tab.page.mouse.move(*point)


async def _press(session: BrowserSession, action: actions.Press) -> None:
    if action.id is not None:
        await _call(session, action.id, "e => (e.focus(), true)")
    keys = re.sub(r"\b(Control|Meta)\b", "ControlOrMeta", action.keys)  # the modifier of this system's shortcuts
    if "Shift" in keys:  # Playwright types a letter in the case that it is given in
        keys = re.sub(r"\b[a-z]\Z", lambda letter: letter[0].upper(), keys)
    if session.clipboard and "+" in keys:
        await session.tab.run("text => { agentgym.clipboard = text }", session.clipboard)
    await session.tab.page.keyboard.press(keys)
    with contextlib.suppress(ContextLost):  # the key opened another page
        await session.tab.run("() => agentgym.nextFrame()")


async def _scroll(session: BrowserSession, action: actions.Scroll) -> None:
    if not await session.tab.run("down => agentgym.scroll(down)", action.direction == "down"):
        session.notes.append(f"The page cannot be scrolled further {action.direction}.")


async def _click_xy(session: BrowserSession, action: actions.ClickXY) -> None:
    _check_point(session, action.x, action.y)
    await session.tab.page.mouse.click(action.x, action.y)


async def _hover_xy(session: BrowserSession, action: actions.HoverXY) -> None:
    _check_point(session, action.x, action.y)
    await session.tab.page.mouse.move(action.x, action.y)


def _check_point(session: BrowserSession, x: int, y: int) -> None:
    """Raise InvalidAction for a point outside of the window."""
    width, height = session.options.size
    if not (x < width and y < height):
        raise InvalidAction(f"The point ({x}, {y}) is outside of the window, which has {width} by {height} pixels.")


async def _keyboard_type(session: BrowserSession, action: actions.KeyboardType) -> None:
    await _type_text(session, action.text)


async def _new_tab(session: BrowserSession, action: actions.NewTab) -> None:
    await session.add_tab()


async def _tab_focus(session: BrowserSession, action: actions.TabFocus) -> None:
    if action.index >= len(session.tabs):
        raise InvalidAction(f"There is no tab {action.index}. The tabs go from 0 to {len(session.tabs) - 1}.")
    session.tab = session.tabs[action.index]
    await session.tab.page.bring_to_front()


async def _close_tab(session: BrowserSession, action: actions.CloseTab) -> None:
    if len(session.tabs) == 1:
        raise InvalidAction("This is the only tab. It cannot be closed.")
    await session.tab.page.close()


async def _goto(session: BrowserSession, action: actions.Goto) -> None:
    await _visit(session, session.options.browser.hosts.check(action.url))


async def _go_back(session: BrowserSession, action: actions.GoBack) -> None:
    await _go_through_history(session, -1, "There is no page to go back to.")


async def _go_forward(session: BrowserSession, action: actions.GoForward) -> None:
    await _go_through_history(session, 1, "There is no page to go forward to.")


async def _go_through_history(session: BrowserSession, step: int, refusal: str) -> None:
    history = await session.tab.send("Page.getNavigationHistory")
    index = history["currentIndex"] + step
    entries = history["entries"]
    if not 0 <= index < len(entries) or entries[index]["url"] == BLANK:
        raise InvalidAction(refusal)
    page = session.tab.page
    go = page.go_back if step < 0 else page.go_forward
    await _navigate(session, entries[index]["url"], go(wait_until="commit", timeout=_load_ms(session)))


async def _wait(session: BrowserSession, action: actions.Wait) -> None:
    """Wait for the next change of the page; some pages change by a timer."""
    with contextlib.suppress(ContextLost):
        await session.tab.run("most => agentgym.changed(most)", 1e3 * session.options.timeouts.busy)


async def _stop(session: BrowserSession, action: actions.StopTask) -> None:
    """Do nothing: the environment ends the episode."""


_HANDLERS: dict[type, Callable[[BrowserSession, Any], Awaitable[None]]] = {
    actions.Click: _click,
    actions.Type: _type,
    actions.Hover: _hover,
    actions.Press: _press,
    actions.Scroll: _scroll,
    actions.ClickXY: _click_xy,
    actions.HoverXY: _hover_xy,
    actions.KeyboardType: _keyboard_type,
    actions.NewTab: _new_tab,
    actions.TabFocus: _tab_focus,
    actions.CloseTab: _close_tab,
    actions.Goto: _goto,
    actions.GoBack: _go_back,
    actions.GoForward: _go_forward,
    actions.Wait: _wait,
    actions.StopTask: _stop,
}
