"""Questions that the reports answer."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says, says_first
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, MONTHS, AdminTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, choose_option, do, given
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_NOT_CANCELED = "o.status <> 'canceled'"
_LABELS = {
    "number of orders": "Orders",
    "number of items sold": "Sales Items",
    "sales total": "Sales Total",
    "sales tax": "Sales Tax",
    "amount of discounts": "Sales Discount",
}
_COLUMNS = {
    "number of orders": "COUNT(*)",
    "number of items sold": "SUM((SELECT SUM(quantity) FROM shop_order_lines WHERE order_id = o.id))",
    "sales total": "SUM(o.total)",
    "sales tax": "SUM(o.tax)",
    "amount of discounts": "SUM(o.discount)",
}
_REPORTS = {"orders": "Orders Report", "coupons": "Coupons Report", "bestsellers": "Bestsellers Report"}
_MONEY = ("sales total", "sales tax", "amount of discounts")


def _monthly_figure_instances(world: World) -> list[Params]:
    chosen = [{"figure": figure, "month": month} for figure in _LABELS for month in MONTHS]
    return queries.one_per_answer((_figure(world, **params), params) for params in chosen)


def _read_figure(page: PageReader, month: str, figure: str) -> str:
    word, year = month.split(" ")
    row = next(row for row in page.table() if row["Interval"] == f"{word[:3]} {year}")
    return row[_LABELS[figure]]


def _figure(world: World, month: str, figure: str) -> str:
    query = f"SELECT {_COLUMNS[figure]} FROM shop_orders o WHERE {_NOT_CANCELED} AND substr(moment, 1, 7) = ?"
    value = world.value(query, MONTHS[month])
    return money(value) if figure in _MONEY else str(value)


monthly_figure = AdminTemplate(
    "cms-figure-of-month",
    "information",
    "easy",
    intents=(
        "What was the {figure} in {month}, according to the orders report (without canceled orders)?",
        "Look at the report on orders, which leaves canceled ones out: what is the {figure} of {month}?",
        "Tell me the {figure} of {month} from the orders report. Leave canceled orders out.",
    ),
    instances=_monthly_figure_instances,
    expected=lambda world, figure, month: says(_figure(world, month, figure)),
    solution=[do(steps.open_from_menu, "Reports", "Orders Report"), answer(_read_figure)],
)


def _coupon_discount_instances(world: World) -> list[Params]:
    query = f"""SELECT coupon, SUM(discount) AS sum FROM shop_orders o WHERE {_NOT_CANCELED} AND coupon <> ''
        AND substr(moment, 1, 7) = ? GROUP BY coupon ORDER BY coupon"""
    found = [(row, month) for month, key in MONTHS.items() for row in world.rows(query, key)]
    return queries.one_per_answer((row["sum"], {"coupon": row["coupon"], "month": month}) for row, month in found)


def _discount(world: World, coupon: str, month: str) -> Says:
    query = f"""SELECT SUM(discount) FROM shop_orders o WHERE {_NOT_CANCELED} AND coupon = ?
        AND substr(moment, 1, 7) = ?"""
    return says(money(world.value(query, coupon, MONTHS[month])))


def _read_discount(page: PageReader, coupon: str) -> str:
    return next(row["Sales Discount"] for row in page.table() if row["Coupon Code"] == coupon)


coupon_discount = AdminTemplate(
    "cms-coupon-discount",
    "information",
    "medium",
    held_out=True,
    intents=(
        "How much discount did the coupon {coupon} give in {month}, canceled orders left out?",
        "What did customers save by the coupon {coupon} on their orders of {month}? Leave canceled orders out.",
        "By the coupons report, what is the sales discount of {coupon} in {month}? Do not count canceled orders.",
    ),
    instances=_coupon_discount_instances,
    expected=_discount,
    solution=[
        do(steps.open_from_menu, "Reports", "Coupons Report"),
        do(steps.fill_in, given(queries.month_range), enter=True),
        answer(_read_discount),
    ],
)


def _bestseller_instances(world: World, rng: Random) -> list[Params]:
    """Periods with a single leader."""
    chosen = [{"start": start, "end": end} for start, end in queries.random_periods(rng, 130, least=10, most=80)]
    ranked = [(_by_quantity(world, **params), params) for params in chosen]
    return queries.one_per_answer(
        (rows[0]["name"], params) for rows, params in ranked if queries.has_single_leader(rows, "quantity")
    )


def _by_quantity(world: World, start: str, end: str) -> list[dict[str, object]]:
    query = f"""SELECT p.name, SUM(l.quantity) AS quantity FROM shop_orders o
        JOIN shop_order_lines l ON l.order_id = o.id JOIN shop_products p ON p.id = l.product
        WHERE {_NOT_CANCELED} AND substr(o.moment, 1, 10) BETWEEN ? AND ? GROUP BY p.id ORDER BY quantity DESC"""
    return [dict(row) for row in world.rows(query, start, end)]


bestseller = AdminTemplate(
    "cms-bestseller",
    "information",
    "medium",
    intents=(
        "Which product was ordered most, by quantity, from {start} to {end}? Leave canceled orders out.",
        "What was our best-selling product (by units ordered) between {start} and {end}, both days included? Do not "
        "count canceled orders.",
        "Name the product of which the most units were ordered from {start} until {end}, without canceled orders.",
    ),
    instances=_bestseller_instances,
    expected=lambda world, start, end: says_first(row["name"] for row in _by_quantity(world, start, end)),
    solution=[
        do(steps.open_from_menu, "Reports", "Ordered Products Report"),
        do(steps.fill_in, {"From": "{start}", "To": "{end}"}, enter=True),
        answer(lambda page: page.table()[0]["Product"]),
    ],
)


def _best_customer_instances(world: World, rng: Random) -> list[Params]:
    """Periods with a single leader."""
    chosen = [{"start": start, "end": end} for start, end in queries.random_periods(rng, 240, least=10, most=70)]
    ranked = [(_by_orders(world, **params), params) for params in chosen]
    return queries.one_per_answer(
        (rows[0]["email"], params) for rows, params in ranked if queries.has_single_leader(rows, "orders")
    )


def _by_orders(world: World, start: str, end: str) -> list[dict[str, object]]:
    query = f"""SELECT c.email, COUNT(*) AS orders FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
        WHERE {_NOT_CANCELED} AND substr(o.moment, 1, 10) BETWEEN ? AND ? GROUP BY c.id ORDER BY orders DESC"""
    return [dict(row) for row in world.rows(query, start, end)]


best_customer = AdminTemplate(
    "cms-best-customer",
    "information",
    "medium",
    intents=(
        "Which customer placed the most orders from {start} to {end}, canceled ones left out? Give the e-mail address.",
        "Between {start} and {end}, both included, who ordered most often? I need the e-mail address. Canceled orders "
        "do not count.",
        "What is the e-mail address of whoever placed the largest number of orders from {start} until {end}, leaving "
        "out canceled orders?",
    ),
    instances=_best_customer_instances,
    expected=lambda world, start, end: says_first(row["email"] for row in _by_orders(world, start, end)),
    solution=[
        do(steps.open_from_menu, "Reports", "Order Count Report"),
        do(steps.fill_in, {"From": "{start}", "To": "{end}"}, enter=True),
        answer(lambda page: page.table()[0]["E-mail"]),
    ],
)


def _show_report_instances(rng: Random) -> Iterator[Params]:
    for start, end in queries.random_periods(rng, 60, least=20, most=200):
        choices = {"report": rng.choice(list(_REPORTS)), "period": rng.choice(("day", "month", "year"))}
        yield {**choices, "start": start, "end": end, "status": rng.choice(("complete", "canceled", "closed"))}


def _shown(report: str, period: str, start: str, end: str, status: str) -> ExpectedResult:
    url = f"{ADMIN}/reports/{report}?period={period}&from={start}&to={end}&status={status}"
    return [Requested(url, method="GET", status=200), EndsOn(url)]


show_report = AdminTemplate(
    "cms-show-report",
    "navigation",
    "medium",
    records=True,
    intents=(
        "Show the {report} report by {period} from {start} to {end}, with {status} orders only.",
        "Create a report on {report} by {period}, from {start} until {end}, of the orders that are {status}.",
        "I want to see the {report} report of {status} orders between {start} and {end}, counted by {period}.",
    ),
    instances=_show_report_instances,
    expected=_shown,
    solution=[
        do(steps.open_from_menu, "Reports", given(lambda report: _REPORTS[report])),
        choose_option("Period", given(lambda period: period.capitalize())),
        choose_option("Order Status", steps.STATUS),
        do(steps.fill_in, {"From": "{start}", "To": "{end}"}, enter=True),
    ],
)
