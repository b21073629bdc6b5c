"""Oracles of the pages where what is sought has to be unfolded first: tabs, sections, menus, trees."""

from __future__ import annotations

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action, Hover
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, number, on


def section(page: WidgetReader) -> Action:
    """Expand the one section, then submit."""
    folded = page.all("tab")[0]
    return click(page.one("button", "Submit") if on(folded, "expanded") else folded)


def link_behind_tabs(page: WidgetReader) -> Action:
    """One tab or section after the other, until the link is to be seen."""
    (text,) = page.asks('"(.+)"')
    tabs = page.all("tab")
    place = next((place for place, tab in enumerate(tabs) if on(tab, "expanded")), -1)
    return click(page.find("link", text) or tabs[(place + 1) % len(tabs)])


def tab(page: WidgetReader) -> Action:
    """The tab of a number."""
    return click(page.one("tab", f"Tab #{number(page.goal)}"))


def menu(page: WidgetReader) -> Action:
    """The deepest part of a path that is to be seen: what holds more opens under the mouse."""
    (path,) = page.asks("Select (.+)")
    *holders, leaf = path.split(">")
    if item := page.find("menuitem", leaf):
        return click(item)
    seen = (page.find("menuitem", name) for name in reversed(holders))
    item = next(filter(None, seen), None)
    if item is None or item.id is None:
        raise NoOracle("no part of the path is to be seen")
    return Hover(item.id)


def menu_with_icons(page: WidgetReader) -> Action:
    """An item by its label or its icon: open the menu, then the part of it that holds more."""
    label, icon = page.asks('labeled "(.+)"|with the (.+) icon')
    items = page.all("menuitem")
    if not items:
        return click(page.one("button", "Menu"))
    # The name of an item is its icon and its label, so neither is the whole of it.
    found = (item for item in items if (item.name.endswith(f" {label}") if label else item.name.startswith(f"{icon} ")))
    return click(next(found, None) or next(item for item in items if item.name == "Playback"))


def pie(page: WidgetReader) -> Action:
    """Open the menu, then an item."""
    (label,) = page.asks('"(.+)"')
    plus = page.find("menuitem", "+")
    return click(plus or page.one("menuitem", label))


def tree(page: WidgetReader) -> Action:
    """Open folder after folder, until the name is to be seen."""
    (name,) = page.asks('"(.+)"')
    found = page.find("treeitem", name)
    folded = (item for item in page.all("treeitem") if item.properties.get("expanded", "").lower() == "false")
    item = found or next(folded, None)
    if item is None:
        raise NoOracle(f"no folder is left that may hold {name!r}")
    return click(item)


SOLVERS: dict[str, Solver] = {
    "click-collapsible": section,
    "click-collapsible-2": link_behind_tabs,
    "click-collapsible-2-nodelay": link_behind_tabs,
    "click-collapsible-nodelay": section,
    "click-menu": menu,
    "click-menu-2": menu_with_icons,
    "click-pie": pie,
    "click-pie-nodelay": pie,
    "click-tab": tab,
    "click-tab-2": link_behind_tabs,
    "click-tab-2-easy": link_behind_tabs,
    "click-tab-2-hard": link_behind_tabs,
    "click-tab-2-medium": link_behind_tabs,
    "navigate-tree": tree,
}
