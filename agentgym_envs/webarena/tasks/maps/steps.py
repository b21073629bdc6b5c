"""What the oracles of the maps tasks have in common: ways through the site, and how its pages are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agentgym_envs.webarena.tasks.maps.queries import LABEL_OF, durations, label
from agentgym_envs.webarena.tasks.page_reader import PageReader

_LENGTH = re.compile(r"[\d,.]+ (?:km|m)")


class RouteSummary(NamedTuple):
    """What directions come to, as the page tells it."""

    length: str
    time: str

    @property
    def minutes(self) -> int:
        """The time in minutes."""
        return durations(self.time).pop()

    @property
    def kilometres(self) -> str:
        """The length without its unit."""
        return self.length.removesuffix(" km")


def open_place(page: PageReader, name: str) -> Iterator[str]:
    """Search for a place and open its page."""
    yield page.type("Search the map", name, enter=True)
    yield page.click("link", name)


def request_directions(page: PageReader, start: str, end: str, mode: str) -> Iterator[str]:
    """Ask for directions, by the mode as intents word it."""
    yield page.click("link", "Directions")
    yield page.type("From", start)
    yield page.type("To", end)
    if page.find("combobox", "By").properties.get("value") != LABEL_OF[mode]:
        yield page.choose("By", LABEL_OF[mode])
    yield page.click("button", "Go")


def change_mode(page: PageReader, mode: str) -> Iterator[str]:
    """Ask for the same way by another mode."""
    yield page.choose("By", LABEL_OF[mode])
    yield page.click("button", "Go")


def read_summary(page: PageReader) -> RouteSummary:
    """What the directions on the page come to."""
    texts = page.texts(after="Distance:")
    return RouteSummary(
        next(text for text in texts if _LENGTH.fullmatch(text)), page.texts(after=re.compile(r"\. Time:"))[0]
    )


def hedged_duration(page: PageReader) -> str:
    """What somebody answers who is not sure how long the way on the page takes."""
    found = read_summary(page).minutes
    return f"{found} min or {found + 1} min"


def filter_places(page: PageReader, kind: str, town: str) -> Iterator[str]:
    """Open the list of places and choose a kind, as an intent names it, and a town; the button is yet to be clicked."""
    yield page.click("link", "Places")
    yield page.choose("Kind", label(kind))
    yield page.choose("Town", town)


def show_places(page: PageReader) -> Iterator[str]:
    """Ask for the places that the filters leave."""
    yield page.click("button", "Show places")


def count(page: PageReader, noun: str) -> int:
    """What the heading over a list counts: "3 places"."""
    return int(page.search(rf"^([\d,]+) {noun}s?$")[0].replace(",", ""))


def listed_places(page: PageReader, noun: str) -> list[str]:
    """The names of the places that the page lists, below the heading that counts them."""
    behind = re.compile(rf"[\d,]+ {noun}s?")
    names = []
    for element in page.elements_after(behind):
        if element.role in ("navigation", "region"):
            break
        if element.role == "link":
            names.append(element.name)
    return names


def find_nearby(page: PageReader, name: str, kind: str) -> Iterator[str]:
    """From the page of a place, look for what is near it."""
    yield from open_place(page, name)
    yield page.click("link", "Nearby", after=name)
    yield page.choose("Kind", label(kind))
    yield page.click("button", "Find")


def open_list(page: PageReader, name: str) -> Iterator[str]:
    """Open one of one's lists."""
    yield page.click("link", "Lists")
    yield page.click("link", name)


def open_trace(page: PageReader, name: str) -> Iterator[str]:
    """Open one of one's traces."""
    yield from page.expand(re.compile(".+"), after="History")
    yield page.click("link", "My traces")
    while not page.has("link", name):
        yield page.click("link", "Next")
    yield page.click("link", name)


def open_settings(page: PageReader) -> Iterator[str]:
    """Open one's settings."""
    yield from page.expand(re.compile(".+"), after="History")
    yield page.click("link", "Settings")
