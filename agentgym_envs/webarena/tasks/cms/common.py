"""What the tasks of the administration share: how their instances are picked, and ways through the site."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TypeVar

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.sites.clock import NOW
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.tasks.page_reader import Name, PageReader
from agentgym_envs.webarena.tasks.template import Template

ADMIN = ORIGINS["admin"]
ORDER_LINK = re.compile(r"#?\d{9}")
"""How an order or one of its papers is called where one opens it."""
SELECT_ALL = "Select all on this page"
MANY = 60
"""Instances that are as good as all: no world has more tasks of one template than a third of that."""
MONTHS = {
    "September 2025": "2025-09",
    "October 2025": "2025-10",
    "November 2025": "2025-11",
    "December 2025": "2025-12",
    "January 2026": "2026-01",
    "February 2026": "2026-02",
}
"""The last six that are over, as databases have them."""
_MOST_TABLES = 12
_T = TypeVar("_T")


class OfAdmin(Template):
    """A task that begins on the administration's dashboard."""

    group, sites = "cms", ("admin",)


def one_each(found: Iterable[tuple[Hashable, _T]]) -> list[_T]:
    """One instance for each answer, so that none is solved by what solves another."""
    chosen: dict[Hashable, _T] = {}
    for answer, params in found:
        chosen.setdefault(answer, params)
    return list(chosen.values())


def some(found: Iterable[_T], rng: Random, most: int = MANY) -> list[_T]:
    """Some of what was found, in any order."""
    chosen = list(found)
    return rng.sample(chosen, min(most, len(chosen)))


def go(page: PageReader, section: str, entry: str) -> Iterator[str]:
    """Open a page by the menu at the left."""
    yield from page.unfold(section)
    yield page.click("link", entry, after=section)


def search(page: PageReader, text: str, result: Name) -> Iterator[str]:
    """Open one of what the search in the header finds."""
    yield page.type("Search", text, enter=True)
    yield page.click("link", result)


def open_order(page: PageReader, number: str) -> Iterator[str]:
    """Open an order by its number."""
    yield from search(page, number, f"#{number}")


def open_customer(page: PageReader, name: str) -> Iterator[str]:
    """Open a customer by name."""
    yield from search(page, name, name)


def open_product(page: PageReader, name: str) -> Iterator[str]:
    """Open a product by name."""
    yield from search(page, name, name)


def fill_in(page: PageReader, values: Mapping[str, object], *, enter: bool = False) -> Iterator[str]:
    """Type into fields by their labels; with Enter in the last, the form is sent."""
    for place, (label, value) in enumerate(values.items(), 1):
        yield page.type(label, str(value), enter=enter and place == len(values))


def filtered(page: PageReader, values: Mapping[str, object], **choices: str) -> Iterator[str]:
    """Filter a grid: choose from lists (by labels in which "_" stands for a space), type, and send it."""
    yield from page.unfold("Filters")
    for label, option in choices.items():
        yield page.choose(label.replace("_", " "), option, after="Filters")
    yield from fill_in(page, values, enter=True)
    if not values:
        yield page.click("button", "Apply Filters")


def ticked(page: PageReader, action: str, names: Sequence[Name]) -> Iterator[str]:
    """Tick rows of a grid and do something with them."""
    for name in names:
        yield page.click("checkbox", name)
    yield page.choose("Actions", action)
    yield page.click("button", "Submit")


def days_of(month: str) -> dict[str, str]:
    """The first and last day of one of MONTHS, for fields From and To."""
    key = MONTHS[month]
    return {"From": f"{key}-01", "To": f"{key}-{calendar.monthrange(*map(int, key.split('-')))[1]}"}


def spans(rng: Random, count: int, *, least: int, most: int, days: int = 420) -> Iterator[tuple[str, str]]:
    """First and last days of spans of time, drawn from the last `days` days, `least` to `most` days long."""
    for _ in range(count):
        length = rng.randint(least, most)
        first = NOW - datetime.timedelta(days=rng.randint(length + 5, days))
        yield f"{first:%Y-%m-%d}", f"{first + datetime.timedelta(days=length):%Y-%m-%d}"


def comment(page: PageReader, text: str) -> Iterator[str]:
    """Comment on the order that is open, with a notification."""
    yield page.type("Comment", text)
    yield page.click("checkbox", "Notify Customer by E-mail")
    yield page.click("button", "Submit Comment")


def table_with(page: PageReader, column: str) -> list[dict[str, str]]:
    """The rows of the first table that has a column of that name."""
    for nth in range(_MOST_TABLES):
        rows = page.table(nth=nth)
        if rows and column in rows[0]:
            return rows
    raise NoOracle(f"there is no table with a column {column} to be seen")


def held(page: PageReader, label: str) -> str:
    """What a field holds."""
    return page.find("textbox", label).properties.get("value", "")


def count_found(page: PageReader) -> int:
    """How many records a grid says it has found."""
    return int(page.search(r"^([\d,]+) records? found$")[0].replace(",", ""))


def cents(told: object) -> int:
    """An amount such as "$1,249.50" in cents."""
    whole, _, rest = str(told).replace("$", "").replace(",", "").partition(".")
    return 100 * int(whole) + int(rest.ljust(2, "0") or 0)


def dollars(amount: int) -> str:
    """Cents as one types them: "12.50"."""
    return f"{amount / 100:.2f}"


def leads(rows: Sequence[Mapping[str, object]], column: str) -> bool:
    """Whether there are several rows, and the first is alone in what it has in a column."""
    return len(rows) > 1 and rows[0][column] != rows[1][column]
