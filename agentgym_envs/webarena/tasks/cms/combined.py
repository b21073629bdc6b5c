"""Tasks of several steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.cms.queries import (
    AdminTemplate,
    has_single_leader,
    one_per_answer,
    random_periods,
    sample_some,
)
from agentgym_envs.webarena.tasks.cms.steps import (
    ORDER_LINK,
    SELECT_ALL,
    add_comment,
    apply_to_rows,
    fill_in,
    filter_grid,
    open_customer,
    open_from_menu,
    open_order,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed


class FulfilOrder(AdminTemplate):
    """Invoice an order and ship it."""

    name, kind, difficulty = "cms-fulfil-order", "change", "hard"
    held_out = True
    intents = (
        "Order #{number} is paid and packed: create its invoice, then ship it with {carrier}, tracking number {track}.",
        "Invoice order {number} and enter its shipment with {carrier} under the tracking number {track}.",
        "Complete order #{number}. It needs an invoice, and a shipment with the {carrier} tracking number {track}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        carriers = [row[0] for row in world.rows("SELECT DISTINCT carrier FROM shop_tracks ORDER BY 1")]
        for row in world.rows("SELECT number FROM shop_orders WHERE status = 'pending' ORDER BY id"):
            yield {"number": row[0], "carrier": rng.choice(carriers), "track": f"{rng.randint(10**9, 10**10 - 1)}"}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        (row,) = world.rows("SELECT id, total FROM shop_orders WHERE number = ?", params["number"])
        invoice = Added("shop_invoices", {"order_id": row["id"], "total": row["total"]})
        track = Added("shop_tracks", {"carrier": params["carrier"], "number": params["track"]})
        done = Updated("shop_orders", {"id": row["id"]}, {"status": "complete"})
        return [changed(invoice, Added("shop_shipments", {"order_id": row["id"]}), track, done)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.click("link", "Invoice")
        yield page.click("button", "Submit Invoice")
        yield page.click("link", "Ship")
        yield page.choose("Carrier", params["carrier"])
        yield page.type("Tracking Number", params["track"])
        yield page.click("button", "Submit Shipment")
        yield page.stop()


class PromoteCustomer(AdminTemplate):
    """Find the customer with the largest order of a period, and move them to another group."""

    name, kind, difficulty = "cms-promote-customer", "change", "hard"
    intents = (
        "Find out who placed the order with the highest grand total from {start} to {end} (inclusive), and move that "
        "customer to the group {target}.",
        "The customer whose order had the highest grand total between {start} and {end}, both days included, is to "
        "become a {target} customer. Change the group of the account.",
        "Which customer placed the most expensive order from {start} until {end}? Set the group of that customer to "
        "{target}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        chosen = [{"start": start, "end": end} for start, end in random_periods(rng, 110, least=5, most=45)]
        ranked = [(self._ranked(world, params), params) for params in chosen]
        found = one_per_answer(
            (rows[0]["id"], (rows[0], params)) for rows, params in ranked if has_single_leader(rows, "total")
        )
        for row, params in found:
            others = [one for one in ("General", "Wholesale", "Retailer") if one != row["customer_group"]]
            yield {**params, "target": rng.choice(others)}

    def _ranked(self, world: World, params: Params) -> list[dict[str, Any]]:
        query = """SELECT c.id, c.customer_group, o.total FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
            WHERE substr(o.moment, 1, 10) BETWEEN ? AND ? ORDER BY o.total DESC"""
        return [dict(row) for row in world.rows(query, params["start"], params["end"])]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id = self._ranked(world, params)[0]["id"]
        return [changed(Updated("shop_customers", {"id": id}, {"customer_group": params["target"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Orders")
        yield from filter_grid(page, {"Purchase date from": params["start"], "Purchase date to": params["end"]})
        yield page.click("link", "Grand Total")
        yield page.click("link", "Grand Total")
        yield from open_customer(page, page.table()[0]["Customer"])
        yield page.choose("Group", params["target"])
        yield page.click("button", "Save Customer")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Move the customer with the smallest order."""
        yield from open_from_menu(page, "Sales", "Orders")
        yield from filter_grid(page, {"Purchase date from": params["start"], "Purchase date to": params["end"]})
        yield page.click("link", "Grand Total")
        yield from open_customer(page, page.table()[0]["Customer"])
        yield page.choose("Group", params["target"])
        yield page.click("button", "Save Customer")
        yield page.stop()


class CorrectBothAddresses(AdminTemplate):
    """Correct the street in both addresses of an order."""

    name, kind, difficulty = "cms-correct-both-addresses", "change", "hard"
    held_out = True
    intents = (
        'The street in both addresses of order #{number}, shipping and billing, must be "{street}". Correct them.',
        'Change the street address of order {number} to "{street}", in the billing address as well as in the shipping '
        "address.",
        'The billing and the shipping address of order #{number} have an old street. Set it to "{street}" in each.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        names = sorted({row[0].partition(" ")[2] for row in world.rows("SELECT street FROM shop_addresses")})
        query = "SELECT number FROM shop_orders WHERE status <> 'canceled' ORDER BY id DESC"
        for row in sample_some(world.rows(f"{query} LIMIT 120"), rng, 40):
            yield {"number": row["number"], "street": f"{rng.randint(200, 999)} {rng.choice(names)}"}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id = world.value("SELECT id FROM shop_orders WHERE number = ?", params["number"])
        return [changed(Updated("shop_order_addresses", {"order_id": id}, {"street": params["street"]}, 2))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        for kind in ("shipping", "billing"):
            yield page.click("link", f"Edit {kind} address")
            yield page.type("Street Address", params["street"])
            yield page.click("button", "Save Address")
        yield page.stop()


class DisableLowStock(AdminTemplate):
    """Disable all products of a category with low stock."""

    name, kind, difficulty = "cms-disable-low-stock", "change", "hard"
    intents = (
        'Disable the products of the category "{category}" of which there are at most {most} units in stock.',
        'In the category "{category}", disable every product with {most} or fewer units left.',
        'We want to sell no product of "{category}" of which we have no more than {most}. Disable these products, and '
        "leave the others enabled.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Categories in which two to four products, all enabled, are at or below a stock level."""
        for row in world.rows("SELECT id, name FROM shop_categories WHERE parent IS NOT NULL ORDER BY id"):
            query = "SELECT stock, enabled FROM shop_products WHERE category = ? ORDER BY stock"
            stocks, count = world.rows(query, row["id"]), rng.choice((2, 2, 3, 4))
            if len(stocks) <= count or not all(one["enabled"] for one in stocks[:count]):
                continue
            room = stocks[count]["stock"] - stocks[count - 1]["stock"]
            if room > 1:
                yield {"category": row["name"], "most": stocks[count - 1]["stock"] + room // 2}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT p.id FROM shop_products p JOIN shop_categories k ON k.id = p.category
            WHERE k.name = ? AND k.parent IS NOT NULL AND p.stock <= ? ORDER BY p.id"""
        rows = world.rows(query, params["category"], params["most"])
        return [changed(*(Updated("shop_products", {"id": row["id"]}, {"enabled": 0}) for row in rows))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Catalog", "Products")
        yield from filter_grid(page, {"Quantity to": params["most"]}, Category=params["category"])
        yield from apply_to_rows(page, "Disable", [SELECT_ALL])
        yield page.stop()


class NewGroupRule(AdminTemplate):
    """Create a price rule with a fixed discount for a group of customers."""

    name, kind, difficulty = "cms-new-group-rule", "change", "hard"
    intents = (
        'Create an active cart price rule "{rule}" for the customer group {target}: with the coupon {coupon}, '
        "${amount} off the whole cart, with no minimum and no dates.",
        'Add a cart price rule called "{rule}" with the coupon code {coupon}. It gives {target} customers a fixed '
        "${amount} off the whole cart, is active, and has neither a minimum nor dates.",
        "{target} customers are to get ${amount} off any cart with the coupon {coupon}. Set up the cart price rule, "
        'name it "{rule}", leave it active and without dates.',
    )
    _HEADS = ("Thank you", "Welcome back", "Partner bonus", "Large orders", "Spring greeting")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Use coupon codes that are not taken."""
        for group in ("Wholesale", "Retailer", "General"):
            for head in self._HEADS:
                for amount in rng.sample((4, 6, 7, 9, 11, 12, 14), 2):
                    rule = f"{head}, {group}"
                    code = f"{head.split(' ')[0].upper()}-{group[0]}{amount}"
                    yield {"rule": rule, "coupon": code, "target": group, "amount": amount}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"name": params["rule"], "coupon": params["coupon"], "kind": "fixed", "amount": 100 * params["amount"]}
        values |= {"customer_group": params["target"], "active": 1, "minimum": 0, "starts": None, "ends": None}
        return [changed(Added("shop_rules", values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "Cart Price Rules")
        yield page.click("link", "Add New Rule")
        yield from fill_in(page, {"Rule Name": params["rule"], "Coupon Code": params["coupon"]})
        yield page.choose("Customer Group", params["target"])
        yield page.choose("Apply", "Fixed amount for the whole cart")
        yield page.type("Discount Amount", str(params["amount"]))
        yield page.click("button", "Save")
        yield page.stop()


class MostExpensiveOfCategory(AdminTemplate):
    """Name the product of a category with the highest regular price."""

    name, kind, difficulty = "cms-dearest-of-category", "information", "medium"
    intents = (
        'Which product in the category "{category}" has the highest price? Leave special prices aside.',
        'What is the most expensive product of the category "{category}" by its regular price?',
        'Name the product with the highest regular price in "{category}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Categories with a single most expensive product."""
        names = [
            str(row[0]) for row in world.rows("SELECT name FROM shop_categories WHERE parent IS NOT NULL ORDER BY id")
        ]
        return [{"category": name} for name in names if has_single_leader(self._ranked(world, name), "price")]

    def _ranked(self, world: World, category: str) -> list[dict[str, object]]:
        query = """SELECT p.name, p.price FROM shop_products p JOIN shop_categories k ON k.id = p.category
            WHERE k.name = ? AND k.parent IS NOT NULL ORDER BY p.price DESC"""
        return [dict(row) for row in world.rows(query, category)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first, *others = [str(row["name"]) for row in self._ranked(world, params["category"])]
        return [says(first, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Catalog", "Products")
        yield from filter_grid(page, {}, Category=params["category"])
        yield page.click("link", "Price")
        yield page.click("link", "Price")
        yield page.stop(page.table()[0]["Name"])


class MessageBuyer(AdminTemplate):
    """Comment on the newest order of the customer with the most orders of a period."""

    name, kind, difficulty = "cms-thank-customer", "change", "hard"
    held_out = True
    intents = (
        "Which customer placed the most orders from {start} to {end} (canceled ones left out)? Add the comment "
        '"{message}" to the most recent order of that customer, whatever its status, and notify the customer.',
        "Find the customer with the largest number of orders between {start} and {end}, canceled ones not counted. "
        'Comment on the newest order of that customer, whatever its status, with "{message}", and have them notified.',
        "Thank our most frequent buyer of the time from {start} until {end} (without canceled orders): write "
        '"{message}" as a comment on the latest order of that buyer, whatever its status, with a notification.',
    )
    _MESSAGES = ("Thank you for coming back so often!", "You have been our best customer. Thank you!", "Many thanks!")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Periods with a single leader."""
        chosen = [(self._ranked(world, *span), span) for span in random_periods(rng, 150, least=10, most=70)]
        found = one_per_answer(
            (rows[0]["customer"], span) for rows, span in chosen if has_single_leader(rows, "orders")
        )
        return [{"start": start, "end": end, "message": rng.choice(self._MESSAGES)} for start, end in found]

    def _ranked(self, world: World, start: str, end: str) -> list[dict[str, object]]:
        query = """SELECT customer, COUNT(*) AS orders FROM shop_orders WHERE status <> 'canceled'
            AND substr(moment, 1, 10) BETWEEN ? AND ? GROUP BY customer ORDER BY orders DESC"""
        return [dict(row) for row in world.rows(query, start, end)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        customer = self._ranked(world, params["start"], params["end"])[0]["customer"]
        query = "SELECT id, status FROM shop_orders WHERE customer = ? ORDER BY moment DESC LIMIT 1"
        (order,) = world.rows(query, customer)
        values = {"order_id": order["id"], "status": order["status"], "text": params["message"], "notified": 1}
        return [changed(Added("shop_order_comments", values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Reports", "Order Count Report")
        yield from fill_in(page, {"From": params["start"], "To": params["end"]}, enter=True)
        yield from open_customer(page, page.table()[0]["Customer"])
        yield page.click("link", ORDER_LINK)
        yield from add_comment(page, params["message"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Comment on the newest order of all customers."""
        yield from open_from_menu(page, "Sales", "Orders")
        yield page.click("link", ORDER_LINK)
        yield page.type("Comment", params["message"])
        yield page.click("button", "Submit Comment")
        yield page.stop()


TEMPLATES = (
    FulfilOrder(),
    PromoteCustomer(),
    CorrectBothAddresses(),
    DisableLowStock(),
    NewGroupRule(),
    MostExpensiveOfCategory(),
    MessageBuyer(),
)
