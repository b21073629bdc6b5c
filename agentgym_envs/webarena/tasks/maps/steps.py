"""What the oracles of the maps tasks have in common: ways through the site, and how its pages are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agentgym_envs.webarena.tasks.maps.queries import LABEL_OF, durations, label
from agentgym_envs.webarena.tasks.page_reader import PageReader

_SUM = re.compile(r"[\d,.]+ (?:km|m)")


class Sum(NamedTuple):
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


def open_place(sight: PageReader, name: str) -> Iterator[str]:
    """Search for a place and open its page."""
    yield sight.type("Search the map", name, enter=True)
    yield sight.click("link", name)


def ask_the_way(sight: PageReader, start: str, end: str, mode: str) -> Iterator[str]:
    """Ask for directions, by the mode as intents word it."""
    yield sight.click("link", "Directions")
    yield sight.type("From", start)
    yield sight.type("To", end)
    if sight.find("combobox", "By").properties.get("value") != LABEL_OF[mode]:
        yield sight.choose("By", LABEL_OF[mode])
    yield sight.click("button", "Go")


def change_mode(sight: PageReader, mode: str) -> Iterator[str]:
    """Ask for the same way by another mode."""
    yield sight.choose("By", LABEL_OF[mode])
    yield sight.click("button", "Go")


def read_sum(sight: PageReader) -> Sum:
    """What the directions on the page come to."""
    texts = sight.texts(after="Distance:")
    return Sum(next(text for text in texts if _SUM.fullmatch(text)), sight.texts(after=re.compile(r"\. Time:"))[0])


def guesses(sight: PageReader) -> str:
    """What somebody answers who is not sure how long the way on the page takes."""
    found = read_sum(sight).minutes
    return f"{found} min or {found + 1} min"


def filter_places(sight: PageReader, kind: str, town: str) -> Iterator[str]:
    """Open the list of places and choose a kind, as an intent names it, and a town; the button is yet to be clicked."""
    yield sight.click("link", "Places")
    yield sight.choose("Kind", label(kind))
    yield sight.choose("Town", town)


def show_places(sight: PageReader) -> Iterator[str]:
    """Ask for the places that the filters leave."""
    yield sight.click("button", "Show places")


def count(sight: PageReader, noun: str) -> int:
    """What the heading over a list counts: "3 places"."""
    return int(sight.search(rf"^([\d,]+) {noun}s?$")[0].replace(",", ""))


def listed(sight: PageReader, noun: str) -> list[str]:
    """The names of the places that the page lists, below the heading that counts them."""
    behind = re.compile(rf"[\d,]+ {noun}s?")
    names = []
    for element in sight.behind(behind):
        if element.role in ("navigation", "region"):
            break
        if element.role == "link":
            names.append(element.name)
    return names


def find_nearby(sight: PageReader, name: str, kind: str) -> Iterator[str]:
    """From the page of a place, look for what is near it."""
    yield from open_place(sight, name)
    yield sight.click("link", "Nearby", after=name)
    yield sight.choose("Kind", label(kind))
    yield sight.click("button", "Find")


def open_list(sight: PageReader, name: str) -> Iterator[str]:
    """Open one of one's lists."""
    yield sight.click("link", "Lists")
    yield sight.click("link", name)


def open_trace(sight: PageReader, name: str) -> Iterator[str]:
    """Open one of one's traces."""
    yield from sight.unfold(re.compile(".+"), after="History")
    yield sight.click("link", "My traces")
    while not sight.has("link", name):
        yield sight.click("link", "Next")
    yield sight.click("link", name)


def open_settings(sight: PageReader) -> Iterator[str]:
    """Open one's settings."""
    yield from sight.unfold(re.compile(".+"), after="History")
    yield sight.click("link", "Settings")
