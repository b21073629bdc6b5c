"""Oracles of the pages with several pages of results."""

from __future__ import annotations

from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, holds, number, write

_RESULTS = 3
"""The number of results on a page of the search engine."""


def contact(page: WidgetReader) -> Action:
    """Turn the pages to the person, then click the requested link."""
    person, what = page.asks(r"Find (.+) in the contact book and click on their (\w+)")
    if page.one("heading").name != person:
        return click(page.one("link", ">"))
    label = next(e for e in page.body if e.name.startswith(f"{what.capitalize()}:"))
    return click(next(e for e in page.after(label) if e.role == "link"))


def search(page: WidgetReader) -> Action:
    """Search, open the page with the n-th result, and click the result."""
    words, position = page.asks(r'enter "(.+)" and press "Search", then find and click the (\d)')
    page_index, row = divmod(int(position) - 1, _RESULTS)
    links = page.all("link")
    if not holds(page.fields[0], words):
        return write(page.fields[0], words)
    if not links:
        return click(page.one("button", "Search"))
    current = next(link for link in links if "current" in link.properties)
    if number(current.name) != page_index + 1:
        return click(page.one("link", str(page_index + 1)))
    # The title of the right result is the search term; otherwise these are the results of another search.
    return click(links[row] if links[row].name == words else page.one("button", "Search"))


SOLVERS: dict[str, Solver] = {"phone-book": contact, "search-engine": search}
