"""Oracle steps in the shop: navigation, forms, and reading its pages."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps, texts_of
from agentgym_envs.webarena.tasks.shopping.queries import options
from agentgym_envs.webarena.tasks.steps import given
from agentgym_envs.webarena.tasks.template import Params

_T = TypeVar("_T")
PRICE_UP, PRICE_DOWN = "Price: Low to High", "Price: High to Low"
_AMOUNT = re.compile(r"-?\$[\d,]+\.\d\d")


class ListedProduct(NamedTuple):
    """A product of a list."""

    name: str
    price: str
    reviews: int


class ListedReview(NamedTuple):
    """A review on a page."""

    title: str
    nickname: str
    stars: int


class ListedOrder(NamedTuple):
    """An order of the list of orders; `day` has the form of the pages ("Mar 13, 2026")."""

    number: str
    day: str
    total: str
    status: str


PLACED_ON_DAY = given(lambda day: lambda order: order.day == day)
"""An argument of a step: a condition for the order of the parameter `day`."""
WITH_NUMBER = given(lambda number: lambda order: order.number == number)
"""An argument of a step: a condition for the order of the parameter `number`."""
PRICE_TO_EXTREME = given(lambda extreme: PRICE_UP if extreme == "cheapest" else PRICE_DOWN)
"""An argument of a step: the order of a list in which the product of the parameter `extreme` is the first."""


def nth_product(index: int) -> Any:
    """Return an argument of a step: the name of a product of the list on the page."""
    return given(lambda page: listed_products(page)[index].name)


def cents(amount: str) -> int:
    """Return an amount on a page in cents."""
    return int(re.sub(r"[$,.]", "", amount))


def search(page: PageReader, words: str) -> Iterator[str]:
    """Search the shop."""
    yield page.type("Search", words, enter=True)


def open_product(page: PageReader, name: str) -> Iterator[str]:
    """Search for a product and open its page."""
    yield from search(page, name)
    yield page.click("link", name)


def compare(page: PageReader, name: str) -> Iterator[str]:
    """Add a product to the comparison list."""
    yield from open_product(page, name)
    yield page.click("button", "Add to Compare")


def put_into_cart(page: PageReader, name: str) -> Iterator[str]:
    """Add a product to the cart."""
    yield from open_product(page, name)
    yield page.click("button", "Add to Cart")


def open_category(page: PageReader, department: str, category: str) -> Iterator[str]:
    """Expand a department's menu and choose a category."""
    yield from page.expand(department)
    yield page.click("link", category)


def apply_filter(page: PageReader, attribute: str, value: str) -> Iterator[str]:
    """Expand a filter of a list and choose a value."""
    yield from page.expand(attribute, after="Shop By")
    yield page.click("link", value, after="Shop By")


def price(page: PageReader) -> str:
    """Return the current price of the product on the page."""
    return _first(element.name for element in page.elements_after("Breadcrumbs") if _AMOUNT.fullmatch(element.name))


def old_price(page: PageReader) -> str:
    """Return the regular price of the product on offer on the page."""
    return page.value("instead of")


def detail(page: PageReader, name: str) -> str:
    """Return a property of the product on the page."""
    return page.value(name) if page.has("rowheader", name) else _first(page.search(rf"{name}: (.+)"))


def review_count(page: PageReader) -> int:
    """Return the number of reviews of the product on the page."""
    found = page.all("link", re.compile(r"[\d,]+ Reviews?"))
    return int(found[0].name.split()[0]) if found else 0


def item_count(page: PageReader) -> int:
    """Return the number of products in a list, on all of its pages."""
    return int(page.search(r"^(?:Items \d+-\d+ of )?(\d+)(?: Items?)?$")[0])


def listed_products(page: PageReader) -> list[ListedProduct]:
    """Return the products of the list on the page, without one at which the observation is truncated."""
    every = (texts_of(line) for line in page.lines("article"))
    return [_product(texts) for texts in every if any(map(_AMOUNT.fullmatch, texts))]


def show_few(page: PageReader) -> Iterator[str]:
    """Show so few products per page that the observation has all of them, if the page lets one choose."""
    if page.has("combobox", "Per page") and page.find("combobox", "Per page").properties.get("value") != "12":
        yield page.choose("Per page", "12")


def _product(texts: list[str]) -> ListedProduct:
    counts = [int(text.split()[0]) for text in texts if re.fullmatch(r"\d+ Reviews?", text)]
    return ListedProduct(texts[0], _first(text for text in texts if _AMOUNT.fullmatch(text)), sum(counts))


def open_reviews(page: PageReader, product: str) -> Iterator[str]:
    """Open all reviews of a product."""
    yield from open_product(page, product)
    yield from show_reviews(page)


def show_reviews(page: PageReader) -> Iterator[str]:
    """Open all reviews of the product on the page."""
    yield page.click("link", re.compile(r"\d+ Reviews?"))


def all_reviews(page: PageReader, product: str) -> Steps[list[ListedReview]]:
    """Read all reviews of a product, from all pages."""
    yield from open_product(page, product)
    return (yield from read_reviews(page))


def read_reviews(page: PageReader) -> Steps[list[ListedReview]]:
    """Read all reviews of the product on the page."""
    yield from show_reviews(page)
    found = _reviews(page)
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        found += _reviews(page)
    return found


def _reviews(page: PageReader) -> list[ListedReview]:
    return [_review(texts_of(line)) for line in page.lines("article")]


def _review(texts: list[str]) -> ListedReview:
    title, stars, by = texts[:3]
    return ListedReview(title, by.removeprefix("by ").rsplit(", ", 2)[0], int(stars.removeprefix("Rating: ")[0]))


def write_review(page: PageReader, params: Params) -> Iterator[str]:
    """Write a review of the product on the page."""
    yield page.click("link", re.compile("Add Your Review|Be the first .*"))
    yield page.click("radio", re.compile(rf"{params['stars']} stars?"))
    yield page.type("Nickname", params["nickname"])
    yield page.type("Summary", params["title"])
    yield page.type("Review", params["text"])
    yield page.click("button", "Submit Review")


def all_orders(page: PageReader, status: str = "") -> Steps[list[ListedOrder]]:
    """Read the list of orders, all pages of it; `status` selects those of one status."""
    yield page.click("link", "My Orders")
    if status:
        yield page.choose("Status", status)
    found = listed_orders(page)
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        found += listed_orders(page)
    return found


def find_order(page: PageReader, fits: Callable[[ListedOrder], bool]) -> Steps[ListedOrder]:
    """Turn the pages of the list of orders until one matches, and return it."""
    yield page.click("link", "My Orders")
    while not any(map(fits, listed_orders(page))):
        yield page.click("link", "Next")
    return _first(filter(fits, listed_orders(page)))


def next_order(page: PageReader, number: str) -> Steps[str]:
    """Read the number of the order after another one, which is in the list on the page."""
    numbers = [order.number for order in listed_orders(page)]
    index = numbers.index(number) + 1
    if index < len(numbers):
        return numbers[index]
    yield page.click("link", "Next")
    return listed_orders(page)[0].number


def open_order(page: PageReader, fits: Callable[[ListedOrder], bool]) -> Steps[ListedOrder]:
    """Open the first order of the list that matches, and return it."""
    order = yield from find_order(page, fits)
    yield page.click_in(order.number, "link", "View Order")
    return order


def listed_orders(page: PageReader) -> list[ListedOrder]:
    """Return the orders of the list on the page."""
    return [ListedOrder(row["Order #"], row["Date"], row["Order Total"], row["Status"]) for row in page.table()]


def is_within(day: str, time: str) -> bool:
    """Return whether a day ("Mar 13, 2026") is in a year or month ("2026", "March 2026")."""
    return day.endswith(time[-4:]) and (len(time) == 4 or time.startswith(day[:3]))


def months(first: str, last: str) -> list[str]:
    """Return all months from the first to the last ("March 2026")."""
    begin, end = (datetime.datetime.strptime(time, "%B %Y") for time in (first, last))
    span = range(12 * begin.year + begin.month - 1, 12 * end.year + end.month)
    return [f"{datetime.date(number // 12, number % 12 + 1, 1):%B %Y}" for number in span]


def tracking_number(page: PageReader) -> str:
    """Return the tracking number on an order's page."""
    return page.search(r"Tracking number: .*?(\d+)$")[0]


def chosen_options(page: PageReader, product: str) -> dict[str, str]:
    """Return the options of a product on an order's page, by their names in lower case."""
    return options(page.search(rf"^{re.escape(product)} (\S.*)$")[0])


def cancel_order(page: PageReader) -> Iterator[str]:
    """Cancel the order on the page."""
    yield page.click("button", "Cancel Order")
    yield page.click("button", "Cancel the order")


def choose_options(page: PageReader, text: str) -> Iterator[str]:
    """Choose the options ("Colour: Blue, Size: M") of the product on the page."""
    for part in text.split(", "):
        name, _, value = part.partition(": ")
        yield page.choose(name, re.compile(rf"{re.escape(value)}( \+\$.*)?"))


def open_cart(page: PageReader) -> Iterator[str]:
    """Open the cart."""
    yield page.click("link", re.compile(r"My Cart \(\d+\)"))


def apply_coupon(page: PageReader, code: str) -> Iterator[str]:
    """Apply a coupon to the cart."""
    yield page.type("Discount Code", code, enter=True)


def check_out(page: PageReader, params: Params) -> Iterator[str]:
    """Order the contents of the cart on the page."""
    yield page.click("link", "Proceed to Checkout")
    yield page.click("radio", re.compile(rf".*, {re.escape(params['street'])}, .*"))
    yield page.click("radio", re.compile(rf"{re.escape(params['shipping'])}: .*"))
    yield page.click("button", "Next")
    yield page.click("radio", params["payment"])
    yield page.click("button", "Place Order")


def open_addresses(page: PageReader) -> Iterator[str]:
    """Open the address book."""
    yield page.click("link", "My Account")
    yield page.click("link", "Address Book")


def add_address(page: PageReader, params: Params) -> Iterator[str]:
    """Add an address to the address book on the page."""
    yield page.click("link", "Add New Address")
    yield page.type("Name", params["name"])
    yield page.type("Street Address", params["street"])
    yield page.type("Town", params["town"])
    yield page.type("Zip/Postal Code", params["zip"])
    yield page.choose("Region", params["region"])
    yield page.type("Phone Number", params["phone"])
    yield page.click("button", "Save Address")


def _first(found: Iterable[_T]) -> _T:
    for one in found:
        return one
    raise NoOracle("the page does not show the expected text")
