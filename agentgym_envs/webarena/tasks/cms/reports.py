"""Questions that the reports answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.cms.queries import (
    ADMIN,
    MONTHS,
    AdminTemplate,
    has_single_leader,
    month_range,
    one_per_answer,
    random_periods,
)
from agentgym_envs.webarena.tasks.cms.steps import fill_in, open_from_menu
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params

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


class MonthlyFigure(AdminTemplate):
    """Name a figure of a month."""

    name, kind, difficulty = "cms-figure-of-month", "information", "easy"
    intents = (
        "What was the {figure} in {month}, according to the orders report (without canceled orders)?",
        "Look at the report on orders, which leaves canceled ones out: what is the {figure} of {month}?",
        "Tell me the {figure} of {month} from the orders report. Leave canceled orders out.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        chosen = [{"figure": figure, "month": month} for figure in _LABELS for month in MONTHS]
        return one_per_answer((self._figure(world, params), params) for params in chosen)

    def _figure(self, world: World, params: Params) -> str:
        query = (
            f"SELECT {_COLUMNS[params['figure']]} FROM shop_orders o WHERE {_NOT_CANCELED} AND substr(moment, 1, 7) = ?"
        )
        value = world.value(query, MONTHS[params["month"]])
        return money(value) if params["figure"] in _MONEY else str(value)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(self._figure(world, params))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Reports", "Orders Report")
        word, year = params["month"].split(" ")
        row = next(row for row in page.table() if row["Interval"] == f"{word[:3]} {year}")
        yield page.stop(row[_LABELS[params["figure"]]])


class CouponDiscount(AdminTemplate):
    """Name the sum of a coupon's discounts in a month."""

    name, kind, difficulty = "cms-coupon-discount", "information", "medium"
    held_out = True
    intents = (
        "How much discount did the coupon {coupon} give in {month}, canceled orders left out?",
        "What did customers save by the coupon {coupon} on their orders of {month}? Leave canceled orders out.",
        "By the coupons report, what is the sales discount of {coupon} in {month}? Do not count canceled orders.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = f"""SELECT coupon, SUM(discount) AS sum FROM shop_orders o WHERE {_NOT_CANCELED} AND coupon <> ''
            AND substr(moment, 1, 7) = ? GROUP BY coupon ORDER BY coupon"""
        found = [(row, month) for month, key in MONTHS.items() for row in world.rows(query, key)]
        return one_per_answer((row["sum"], {"coupon": row["coupon"], "month": month}) for row, month in found)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = f"""SELECT SUM(discount) FROM shop_orders o WHERE {_NOT_CANCELED} AND coupon = ?
            AND substr(moment, 1, 7) = ?"""
        return [says(money(world.value(query, params["coupon"], MONTHS[params["month"]])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Reports", "Coupons Report")
        yield from fill_in(page, month_range(params["month"]), enter=True)
        rows = page.table()
        yield page.stop(next(row["Sales Discount"] for row in rows if row["Coupon Code"] == params["coupon"]))


class Bestseller(AdminTemplate):
    """Name the bestselling product of a period."""

    name, kind, difficulty = "cms-bestseller", "information", "medium"
    intents = (
        "Which product was ordered most, by quantity, from {start} to {end}? Leave canceled orders out.",
        "What was our best-selling product (by units ordered) between {start} and {end}, both days included? Do not "
        "count canceled orders.",
        "Name the product of which the most units were ordered from {start} until {end}, without canceled orders.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Periods with a single leader."""
        chosen = [{"start": start, "end": end} for start, end in random_periods(rng, 130, least=10, most=80)]
        ranked = [(self._ranked(world, params), params) for params in chosen]
        return one_per_answer(
            (rows[0]["name"], params) for rows, params in ranked if has_single_leader(rows, "quantity")
        )

    def _ranked(self, world: World, params: Params) -> list[dict[str, object]]:
        query = f"""SELECT p.name, SUM(l.quantity) AS quantity FROM shop_orders o
            JOIN shop_order_lines l ON l.order_id = o.id JOIN shop_products p ON p.id = l.product
            WHERE {_NOT_CANCELED} AND substr(o.moment, 1, 10) BETWEEN ? AND ? GROUP BY p.id ORDER BY quantity DESC"""
        return [dict(row) for row in world.rows(query, params["start"], params["end"])]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first, *others = [str(row["name"]) for row in self._ranked(world, params)]
        return [says(first, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Reports", "Ordered Products Report")
        yield from fill_in(page, {"From": params["start"], "To": params["end"]}, enter=True)
        yield page.stop(page.table()[0]["Product"])


class BestCustomer(AdminTemplate):
    """Name the customer with the most orders of a period."""

    name, kind, difficulty = "cms-best-customer", "information", "medium"
    intents = (
        "Which customer placed the most orders from {start} to {end}, canceled ones left out? Give the e-mail address.",
        "Between {start} and {end}, both included, who ordered most often? I need the e-mail address. Canceled orders "
        "do not count.",
        "What is the e-mail address of whoever placed the largest number of orders from {start} until {end}, leaving "
        "out canceled orders?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Periods with a single leader."""
        chosen = [{"start": start, "end": end} for start, end in random_periods(rng, 240, least=10, most=70)]
        ranked = [(self._ranked(world, params), params) for params in chosen]
        return one_per_answer(
            (rows[0]["email"], params) for rows, params in ranked if has_single_leader(rows, "orders")
        )

    def _ranked(self, world: World, params: Params) -> list[dict[str, object]]:
        query = f"""SELECT c.email, COUNT(*) AS orders FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
            WHERE {_NOT_CANCELED} AND substr(o.moment, 1, 10) BETWEEN ? AND ? GROUP BY c.id ORDER BY orders DESC"""
        return [dict(row) for row in world.rows(query, params["start"], params["end"])]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first, *others = [str(row["email"]) for row in self._ranked(world, params)]
        return [says(first, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Reports", "Order Count Report")
        yield from fill_in(page, {"From": params["start"], "To": params["end"]}, enter=True)
        yield page.stop(page.table()[0]["E-mail"])


class ShowReport(AdminTemplate):
    """Show a report of a period."""

    name, kind, difficulty = "cms-show-report", "navigation", "medium"
    records = True
    intents = (
        "Show the {report} report by {period} from {start} to {end}, with {status} orders only.",
        "Create a report on {report} by {period}, from {start} until {end}, of the orders that are {status}.",
        "I want to see the {report} report of {status} orders between {start} and {end}, counted by {period}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for start, end in random_periods(rng, 60, least=20, most=200):
            choices = {"report": rng.choice(list(_REPORTS)), "period": rng.choice(("day", "month", "year"))}
            yield {**choices, "start": start, "end": end, "status": rng.choice(("complete", "canceled", "closed"))}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The request of the report, and its URL at the end. The site normalises dates, so any spelling is accepted."""
        query = f"period={params['period']}&from={params['start']}&to={params['end']}&status={params['status']}"
        page = f"{ADMIN}/reports/{params['report']}?{query}"
        return [Requested(page, method="GET", status=200), EndsOn(page)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Reports", _REPORTS[params["report"]])
        yield page.choose("Period", params["period"].capitalize())
        yield page.choose("Order Status", params["status"].capitalize())
        yield from fill_in(page, {"From": params["start"], "To": params["end"]}, enter=True)
        yield page.stop()


TEMPLATES = (
    MonthlyFigure(),
    CouponDiscount(),
    Bestseller(),
    BestCustomer(),
    ShowReport(),
)
