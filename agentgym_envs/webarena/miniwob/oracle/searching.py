"""Oracles of the pages where results come in several pages."""

from __future__ import annotations

from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, holds, number, write

_RESULTS = 3
"""So many are on a page of the search engine."""


def contact(page: WidgetReader) -> Action:
    """Turn the pages until the person's is there, then click what is asked for."""
    person, what = page.asks(r"Find (.+) in the contact book and click on their (\w+)")
    if page.one("heading").name != person:
        return click(page.one("link", ">"))
    label = next(e for e in page.body if e.name.startswith(f"{what.capitalize()}:"))
    return click(next(e for e in page.after(label) if e.role == "link"))


def search(page: WidgetReader) -> Action:
    """Search, go to the page of the result of that number, click it."""
    words, number_wanted = page.asks(r'enter "(.+)" and press "Search", then find and click the (\d)')
    page_index, row = divmod(int(number_wanted) - 1, _RESULTS)
    links = page.all("link")
    if not holds(page.fields[0], words):
        return write(page.fields[0], words)
    if not links:
        return click(page.one("button", "Search"))
    current = next(link for link in links if "current" in link.properties)
    if number(current.name) != page_index + 1:
        return click(page.one("link", str(page_index + 1)))
    # The result that is asked for is named as what is searched for, unless these are the results of another search.
    return click(links[row] if links[row].name == words else page.one("button", "Search"))


SOLVERS: dict[str, Solver] = {"phone-book": contact, "search-engine": search}
