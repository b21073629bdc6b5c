"""Oracles of the pages with a calendar."""

from __future__ import annotations

import re

from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, holds, write
from agentgym_envs.webarena.miniwob.oracle.reading import ticket

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def date(page: WidgetReader) -> Action:
    """Choose a day in a calendar."""
    (day,) = page.asks(r"(\d\d/\d\d/\d{4})")
    return choose_day(page, page.fields[0], day) or click(page.one("button", "Submit"))


def choose_day(page: WidgetReader, field: Element, date: str) -> Action | None:
    """Return the next step towards a date: open the calendar, turn to the month, click. None if the date is set."""
    month, day, year = map(int, date.split("/"))
    if holds(field, date):
        return None
    shown = next((text for text in page.texts if text in _MONTHS), None)
    if shown is None:
        return click(field)
    year_shown = int(next(text for text in page.texts if re.fullmatch(r"\d{4}", text)))
    turns = (
        (year, month) > (year_shown, _MONTHS.index(shown) + 1),
        (year, month) < (year_shown, _MONTHS.index(shown) + 1),
    )
    if any(turns):
        return click(page.one("button", "Next" if turns[0] else "Prev"))
    return click(page.one("link", str(day)))


def flight(page: WidgetReader) -> Action:
    """Search for a flight, and book the cheapest or shortest one."""
    best, start, end, day = page.asks(r"Book the (\w+) one-way flight from: (.+) to: (.+) on (\d\d/\d\d/\d{4})\.")
    if back := page.find("button", "Back"):  # the results name the destination as the objective does
        return ticket(_flights(page, best)) if end in page.texts else click(back)
    fields = page.fields
    return (
        _choose_airport(page, fields[0], start)
        or _choose_airport(page, fields[1], end)
        or choose_day(page, fields[2], day)
        or click(page.one("button", "Search"))
    )


def _choose_airport(page: WidgetReader, field: Element, name: str) -> Action | None:
    """Type a town or an airport and choose the suggestion; None if it is set."""

    def fits(text: str) -> bool:
        return text.startswith(f"{name} (") or text.endswith(f"({name})")

    if fits(field.properties.get("value", "")):
        return None
    offered = next((item for item in page.all("menuitem") if fits(item.name)), None)
    return click(offered) if offered else write(field, name)


def _flights(page: WidgetReader, best: str) -> WidgetReader:
    """Return the found flights in the form of the tickets of `reading.ticket`."""
    rows = tuple(e for e in page.body if e.name.startswith("Book flight for") or re.fullmatch(r"\d+h \d+m", e.name))
    return WidgetReader("cheapest cost" if best == "cheapest" else "shortest duration", rows)


SOLVERS: dict[str, Solver] = {
    "book-flight": flight,
    "book-flight-nodelay": flight,
    "choose-date": date,
    "choose-date-easy": date,
    "choose-date-medium": date,
    "choose-date-nodelay": date,
}
