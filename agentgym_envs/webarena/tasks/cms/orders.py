"""Questions about orders, invoices, shipments and credit memos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.cms.queries import (
    MONTHS,
    AdminTemplate,
    cents,
    has_single_leader,
    month_range,
    one_per_answer,
    random_periods,
    sample_some,
)
from agentgym_envs.webarena.tasks.cms.steps import (
    ORDER_LINK,
    count_found,
    filter_grid,
    open_customer,
    open_from_menu,
    open_order,
    table_with,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params

_NEWEST = """SELECT o.*, c.first || ' ' || c.last AS name FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
    WHERE o.moment = (SELECT MAX(moment) FROM shop_orders WHERE customer = o.customer)"""


class OrderGrandTotal(AdminTemplate):
    """Name the grand total of an order."""

    name, kind, difficulty = "cms-order-total", "information", "easy"
    intents = (
        "What is the grand total of order #{number}?",
        "Tell me how much order #{number} came to in all.",
        "How much did the customer have to pay for order #{number} altogether?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Orders with different totals."""
        rows = world.rows("SELECT number, total FROM shop_orders ORDER BY id")
        return sample_some(one_per_answer((row["total"], {"number": row["number"]}) for row in rows), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(money(world.value("SELECT total FROM shop_orders WHERE number = ?", params["number"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.stop(page.value("Grand Total"))


class OrderStreet(AdminTemplate):
    """Name the street that an order is shipped to."""

    name, kind, difficulty = "cms-order-street", "information", "easy"
    intents = (
        "To which street address is order #{number} shipped?",
        "What street and house number are given in the shipping address of order #{number}?",
        "Look up order #{number}: which street does the parcel go to?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Orders with different streets."""
        query = """SELECT a.street, o.number FROM shop_order_addresses a JOIN shop_orders o ON o.id = a.order_id
            WHERE a.kind = 'shipping' ORDER BY o.id"""
        return sample_some(one_per_answer((row["street"], {"number": row["number"]}) for row in world.rows(query)), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The street of the shipping address, and neither the billing street nor another customer's."""
        query = """SELECT a.street FROM shop_order_addresses a JOIN shop_orders o ON o.id = a.order_id
            WHERE o.number = ? AND a.kind = 'shipping'"""
        street = world.value(query, params["number"])
        others = world.rows("SELECT street FROM shop_order_addresses UNION SELECT street FROM shop_addresses")
        return [says(street, others=[row[0] for row in others if row[0] != street])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.stop(page.texts(after="Shipping Address")[2])


class InvoiceTotal(AdminTemplate):
    """Name the amount of an invoice."""

    name, kind, difficulty = "cms-invoice-total", "information", "medium"
    intents = (
        "What is the amount of invoice #{number}?",
        "How much was charged with invoice #{number}?",
        "Find invoice #{number} and tell me its amount.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Invoices with different amounts."""
        rows = world.rows("SELECT number, total FROM shop_invoices ORDER BY id")
        return sample_some(one_per_answer((row["total"], {"number": row["number"]}) for row in rows), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(money(world.value("SELECT total FROM shop_invoices WHERE number = ?", params["number"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Invoices")
        yield from filter_grid(page, {"Invoice number": params["number"]})
        yield page.stop(page.table()[0]["Amount"])


class ShipmentCarrier(AdminTemplate):
    """Name the carrier and the tracking number of an order."""

    name, kind, difficulty = "cms-tracking-number", "information", "easy"
    intents = (
        "Which carrier has the shipment of order #{number}, and what is its tracking number?",
        "A customer asks where order #{number} is. Give me the carrier and the tracking number.",
        "Tell me the carrier and the tracking number under which order #{number} was sent.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Orders with a single tracking number."""
        query = """SELECT o.number FROM shop_orders o JOIN shop_shipments s ON s.order_id = o.id
            JOIN shop_tracks t ON t.shipment = s.id GROUP BY o.id HAVING COUNT(*) = 1 ORDER BY o.id"""
        return sample_some(map(dict, world.rows(query)), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT t.carrier, t.number FROM shop_tracks t JOIN shop_shipments s ON s.id = t.shipment
            JOIN shop_orders o ON o.id = s.order_id WHERE o.number = ?"""
        (carrier, number), *_ = world.rows(query, params["number"])
        others = [row[0] for row in world.rows("SELECT DISTINCT carrier FROM shop_tracks WHERE carrier <> ?", carrier)]
        return [says(carrier, number, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.stop(page.search(r"([A-Z][A-Za-z ]+ \d{8,})")[0])


class RefundedAmount(AdminTemplate):
    """Name the amount refunded for an order."""

    name, kind, difficulty = "cms-refunded", "information", "medium"
    intents = (
        "How much money was refunded for order #{number}?",
        "What is the total of the credit memo for order #{number}?",
        "Tell me the amount that the customer got back for order #{number}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Orders with a single credit memo, of different amounts."""
        query = """SELECT o.number, MAX(r.total) AS total FROM shop_refunds r JOIN shop_orders o ON o.id = r.order_id
            GROUP BY o.id HAVING COUNT(*) = 1 ORDER BY o.id"""
        return one_per_answer((row["total"], {"number": row["number"]}) for row in world.rows(query))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT r.total FROM shop_refunds r JOIN shop_orders o ON o.id = r.order_id WHERE o.number = ?"
        return [says(money(world.value(query, params["number"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Credit Memos")
        yield from filter_grid(page, {"Order number": params["number"]})
        yield page.stop(page.table()[0]["Amount"])


class CountOrdersInPeriod(AdminTemplate):
    """Count the orders of a status that were placed in a period."""

    name, kind, difficulty = "cms-count-orders", "information", "medium"
    intents = (
        "How many orders placed from {start} to {end}, both days included, are {status} now?",
        "Count the orders with the status {status} that were placed between {start} and {end} (inclusive).",
        "Of the orders that came in from {start} until {end}, both included, how many have the status {status}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Periods of one to four months."""
        found = []
        for start, end in random_periods(rng, 60, least=30, most=130):
            status = rng.choice(("complete", "complete", "canceled", "closed"))
            found.append({"status": status, "start": start, "end": end})
        return one_per_answer((count, params) for params in found if (count := self._count(world, params)) > 1)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(self._count(world, params))]

    def _count(self, world: World, params: Params) -> int:
        query = "SELECT COUNT(*) FROM shop_orders WHERE status = ? AND substr(moment, 1, 10) BETWEEN ? AND ?"
        return int(world.value(query, params["status"], params["start"], params["end"]))

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Orders")
        values = {"Purchase date from": params["start"], "Purchase date to": params["end"]}
        yield from filter_grid(page, values, Status=params["status"].capitalize())
        yield page.stop(count_found(page))


class LastOrders(AdminTemplate):
    """Add up the grand totals of the newest orders of a status in a month."""

    name, kind, difficulty = "cms-sum-of-last-orders", "information", "medium"
    held_out = True
    intents = (
        "What do the last {count} {status} orders of {month} come to together, by their grand totals?",
        "Add up the grand totals of the {count} newest orders with the status {status} that were placed in {month}.",
        "Tell me the sum of the grand totals of the {count} most recent {status} orders placed in {month}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Counts of two to five for each month."""
        chosen = [{"count": n, "status": "complete", "month": name} for n in (2, 3, 4, 5) for name in MONTHS]
        return one_per_answer((self._sum(world, params), params) for params in chosen)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(money(self._sum(world, params)))]

    def _sum(self, world: World, params: Params) -> int:
        query = """SELECT SUM(total) FROM (SELECT total FROM shop_orders WHERE status = ? AND substr(moment, 1, 7) = ?
            ORDER BY moment DESC LIMIT ?)"""
        return int(world.value(query, params["status"], MONTHS[params["month"]], params["count"]))

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        first, last = month_range(params["month"]).values()
        values = {"Purchase date from": first, "Purchase date to": last}
        yield from open_from_menu(page, "Sales", "Orders")
        yield from filter_grid(page, values, Status=params["status"].capitalize())
        totals = [cents(row["Grand Total"]) for row in page.table()[: params["count"]]]
        yield page.stop(money(sum(totals)))


class MostExpensiveItem(AdminTemplate):
    """Name the most expensive item of a customer's newest order."""

    name, kind, difficulty = "cms-dearest-item", "information", "easy"
    intents = (
        "Which item of {customer}'s most recent order costs the most apiece?",
        "Look at the latest order of {customer}. What is the most expensive product in it, by the price of one?",
        "What is the priciest single item in the newest order that {customer} placed?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Customers whose newest order has several items and a single most expensive one."""
        found = [(self._items(world, row["id"]), row["name"]) for row in world.rows(_NEWEST)]
        chosen = [(items[0]["name"], {"customer": name}) for items, name in found if has_single_leader(items, "price")]
        return sample_some(one_per_answer(chosen), rng)

    def _items(self, world: World, order: int) -> list[dict[str, object]]:
        query = "SELECT name, price FROM shop_order_lines WHERE order_id = ? ORDER BY price DESC, id"
        return [dict(row) for row in world.rows(query, order)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        (order,) = world.rows(f"{_NEWEST} AND name = ?", params["customer"])
        first, *others = [str(item["name"]) for item in self._items(world, order["id"])]
        return [says(first, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.click("link", ORDER_LINK)
        yield page.stop(max(table_with(page, "Product"), key=lambda row: cents(row["Price"]))["Product"])


class BiggestOrder(AdminTemplate):
    """Name the customer with the largest order of a period."""

    name, kind, difficulty = "cms-biggest-order", "information", "medium"
    intents = (
        "Which customer placed the order with the highest grand total between {start} and {end}, both days included?",
        "From {start} to {end} (inclusive), who placed our most expensive order?",
        "Find the order with the largest grand total of those placed from {start} until {end}. Who is the customer?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        found = [{"start": start, "end": end} for start, end in random_periods(rng, 140, least=5, most=45)]
        ranked = [(self._ranked(world, params), params) for params in found]
        return one_per_answer((rows[0]["name"], params) for rows, params in ranked if has_single_leader(rows, "total"))

    def _ranked(self, world: World, params: Params) -> list[dict[str, object]]:
        query = """SELECT c.first || ' ' || c.last AS name, o.total FROM shop_orders o
            JOIN shop_customers c ON c.id = o.customer WHERE substr(o.moment, 1, 10) BETWEEN ? AND ?
            ORDER BY o.total DESC"""
        return [dict(row) for row in world.rows(query, params["start"], params["end"])]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first, *others = [str(row["name"]) for row in self._ranked(world, params)]
        return [says(first, others=sorted({*others} - {first}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Orders")
        values = {"Purchase date from": params["start"], "Purchase date to": params["end"]}
        yield from filter_grid(page, values)
        yield page.click("link", "Grand Total")
        yield page.click("link", "Grand Total")
        yield page.stop(page.table()[0]["Customer"])


TEMPLATES = (
    OrderGrandTotal(),
    OrderStreet(),
    InvoiceTotal(),
    ShipmentCarrier(),
    RefundedAmount(),
    CountOrdersInPeriod(),
    LastOrders(),
    MostExpensiveItem(),
    BiggestOrder(),
)
