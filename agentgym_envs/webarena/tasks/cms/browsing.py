"""Tasks that end on an order, a customer or a filtered list of orders."""

from __future__ import annotations

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, ENOUGH, AdminTemplate
from agentgym_envs.webarena.tasks.cms.steps import ORDER_LINK
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.steps import click, do, given
from agentgym_envs.webarena.tasks.template import ExpectedResult

_OTHER_FILTERS = """
[...new URLSearchParams(location.search)]
  .filter(([name, value]) => value.trim() && !["status", "total_from", "sort", "dir", "page"].includes(name))
  .map(pair => pair.join("=")).join() || "none"
"""
"""JavaScript for the other filters of a grid of orders: the URL may contain more than the task asks for."""


_STATUSES = ("complete", "canceled", "closed", "pending", "processing")


def _filtered(status: str, least: int) -> ExpectedResult:
    start = f"{ADMIN}/orders?status={status}&total_from="
    wanted = EndsOn(OR.join(start + amount for amount in amount_spellings(least)))
    return [wanted, PageHolds("last", _OTHER_FILTERS, exact="none")]


show_orders = AdminTemplate(
    "cms-show-orders",
    "navigation",
    "medium",
    intents=(
        "Show me all {status} orders with a grand total of at least ${least}.",
        "Filter the list of orders: status {status}, grand total from ${least}.",
        "I want to see the list of the {status} orders that came to ${least} or more, and no others.",
    ),
    instances=lambda: [{"status": one, "least": least} for one in _STATUSES for least in (50, 75, 100, 150, 200)],
    expected=_filtered,
    solution=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, {"Grand total from": "{least}"}, Status=steps.STATUS),
    ],
)


def amount_spellings(whole: int) -> tuple[str, ...]:
    """The spellings of an amount of whole dollars."""
    return f"{whole}", f"{whole}.00", f"${whole}", f"${whole}.00"


newest_order = AdminTemplate(
    "cms-open-newest-order",
    "navigation",
    "medium",
    intents=(
        "Open the most recent {status} order of {customer}.",
        "Go to the page of the newest order by {customer} that is {status}.",
        "Show me the details of the latest order with the status {status} that {customer} placed.",
    ),
    instances=rows(
        """SELECT c.first || ' ' || c.last AS customer, o.status FROM shop_orders o
            JOIN shop_customers c ON c.id = o.customer GROUP BY c.id, o.status HAVING COUNT(*) BETWEEN 2 AND 10
            ORDER BY c.id, o.status""",
        sample=ENOUGH,
    ),
    expected=lambda world, customer, status: EndsOn(queries.newest_order_url(world, customer, status)),
    solution=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, {"Customer": "{customer}"}, Status=steps.STATUS),
        click("link", ORDER_LINK),
    ],
)

order_customer = AdminTemplate(
    "cms-open-customer-of-order",
    "navigation",
    "easy",
    intents=(
        "Open the account page of the customer who placed order #{number}.",
        "Go to the page of the customer behind order {number}.",
        "Show me the customer of order #{number}, on the customer's own page.",
    ),
    instances=queries.one_row_per_answer("SELECT customer, number FROM shop_orders ORDER BY id"),
    expected=lambda world, number: EndsOn(
        f"{ADMIN}/customers/{world.value('SELECT customer FROM shop_orders WHERE number = ?', number)}"
    ),
    solution=[do(steps.open_order, "{number}"), click("link", given(lambda page: page.line("Customer Name")[2].name))],
)
