"""Tasks that end on an order, a customer or a filtered list of orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, AdminTemplate, one_per_answer, sample_some
from agentgym_envs.webarena.tasks.cms.steps import ORDER_LINK, filter_grid, open_from_menu, open_order
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params

_OTHER_FILTERS = """
[...new URLSearchParams(location.search)]
  .filter(([name, value]) => value.trim() && !["status", "total_from", "sort", "dir", "page"].includes(name))
  .map(pair => pair.join("=")).join() || "none"
"""
"""JavaScript for the other filters of a grid of orders: the URL may contain more than the task asks for."""


class ShowOrders(AdminTemplate):
    """Show the orders of a status with a minimum grand total."""

    name, kind, difficulty = "cms-show-orders", "navigation", "medium"
    intents = (
        "Show me all {status} orders with a grand total of at least ${least}.",
        "Filter the list of orders: status {status}, grand total from ${least}.",
        "I want to see the list of the {status} orders that came to ${least} or more, and no others.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        statuses = ("complete", "canceled", "closed", "pending", "processing")
        return [{"status": status, "least": least} for status in statuses for least in (50, 75, 100, 150, 200)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The filtered grid, in any spelling of the amount, and without other filters."""
        page = f"{ADMIN}/orders?status={params['status']}&total_from="
        wanted = EndsOn(OR.join(page + amount for amount in amount_spellings(params["least"])))
        return [wanted, PageHolds("last", _OTHER_FILTERS, exact="none")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Orders")
        yield from filter_grid(page, {"Grand total from": params["least"]}, Status=params["status"].capitalize())
        yield page.stop()


def amount_spellings(whole: int) -> tuple[str, ...]:
    """The spellings of an amount of whole dollars."""
    return f"{whole}", f"{whole}.00", f"${whole}", f"${whole}.00"


class NewestOrder(AdminTemplate):
    """Open a customer's newest order with a status."""

    name, kind, difficulty = "cms-open-newest-order", "navigation", "medium"
    intents = (
        "Open the most recent {status} order of {customer}.",
        "Go to the page of the newest order by {customer} that is {status}.",
        "Show me the details of the latest order with the status {status} that {customer} placed.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Customers with several orders of a status."""
        query = """SELECT c.first || ' ' || c.last AS customer, o.status FROM shop_orders o
            JOIN shop_customers c ON c.id = o.customer GROUP BY c.id, o.status HAVING COUNT(*) BETWEEN 2 AND 10
            ORDER BY c.id, o.status"""
        return sample_some(map(dict, world.rows(query)), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT o.id FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
            WHERE c.first || ' ' || c.last = ? AND o.status = ? ORDER BY o.moment DESC LIMIT 1"""
        return [EndsOn(f"{ADMIN}/orders/{world.value(query, params['customer'], params['status'])}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Orders")
        yield from filter_grid(page, {"Customer": params["customer"]}, Status=params["status"].capitalize())
        yield page.click("link", ORDER_LINK)
        yield page.stop()


class OrderCustomer(AdminTemplate):
    """Open the page of the customer who placed an order."""

    name, kind, difficulty = "cms-open-customer-of-order", "navigation", "easy"
    intents = (
        "Open the account page of the customer who placed order #{number}.",
        "Go to the page of the customer behind order {number}.",
        "Show me the customer of order #{number}, on the customer's own page.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows("SELECT number, customer FROM shop_orders ORDER BY id")
        return sample_some(one_per_answer((row["customer"], {"number": row["number"]}) for row in rows), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        customer = world.value("SELECT customer FROM shop_orders WHERE number = ?", params["number"])
        return [EndsOn(f"{ADMIN}/customers/{customer}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        customer = page.line("Customer Name")[2].name
        yield page.click("link", customer)
        yield page.stop()


TEMPLATES = (
    ShowOrders(),
    NewestOrder(),
    OrderCustomer(),
)
