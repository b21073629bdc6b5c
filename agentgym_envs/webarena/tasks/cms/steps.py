"""Steps of oracles in the administration: navigation, forms, and reading its pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.tasks.page_reader import Name, PageReader

ORDER_LINK = re.compile(r"#?\d{9}")
"""The text of a link to an order, invoice, shipment or credit memo."""
SELECT_ALL = "Select all on this page"
_MOST_TABLES = 12


def open_from_menu(page: PageReader, section: str, entry: str) -> Iterator[str]:
    """Open a page by the menu at the left."""
    yield from page.expand(section)
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


def filter_grid(page: PageReader, values: Mapping[str, object], **choices: str) -> Iterator[str]:
    """Filter a grid: choose from lists (by labels in which "_" stands for a space), type, and send it."""
    yield from page.expand("Filters")
    for label, option in choices.items():
        yield page.choose(label.replace("_", " "), option, after="Filters")
    yield from fill_in(page, values, enter=True)
    if not values:
        yield page.click("button", "Apply Filters")


def apply_to_rows(page: PageReader, action: str, names: Sequence[Name]) -> Iterator[str]:
    """Tick rows of a grid and do something with them."""
    for name in names:
        yield page.click("checkbox", name)
    yield page.choose("Actions", action)
    yield page.click("button", "Submit")


def add_comment(page: PageReader, text: str) -> Iterator[str]:
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


def field_value(page: PageReader, label: str) -> str:
    """What a field holds."""
    return page.find("textbox", label).properties.get("value", "")


def count_found(page: PageReader) -> int:
    """How many records a grid says it has found."""
    return int(page.search(r"^([\d,]+) records? found$")[0].replace(",", ""))
