"""Changes to orders: cancel, hold, release, invoice, ship, refund, comment, correct an address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.cms.queries import AdminTemplate, sample_some
from agentgym_envs.webarena.tasks.cms.steps import ORDER_LINK, add_comment, filter_grid, open_from_menu, open_order
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_INVOICED = "EXISTS (SELECT 1 FROM shop_invoices WHERE order_id = o.id)"
_SHIPPED = "EXISTS (SELECT 1 FROM shop_shipments WHERE order_id = o.id)"
_OPEN = "o.status IN ('pending', 'processing')"


def _numbers(world: World, where: str) -> list[Params]:
    return [dict(row) for row in world.rows(f"SELECT o.number FROM shop_orders o WHERE {where} ORDER BY o.id")]


def _status(params: Params, status: str) -> Updated:
    return Updated("shop_orders", {"number": params["number"]}, {"status": status})


def _order(world: World, params: Params) -> tuple[int, int]:
    """Return the id and the grand total of an order."""
    (row,) = world.rows("SELECT id, total FROM shop_orders WHERE number = ?", params["number"])
    return row["id"], row["total"]


def _restocked(world: World, params: Params) -> list[Expected]:
    """Return the changes that put the products of an order back into stock."""
    query = """SELECT p.id, p.stock + SUM(l.quantity) AS stock FROM shop_order_lines l
        JOIN shop_orders o ON o.id = l.order_id JOIN shop_products p ON p.id = l.product
        WHERE o.number = ? GROUP BY p.id ORDER BY p.id"""
    rows = world.rows(query, params["number"])
    return [Updated("shop_products", {"id": row["id"]}, {"stock": row["stock"]}) for row in rows]


class CancelOpenOrder(AdminTemplate):
    """Cancel an order."""

    name, kind, difficulty = "cms-cancel-order", "change", "medium"
    intents = (
        "Cancel order #{number}.",
        "The customer has changed their mind: please cancel the order with the number {number}.",
        "Order #{number} was placed by mistake. Cancel it.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Open orders without invoice and shipment."""
        return _numbers(world, f"{_OPEN} AND NOT {_INVOICED} AND NOT {_SHIPPED}")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The status, and the products back in stock."""
        return [changed(_status(params, "canceled"), *_restocked(world, params))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.click("button", "Cancel")
        yield page.click("button", "OK")
        yield page.stop()


class HoldOrder(AdminTemplate):
    """Put an order on hold."""

    name, kind, difficulty = "cms-hold-order", "change", "easy"
    intents = (
        "Put order #{number} on hold.",
        "We have to ask the customer something first: put the order {number} on hold.",
        "Hold order #{number} until further notice.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return _numbers(world, _OPEN)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(_status(params, "on hold"))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.click("button", "Hold")
        yield page.stop()


class ReleaseOrder(AdminTemplate):
    """Release an order that is on hold."""

    name, kind, difficulty = "cms-release-order", "change", "easy"
    intents = (
        "Take order #{number} off hold.",
        "The question about order {number} is settled. Release it, so that it is no longer on hold.",
        "Order #{number} has been on hold long enough: unhold it.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return _numbers(world, "o.status = 'on hold'")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The status is "processing" if the order has an invoice or shipment, else "pending"."""
        where = f"o.number = ? AND ({_INVOICED} OR {_SHIPPED})"
        begun = world.value(f"SELECT 1 FROM shop_orders o WHERE {where}", params["number"])
        return [changed(_status(params, "processing" if begun else "pending"))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.click("button", "Unhold")
        yield page.stop()


class InvoiceOrder(AdminTemplate):
    """Invoice an order."""

    name, kind, difficulty = "cms-invoice-order", "change", "medium"
    intents = (
        "Create the invoice for order #{number}.",
        "The money for order {number} has arrived: invoice the order.",
        "Invoice everything in order #{number}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return _numbers(world, f"{_OPEN} AND NOT {_INVOICED}")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id, total = _order(world, params)
        sent = world.value(f"SELECT 1 FROM shop_orders o WHERE o.id = ? AND {_SHIPPED}", id)
        added = Added("shop_invoices", {"order_id": id, "total": total})
        return [changed(added, *_moved(world, id, "complete" if sent else "processing"))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.click("link", "Invoice")
        yield page.click("button", "Submit Invoice")
        yield page.stop()


def _moved(world: World, id: int, status: str) -> list[Expected]:
    """Return the change of an order to a status; empty if the order already has it."""
    if world.value("SELECT status FROM shop_orders WHERE id = ?", id) == status:
        return []
    return [Updated("shop_orders", {"id": id}, {"status": status})]


class ShipOrder(AdminTemplate):
    """Ship an order with a tracking number."""

    name, kind, difficulty = "cms-ship-order", "change", "medium"
    intents = (
        "Ship order #{number} with {carrier}, tracking number {track}.",
        "Create the shipment for order {number}. The carrier is {carrier}, and the tracking number is {track}.",
        "The parcel of order #{number} has gone out with {carrier} as number {track}. Enter the shipment.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        carriers = [row[0] for row in world.rows("SELECT DISTINCT carrier FROM shop_tracks ORDER BY 1")]
        orders = _numbers(world, f"{_OPEN} AND NOT {_SHIPPED}")
        return [
            {**order, "carrier": rng.choice(carriers), "track": f"{rng.randint(10**9, 10**10 - 1)}"} for order in orders
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id, _ = _order(world, params)
        paid = world.value(f"SELECT 1 FROM shop_orders o WHERE o.id = ? AND {_INVOICED}", id)
        track = Added("shop_tracks", {"carrier": params["carrier"], "number": params["track"]})
        moved = _moved(world, id, "complete" if paid else "processing")
        return [changed(Added("shop_shipments", {"order_id": id}), track, *moved)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.click("link", "Ship")
        yield page.choose("Carrier", params["carrier"])
        yield page.type("Tracking Number", params["track"])
        yield page.click("button", "Submit Shipment")
        yield page.stop()


class AddTrackingNumber(AdminTemplate):
    """Add the missing tracking number to a shipment."""

    name, kind, difficulty = "cms-add-tracking-number", "change", "hard"
    intents = (
        "Add the {carrier} tracking number {track} to the shipment of order #{number}.",
        "Order {number} was shipped without a tracking number. It is {track}, with {carrier}: please add it.",
        "Update order #{number} with its tracking number: {carrier} {track}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        carriers = [row[0] for row in world.rows("SELECT DISTINCT carrier FROM shop_tracks ORDER BY 1")]
        query = """SELECT o.number FROM shop_orders o JOIN shop_shipments s ON s.order_id = o.id
            WHERE s.id NOT IN (SELECT shipment FROM shop_tracks) GROUP BY o.id HAVING COUNT(*) = 1 ORDER BY o.id"""
        orders = sample_some(map(dict, world.rows(query)), rng, 30)
        return [
            {**order, "carrier": rng.choice(carriers), "track": f"{rng.randint(10**9, 10**10 - 1)}"} for order in orders
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT s.id FROM shop_shipments s JOIN shop_orders o ON o.id = s.order_id WHERE o.number = ?"
        shipment = world.value(query, params["number"])
        values = {"shipment": shipment, "carrier": params["carrier"], "number": params["track"]}
        return [changed(Added("shop_tracks", values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Shipments")
        yield from filter_grid(page, {"Order number": params["number"]})
        yield page.click("link", ORDER_LINK)
        yield page.choose("Carrier", params["carrier"])
        yield page.type("Tracking Number", params["track"])
        yield page.click("button", "Add Tracking Number")
        yield page.stop()


class RefundOrder(AdminTemplate):
    """Refund an order except for a fee."""

    name, kind, difficulty = "cms-refund-order", "change", "medium"
    held_out = True
    intents = (
        "Refund order #{number} with its shipping, less an adjustment fee of ${fee}.00. Do not return items to stock.",
        "Create a credit memo for order {number}: shipping refunded in full, an adjustment fee of ${fee}.00, nothing "
        "put back into stock.",
        "Give the customer of order #{number} everything back, shipping included, except for a fee of ${fee}.00. "
        "The items do not go back to stock.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        where = f"o.status = 'complete' AND {_INVOICED} AND o.total > 3000"
        where += " AND NOT EXISTS (SELECT 1 FROM shop_refunds WHERE order_id = o.id)"
        return [
            {**order, "fee": rng.choice((2, 3, 4, 5, 6, 8, 10))}
            for order in sample_some(_numbers(world, where), rng, 30)
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """A credit memo of the total minus the fee, and a closed order."""
        id, total = _order(world, params)
        shipping = world.value("SELECT shipping FROM shop_orders WHERE id = ?", id)
        memo = {"order_id": id, "total": total - 100 * params["fee"], "shipping": shipping}
        return [changed(Added("shop_refunds", memo), _status(params, "closed"))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.click("link", "Credit Memo")
        yield page.type("Adjustment Fee", str(params["fee"]))
        yield page.click("button", "Refund Offline")
        yield page.stop()


class NotifyCustomer(AdminTemplate):
    """Add a comment for the customer to the newest order of a status."""

    name, kind, difficulty = "cms-notify-customer", "change", "hard"
    intents = (
        'Notify {customer} about their most recent {status} order with the message "{message}".',
        'Add the comment "{message}" to the newest {status} order of {customer}, and notify the customer of it.',
        'Write "{message}" as a comment on the latest {status} order that {customer} placed; the customer is to be '
        "notified by e-mail.",
    )
    _MESSAGES = (
        "We are waiting for the last item and will send everything together.",
        "Your parcel leaves our warehouse tomorrow morning.",
        "The colour that you chose is back in stock.",
        "Please call us about your delivery address.",
        "Sorry for the delay, it will be on its way this week.",
        "We have upgraded your order to Express Shipping at no cost.",
        "Thank you for your patience!",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = """SELECT DISTINCT c.first || ' ' || c.last AS customer, o.status FROM shop_orders o
            JOIN shop_customers c ON c.id = o.customer WHERE o.status IN ('pending', 'processing') ORDER BY 1, 2"""
        return [{**dict(row), "message": rng.choice(self._MESSAGES)} for row in world.rows(query)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """A comment on that order; it may be visible in the shop or not."""
        query = """SELECT o.id FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
            WHERE c.first || ' ' || c.last = ? AND o.status = ? ORDER BY o.moment DESC LIMIT 1"""
        order = world.value(query, params["customer"], params["status"])
        values = {"order_id": order, "status": params["status"], "text": params["message"], "notified": 1}
        return [changed(Added("shop_order_comments", values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Sales", "Orders")
        yield from filter_grid(page, {"Customer": params["customer"]}, Status=params["status"].capitalize())
        yield page.click("link", ORDER_LINK)
        yield from add_comment(page, params["message"])
        yield page.stop()


class CorrectAddress(AdminTemplate):
    """Correct the shipping address of an order."""

    name, kind, difficulty = "cms-correct-address", "change", "medium"
    intents = (
        'The customer of order #{number} has moved. Change the street in the shipping address to "{street}" and the '
        "phone number to {phone}.",
        'In the shipping address of order {number}, the street must be "{street}" and the phone {phone}. Correct it.',
        'Update the shipping address of order #{number}: street address "{street}", phone number {phone}. Leave the '
        "billing address alone.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        streets = [row[0] for row in world.rows("SELECT DISTINCT street FROM shop_addresses ORDER BY 1")]
        names = sorted({street.partition(" ")[2] for street in streets})
        orders = sample_some(_numbers(world, f"{_OPEN} OR o.status = 'on hold'"), rng, 30)
        for order in orders:
            phone = f"0{rng.randint(10, 99)} 555 {rng.randint(1000, 9999)}"
            yield {**order, "street": f"{rng.randint(200, 999)} {rng.choice(names)}", "phone": phone}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id, _ = _order(world, params)
        values = {"street": params["street"], "phone": params["phone"]}
        return [changed(Updated("shop_order_addresses", {"order_id": id, "kind": "shipping"}, values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.click("link", "Edit shipping address")
        yield page.type("Street Address", params["street"])
        yield page.type("Phone Number", params["phone"])
        yield page.click("button", "Save Address")
        yield page.stop()


class CancelCompleteOrder(AdminTemplate):
    """Cancel an order that is complete, which is impossible."""

    name, kind, difficulty = "cms-cancel-impossible", "change", "easy"
    intents = (
        "Cancel order #{number}.",
        "The customer no longer wants order {number}. Cancel the order (a refund is not what we are looking for).",
        "Please set order #{number} to canceled.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return sample_some(_numbers(world, f"o.status = 'complete' AND {_INVOICED} AND {_SHIPPED}"), rng, 30)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_order(page, params["number"])
        yield page.stop() if page.has("button", "Cancel") else page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Claim that it is done."""
        yield from open_order(page, params["number"])
        yield page.stop("Done")


TEMPLATES = (
    CancelOpenOrder(),
    HoldOrder(),
    ReleaseOrder(),
    InvoiceOrder(),
    ShipOrder(),
    AddTrackingNumber(),
    RefundOrder(),
    NotifyCustomer(),
    CorrectAddress(),
    CancelCompleteOrder(),
)
