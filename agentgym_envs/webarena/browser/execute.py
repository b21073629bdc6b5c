"""Carrying out an agent's actions in a session."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agentgym_envs.errors import EnvError, InvalidAction
from agentgym_envs.webarena import actions
from agentgym_envs.webarena.browser.hosts import BLANK
from agentgym_envs.webarena.browser.tab import ContextLost

if TYPE_CHECKING:
    from agentgym_envs.webarena.browser.session import Session
    from agentgym_envs.webarena.browser.tab import Tab

_KEYED = 100
"""So many characters are typed key by key; of a longer text the last ones, so that pages that listen to keys notice."""
_MOST_HELD = 200
_ERROR_PAGE = "chrome-error://"
_NOT_TYPED = {
    "disabled": "is disabled",
    "read-only": "can only be read",
    "no field": "is no field that can be typed into",
    "no such option": "has no option of that text",
    "malformed": "does not take that text (dates are written as 2024-05-31, times as 13:45, colours as #ff0000)",
}
_UNSHOWN = (
    "ERR_BLOCKED_BY_",
    "ERR_CACHE_MISS",
    "ERR_INVALID_REDIRECT",
    "ERR_INVALID_RESPONSE",
    "ERR_TOO_MANY_REDIRECTS",
    "ERR_UNSAFE_PORT",
    "ERR_UNSAFE_REDIRECT",
)
"""Why a page is not shown though its site answers: a page that led there is to blame, and not the machine."""


async def act(session: Session, action: actions.Action) -> None:
    """Carry out an action and wait until the page has come to rest. Raises InvalidAction and EnvError."""
    do: Callable[[Session, Any], Awaitable[None]] = _HANDLERS[type(action)]
    before = session.tab, session.url
    session.failure = ""
    await _do(session, do, action)
    await session.settle()
    if led := await _stay_inside(session, *before):
        session.notes.append(f"That led to {led[:100]!r}, which cannot be shown here, so you are back where you were.")


async def _do(session: Session, do: Callable[[Session, Any], Awaitable[None]], action: actions.Action) -> None:
    from playwright.async_api import Error

    page = session.tab.page
    try:
        await do(session, action)
    except Error:
        if not page.is_closed():  # it may close itself while it is clicked
            raise


async def goto(session: Session, url: str) -> None:
    """See `Session.goto`."""
    before = session.tab, session.url
    session.failure = ""
    await _visit(session, session.options.browser.hosts.check(url))
    await session.settle()
    if led := await _stay_inside(session, *before):
        raise EnvError(f"{url[:200]} led to {led[:200]}, which cannot be shown {session.failure}".rstrip())


async def _visit(session: Session, url: str) -> None:
    await _go(session, url, session.tab.page.goto(url, wait_until="commit", timeout=_load_ms(session)))


async def _go(session: Session, url: str, going: Awaitable[Any]) -> None:
    """Do what leads to a page. Raises InvalidAction if there can be none, EnvError if a site does not answer."""
    from playwright.async_api import Error

    try:
        await going
    except Error as error:
        why = error.message.partition("\n")[0]
        if "invalid URL" in why:
            raise InvalidAction(f"{url[:200]!r} cannot be visited: it is no address of a page.") from None
        if "net::ERR_ABORTED" in why or "Download" in why:
            session.notes.append("No page came.")
        elif "net::" in why:
            await _arrive(session, lambda shown: shown.startswith(_ERROR_PAGE))
        else:
            raise EnvError(f"{url[:200]} did not answer: {why[:300]}") from error


async def _arrive(session: Session, there: Callable[[str], bool]) -> None:
    await session.tab.page.wait_for_url(there, wait_until="commit", timeout=_load_ms(session))


def _load_ms(session: Session) -> float:
    return 1e3 * session.options.patience.load


async def _stay_inside(session: Session, tab: Tab, url: str) -> str:
    """Undo what led to a page that may not be seen; returns its address, "" if the page that is shown may be.

    Raises EnvError if a site of the task does not answer.
    """
    allows = session.options.browser.hosts.allows
    failed = session.url.startswith(_ERROR_PAGE)
    led = await _failed_url(session.tab) if failed else session.url
    if allows(led):
        if not failed:
            return ""
        if not any(reason in session.failure for reason in _UNSHOWN):
            raise EnvError(f"{led[:200]} did not answer: {session.failure}")
    if session.tab is not tab and len(session.tabs) > 1:
        await session.tab.page.close()
    else:
        await _go_back_inside(session, url if allows(url) else BLANK)
    await session.settle()
    return led


async def _failed_url(tab: Tab) -> str:
    """What could not be loaded."""
    tree = await tab.send("Page.getFrameTree")
    return str(tree["frameTree"]["frame"].get("unreachableUrl", ""))


async def _go_back_inside(session: Session, url: str) -> None:
    """Go to the nearest page of the history with that address."""
    history = await session.tab.send("Page.getNavigationHistory")
    here, entries = history["currentIndex"], history["entries"]
    places = sorted((place for place in range(len(entries)) if place != here), key=lambda place: abs(place - here))
    entry = next((entries[place] for place in places if entries[place]["url"] == url), None)
    if entry is None:
        await session.tab.page.goto(url, wait_until="commit", timeout=_load_ms(session))
    else:
        await session.tab.send("Page.navigateToHistoryEntry", {"entryId": entry["id"]})
        await _arrive(session, lambda shown: shown == url)


async def _on(session: Session, element: int, function: str, *arguments: Any) -> Any:
    """What a function returns for an element. Raises InvalidAction if there is no such element on the page."""
    if session.tab is not session.seen:
        raise InvalidAction("The tab that you saw is gone, so nothing was done. `wait` shows the one that you are on.")
    reply = await session.backend.call(session.tab, element, function, *arguments)
    if reply is None:
        raise InvalidAction(f"There is no element [{element}] on the page. Use an id that you see; `wait` looks again.")
    return reply


async def _point(session: Session, element: int) -> tuple[float, float] | None:
    """Where the mouse meets an element; None if it has no size. Raises InvalidAction."""
    spot = await _on(session, element, "e => agentgym.point(e)")
    if isinstance(spot, dict):
        cover = f"element [{spot['covered']}]" if spot["covered"] else "another one"
        raise InvalidAction(f"Element [{element}] cannot be reached: it is covered by {cover}. See to that first.")
    return None if spot == "nowhere" else (spot[0], spot[1])


async def _click(session: Session, action: actions.Click) -> None:
    chosen = await _on(session, action.id, "e => agentgym.choose(e)")
    if chosen == "disabled":
        raise InvalidAction(f"Element [{action.id}] cannot be clicked: it is disabled.")
    if chosen == "chosen":
        return
    spot = await _point(session, action.id)
    if spot is None:
        await _on(session, action.id, "e => (agentgym.press(e), true)")
    else:
        await session.tab.page.mouse.click(*spot)


async def _type(session: Session, action: actions.Type) -> None:
    how = await _on(session, action.id, "(e, text) => agentgym.prepare(e, text)", action.text)
    if how in _NOT_TYPED:
        raise InvalidAction(f"Element [{action.id}] {_NOT_TYPED[how]}.{await _offered(session, action.id, how)}")
    if how != "done":
        text = action.text if how == "lines" else " ".join(action.text.splitlines())
        await _write(session, text)
        await _note_what_is_held(session, action.id, text)
    if action.enter:
        await session.tab.page.keyboard.press("Enter")


async def _offered(session: Session, element: int, how: str) -> str:
    """The options that there are, for who named another one."""
    if how != "no such option":
        return ""
    options = await _on(session, element, "e => agentgym.options(e)")
    return f" There are: {', '.join(options)}." if options else ""


async def _note_what_is_held(session: Session, element: int, text: str) -> None:
    """Pages cut, change and refuse what is typed."""
    with contextlib.suppress(InvalidAction, ContextLost):  # it may lead elsewhere, too
        held = await _on(session, element, "e => agentgym.held(e)")
        if held and held["value"].splitlines() != text.splitlines():
            session.notes.append(f"The field now holds {held['value'][:_MOST_HELD]!r}.")


async def _write(session: Session, text: str) -> None:
    """Type over what is selected."""
    keyboard = session.tab.page.keyboard
    if not text:
        await keyboard.press("Delete")
    if text[:-_KEYED]:
        await keyboard.insert_text(text[:-_KEYED])
    await keyboard.type(text[-_KEYED:])


async def _hover(session: Session, action: actions.Hover) -> None:
    spot = await _point(session, action.id)
    if spot is None:
        raise InvalidAction(f"Element [{action.id}] has no place on the page where the mouse could be.")
    await session.tab.page.mouse.move(*spot)


async def _press(session: Session, action: actions.Press) -> None:
    if action.id is not None:
        await _on(session, action.id, "e => (e.focus(), true)")
    keys = re.sub(r"\b(Control|Meta)\b", "ControlOrMeta", action.keys)  # whichever the system's shortcuts have
    if "Shift" in keys:  # a letter is typed as it is named
        keys = re.sub(r"\b[a-z]\Z", lambda letter: letter[0].upper(), keys)
    await session.tab.page.keyboard.press(keys)
    with contextlib.suppress(ContextLost):  # it led to another page
        await session.tab.run("() => agentgym.shown()")


async def _scroll(session: Session, action: actions.Scroll) -> None:
    if not await session.tab.run("down => agentgym.scroll(down)", action.direction == "down"):
        session.notes.append(f"The page cannot be scrolled further {action.direction}.")


async def _new_tab(session: Session, action: actions.NewTab) -> None:
    await session.add_tab()


async def _tab_focus(session: Session, action: actions.TabFocus) -> None:
    if action.index >= len(session.tabs):
        raise InvalidAction(f"There is no tab {action.index}. The tabs go from 0 to {len(session.tabs) - 1}.")
    session.tab = session.tabs[action.index]
    await session.tab.page.bring_to_front()


async def _close_tab(session: Session, action: actions.CloseTab) -> None:
    if len(session.tabs) == 1:
        raise InvalidAction("This is the only tab. It cannot be closed.")
    await session.tab.page.close()


async def _goto(session: Session, action: actions.Goto) -> None:
    await _visit(session, session.options.browser.hosts.check(action.url))


async def _go_back(session: Session, action: actions.GoBack) -> None:
    await _go_through_history(session, -1, "There is no page to go back to.")


async def _go_forward(session: Session, action: actions.GoForward) -> None:
    await _go_through_history(session, 1, "There is no page to go forward to.")


async def _go_through_history(session: Session, step: int, none: str) -> None:
    history = await session.tab.send("Page.getNavigationHistory")
    place = history["currentIndex"] + step
    entries = history["entries"]
    if not 0 <= place < len(entries) or entries[place]["url"] == BLANK:
        raise InvalidAction(none)
    page = session.tab.page
    go = page.go_back if step < 0 else page.go_forward
    await _go(session, entries[place]["url"], go(wait_until="commit", timeout=_load_ms(session)))


async def _wait(session: Session, action: actions.Wait) -> None:
    """Some pages change a while after an action, by a timer."""
    with contextlib.suppress(ContextLost):
        await session.tab.run("most => agentgym.changed(most)", 1e3 * session.options.patience.most)


async def _stop(session: Session, action: actions.Stop) -> None:
    """Nothing is left to be done."""


_HANDLERS: dict[type, Callable[[Session, Any], Awaitable[None]]] = {
    actions.Click: _click,
    actions.Type: _type,
    actions.Hover: _hover,
    actions.Press: _press,
    actions.Scroll: _scroll,
    actions.NewTab: _new_tab,
    actions.TabFocus: _tab_focus,
    actions.CloseTab: _close_tab,
    actions.Goto: _goto,
    actions.GoBack: _go_back,
    actions.GoForward: _go_forward,
    actions.Wait: _wait,
    actions.Stop: _stop,
}
