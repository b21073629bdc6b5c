"""Oracles of the pages where results come in several pages."""

from __future__ import annotations

from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, holds, number, write

_RESULTS = 3
"""So many are on a page of the search engine."""


def contact(sight: WidgetReader) -> Action:
    """Turn the pages until the person's is there, then click what is asked for."""
    person, what = sight.asks(r"Find (.+) in the contact book and click on their (\w+)")
    if sight.one("heading").name != person:
        return click(sight.one("link", ">"))
    label = next(e for e in sight.body if e.name.startswith(f"{what.capitalize()}:"))
    return click(next(e for e in sight.after(label) if e.role == "link"))


def search(sight: WidgetReader) -> Action:
    """Search, go to the page of the result of that number, click it."""
    words, place = sight.asks(r'enter "(.+)" and press "Search", then find and click the (\d)')
    page, row = divmod(int(place) - 1, _RESULTS)
    links = sight.all("link")
    if not holds(sight.fields[0], words):
        return write(sight.fields[0], words)
    if not links:
        return click(sight.one("button", "Search"))
    current = next(link for link in links if "current" in link.properties)
    if number(current.name) != page + 1:
        return click(sight.one("link", str(page + 1)))
    # The result that is asked for is named as what is searched for, unless these are the results of another search.
    return click(links[row] if links[row].name == words else sight.one("button", "Search"))


SOLVERS: dict[str, Solver] = {"phone-book": contact, "search-engine": search}
