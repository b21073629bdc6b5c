"""Oracles of the pages where what is sought has to be unfolded first: tabs, sections, menus, trees."""

from __future__ import annotations

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action, Hover
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, number, on


def section(sight: WidgetReader) -> Action:
    """Expand the one section, then submit."""
    folded = sight.all("tab")[0]
    return click(sight.one("button", "Submit") if on(folded, "expanded") else folded)


def link_behind_tabs(sight: WidgetReader) -> Action:
    """One tab or section after the other, until the link is to be seen."""
    (text,) = sight.asks('"(.+)"')
    tabs = sight.all("tab")
    place = next((place for place, tab in enumerate(tabs) if on(tab, "expanded")), -1)
    return click(sight.find("link", text) or tabs[(place + 1) % len(tabs)])


def tab(sight: WidgetReader) -> Action:
    """The tab of a number."""
    return click(sight.one("tab", f"Tab #{number(sight.goal)}"))


def menu(sight: WidgetReader) -> Action:
    """The deepest part of a path that is to be seen: what holds more opens under the mouse."""
    (path,) = sight.asks("Select (.+)")
    *holders, leaf = path.split(">")
    if item := sight.find("menuitem", leaf):
        return click(item)
    seen = (sight.find("menuitem", name) for name in reversed(holders))
    item = next(filter(None, seen), None)
    if item is None or item.id is None:
        raise NoOracle("no part of the path is to be seen")
    return Hover(item.id)


def menu_with_icons(sight: WidgetReader) -> Action:
    """An item by its label or its icon: open the menu, then the part of it that holds more."""
    label, icon = sight.asks('labeled "(.+)"|with the (.+) icon')
    items = sight.all("menuitem")
    if not items:
        return click(sight.one("button", "Menu"))
    # The name of an item is its icon and its label, so neither is the whole of it.
    found = (item for item in items if (item.name.endswith(f" {label}") if label else item.name.startswith(f"{icon} ")))
    return click(next(found, None) or next(item for item in items if item.name == "Playback"))


def pie(sight: WidgetReader) -> Action:
    """Open the menu, then an item."""
    (label,) = sight.asks('"(.+)"')
    plus = sight.find("menuitem", "+")
    return click(plus or sight.one("menuitem", label))


def tree(sight: WidgetReader) -> Action:
    """Open folder after folder, until the name is to be seen."""
    (name,) = sight.asks('"(.+)"')
    found = sight.find("treeitem", name)
    folded = (item for item in sight.all("treeitem") if item.properties.get("expanded", "").lower() == "false")
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
