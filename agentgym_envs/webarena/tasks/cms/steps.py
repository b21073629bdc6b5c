"""Oracle steps in the administration: navigation, forms, and reading its pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.tasks.page_reader import Name, PageReader
from agentgym_envs.webarena.tasks.steps import given

ORDER_LINK = re.compile(r"#?\d{9}")
"""The text of a link to an order, invoice, shipment or credit memo."""
STATUS = given(lambda status: status.capitalize())
"""An argument of a step: the parameter `status` as pages write it."""
SELECT_ALL = "Select all on this page"
_MOST_TABLES = 12


def open_from_menu(page: PageReader, section: str, entry: str) -> Iterator[str]:
    """Open a page from the menu on the left."""
    yield from page.expand(section)
    yield page.click("link", entry, after=section)


def search(page: PageReader, text: str, result: Name) -> Iterator[str]:
    """Search from the header and open one of the results."""
    yield page.type("Search", text, enter=True)
    yield page.click("link", result)


def open_from_grid(page: PageReader, key: str, column: str) -> Iterator[str]:
    """Open the row of a grid that contains a text, by the link in a column."""
    title = next(row[column] for row in page.table() if key in row.values())
    yield page.click_in(key, "link", title)


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
    """Type into fields by their labels; `enter` submits the form with the last one."""
    for number, (label, value) in enumerate(values.items(), 1):
        yield page.type(label, str(value), enter=enter and number == len(values))


def filter_grid(page: PageReader, values: Mapping[str, object], /, **choices: str) -> Iterator[str]:
    """Filter a grid by drop-down lists and text fields. In the names of `choices`, "_" replaces a space."""
    yield from page.expand("Filters")
    for label, option in choices.items():
        yield page.choose(label.replace("_", " "), option, after="Filters")
    yield from fill_in(page, values, enter=True)
    if not values:
        yield page.click("button", "Apply Filters")


def apply_to_rows(page: PageReader, action: str, names: Sequence[Name]) -> Iterator[str]:
    """Select rows of a grid and apply an action to them."""
    for name in names:
        yield page.click("checkbox", name)
    yield page.choose("Actions", action)
    yield page.click("button", "Submit")


def add_comment(page: PageReader, text: str) -> Iterator[str]:
    """Comment on the open order and notify the customer."""
    yield page.type("Comment", text)
    yield page.click("checkbox", "Notify Customer by E-mail")
    yield page.click("button", "Submit Comment")


def table_with(page: PageReader, column: str) -> list[dict[str, str]]:
    """Return the rows of the first table with a column of that name."""
    for nth in range(_MOST_TABLES):
        rows = page.table(nth=nth)
        if rows and column in rows[0]:
            return rows
    raise NoOracle(f"the page has no table with a column {column}")


def field_value(page: PageReader, label: str) -> str:
    """Return the value of a text field."""
    return page.find("textbox", label).properties.get("value", "")


def count_found(page: PageReader) -> int:
    """Return the number of records that a grid reports."""
    return int(page.search(r"^([\d,]+) records? found$")[0].replace(",", ""))
