"""Oracle steps on the map: navigation, forms, and reading its pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from agentgym_envs.webarena.tasks.maps.queries import LABEL_OF, durations, label
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import given

_LENGTH = re.compile(r"[\d,.]+ (?:km|m)")


class RouteSummary(NamedTuple):
    """The length and the travel time of a route, as the page writes them."""

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


def nth_place(index: int) -> Any:
    """Return an argument of a step: the name of a place of the list on the page."""
    return given(lambda page: listed_places(page, "place")[index])


def report_problem(page: PageReader, text: str) -> Iterator[str]:
    """Add a note about the place on the page."""
    yield page.click("link", "Report a problem")
    yield page.type("What is wrong or missing?", text)
    yield page.click("button", "Add note")


def open_place(page: PageReader, name: str) -> Iterator[str]:
    """Search for a place and open its page."""
    yield page.type("Search the map", name, enter=True)
    yield page.click("link", name)


def request_directions(page: PageReader, start: str, end: str, mode: str) -> Iterator[str]:
    """Request directions, with the mode as intents write it."""
    yield page.click("link", "Directions")
    yield page.type("From", start)
    yield page.type("To", end)
    if page.find("combobox", "By").properties.get("value") != LABEL_OF[mode]:
        yield page.choose("By", LABEL_OF[mode])
    yield page.click("button", "Go")


def directions_from_here(page: PageReader, end: str, mode: str) -> Iterator[str]:
    """Request directions from the place on the page."""
    yield page.click("link", "Directions from here")
    yield page.type("To", end)
    if page.find("combobox", "By").properties.get("value") != LABEL_OF[mode]:
        yield page.choose("By", LABEL_OF[mode])
    yield page.click("button", "Go")


def change_mode(page: PageReader, mode: str) -> Iterator[str]:
    """Request the same directions for another mode."""
    yield page.choose("By", LABEL_OF[mode])
    yield page.click("button", "Go")


def read_summary(page: PageReader) -> RouteSummary:
    """Return the summary of the directions on the page."""
    texts = page.texts(after="Distance:")
    return RouteSummary(
        next(text for text in texts if _LENGTH.fullmatch(text)), page.texts(after=re.compile(r"\. Time:"))[0]
    )


def hedged_duration(page: PageReader) -> str:
    """Return a wrong answer: two guesses of the travel time on the page."""
    found = read_summary(page).minutes
    return f"{found} min or {found + 1} min"


def filter_places(page: PageReader, kind: str, town: str) -> Iterator[str]:
    """Open the list of places and choose the filters for a kind and a town, without applying them."""
    yield page.click("link", "Places")
    yield page.choose("Kind", label(kind))
    yield page.choose("Town", town)


def show_places(page: PageReader) -> Iterator[str]:
    """Apply the filters of the list of places."""
    yield page.click("button", "Show places")


def count(page: PageReader, noun: str) -> int:
    """Return the number in the heading of a list: "3 places"."""
    return int(page.search(rf"^([\d,]+) {noun}s?$")[0].replace(",", ""))


def listed_places(page: PageReader, noun: str) -> list[str]:
    """Return the names of the places in the list on the page."""
    behind = re.compile(rf"[\d,]+ {noun}s?")
    names = []
    for element in page.elements_after(behind):
        if element.role in ("navigation", "region"):
            break
        if element.role == "link":
            names.append(element.name)
    return names


def find_nearby(page: PageReader, name: str, kind: str) -> Iterator[str]:
    """Open a place and search its surroundings."""
    yield from open_place(page, name)
    yield from find_near_here(page, kind)


def find_near_here(page: PageReader, kind: str, distance: str = "") -> Iterator[str]:
    """Search the surroundings of the place on the page, within a distance if one is given."""
    yield page.click("link", "Nearby", after="Directions from here")
    yield page.choose("Kind", label(kind))
    if distance:
        yield page.choose("Within", distance)
    yield page.click("button", "Find")


def open_list(page: PageReader, name: str) -> Iterator[str]:
    """Open one of the agent's lists."""
    yield page.click("link", "Lists")
    yield page.click("link", name)


def open_trace(page: PageReader, name: str) -> Iterator[str]:
    """Open one of the agent's traces."""
    yield from page.expand(re.compile(".+"), after="History")
    yield page.click("link", "My traces")
    yield from page.turn_to("link", name)
    yield page.click("link", name)


def open_settings(page: PageReader) -> Iterator[str]:
    """Open the agent's settings."""
    yield from page.expand(re.compile(".+"), after="History")
    yield page.click("link", "Settings")
