"""Oracles of the pages with tabs, sections, menus or trees to expand."""

from __future__ import annotations

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action, Hover
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, number, on


def section(page: WidgetReader) -> Action:
    """Expand the one section, then submit."""
    folded = page.all("tab")[0]
    return click(page.one("button", "Submit") if on(folded, "expanded") else folded)


def link_behind_tabs(page: WidgetReader) -> Action:
    """Open one tab or section after another until the link is visible."""
    (text,) = page.asks('"(.+)"')
    tabs = page.all("tab")
    current = next((index for index, tab in enumerate(tabs) if on(tab, "expanded")), -1)
    return click(page.find("link", text) or tabs[(current + 1) % len(tabs)])


def tab(page: WidgetReader) -> Action:
    """Open the tab with the number in the objective."""
    return click(page.one("tab", f"Tab #{number(page.goal)}"))


def menu(page: WidgetReader) -> Action:
    """Hover over the deepest visible part of a path, which opens under the mouse; click the last one."""
    (path,) = page.asks("Select (.+)")
    *holders, leaf = path.split(">")
    if item := page.find("menuitem", leaf):
        return click(item)
    seen = (page.find("menuitem", name) for name in reversed(holders))
    item = next(filter(None, seen), None)
    if item is None or item.id is None:
        raise NoOracle("the page shows no part of the path")
    return Hover(item.id)


def menu_with_icons(page: WidgetReader) -> Action:
    """Click an item by its label or icon: open the menu, then its submenu."""
    label, icon = page.asks('labeled "(.+)"|with the (.+) icon')
    items = page.all("menuitem")
    if not items:
        return click(page.one("button", "Menu"))
    # The name of an item consists of its icon and its label.
    found = (item for item in items if (item.name.endswith(f" {label}") if label else item.name.startswith(f"{icon} ")))
    return click(next(found, None) or next(item for item in items if item.name == "Playback"))


def pie(page: WidgetReader) -> Action:
    """Open the menu and click an item."""
    (label,) = page.asks('"(.+)"')
    plus = page.find("menuitem", "+")
    return click(plus or page.one("menuitem", label))


def tree(page: WidgetReader) -> Action:
    """Open one folder after another until the name is visible."""
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
