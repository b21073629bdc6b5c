"""Changes to orders: cancel, hold, release, invoice, ship, refund, comment, correct an address."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import AdminTemplate
from agentgym_envs.webarena.tasks.cms.steps import ORDER_LINK
from agentgym_envs.webarena.tasks.instances import Choices, Instances, rows
from agentgym_envs.webarena.tasks.parameters import call_by_name
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, not_offered, type_text
from agentgym_envs.webarena.tasks.template import Params

_INVOICED = "EXISTS (SELECT 1 FROM shop_invoices WHERE order_id = o.id)"
_SHIPPED = "EXISTS (SELECT 1 FROM shop_shipments WHERE order_id = o.id)"
_OPEN = "o.status IN ('pending', 'processing')"
_SHIPMENT = "SELECT s.id FROM shop_shipments s JOIN shop_orders o ON o.id = s.order_id WHERE o.number = ?"


def _numbers(where: str, *, sample: int = 0, **choices: Choices) -> Instances:
    return rows(f"SELECT o.number FROM shop_orders o WHERE {where} ORDER BY o.id", sample=sample, rounds=1, **choices)


def _status(number: str, status: str) -> Updated:
    return Updated("shop_orders", {"number": number}, {"status": status})


def _order(world: World, number: str) -> tuple[int, int]:
    """Return the id and the grand total of an order."""
    (row,) = world.rows("SELECT id, total FROM shop_orders WHERE number = ?", number)
    return row["id"], row["total"]


def _restocked(world: World, number: str) -> list[Expected]:
    """Return the changes that put the products of an order back into stock."""
    query = """SELECT p.id, p.stock + SUM(l.quantity) AS stock FROM shop_order_lines l
        JOIN shop_orders o ON o.id = l.order_id JOIN shop_products p ON p.id = l.product
        WHERE o.number = ? GROUP BY p.id ORDER BY p.id"""
    rows = world.rows(query, number)
    return [Updated("shop_products", {"id": row["id"]}, {"stock": row["stock"]}) for row in rows]


cancel_open_order = AdminTemplate(
    "cms-cancel-order",
    "change",
    "medium",
    intents=(
        "Cancel order #{number}.",
        "The customer has changed their mind: please cancel the order with the number {number}.",
        "Order #{number} was placed by mistake. Cancel it.",
    ),
    instances=_numbers(f"{_OPEN} AND NOT {_INVOICED} AND NOT {_SHIPPED}"),
    expected=lambda world, number: [_status(number, "canceled"), *_restocked(world, number)],
    solution=[do(steps.open_order, "{number}"), click("button", "Cancel"), click("button", "OK")],
)

hold_order = AdminTemplate(
    "cms-hold-order",
    "change",
    "easy",
    intents=(
        "Put order #{number} on hold.",
        "We have to ask the customer something first: put the order {number} on hold.",
        "Hold order #{number} until further notice.",
    ),
    instances=_numbers(_OPEN),
    expected=lambda number: _status(number, "on hold"),
    solution=[do(steps.open_order, "{number}"), click("button", "Hold")],
)


def _released(world: World, number: str) -> Updated:
    where = f"o.number = ? AND ({_INVOICED} OR {_SHIPPED})"
    begun = world.value(f"SELECT 1 FROM shop_orders o WHERE {where}", number)
    return _status(number, "processing" if begun else "pending")


release_order = AdminTemplate(
    "cms-release-order",
    "change",
    "easy",
    intents=(
        "Take order #{number} off hold.",
        "The question about order {number} is settled. Release it, so that it is no longer on hold.",
        "Order #{number} has been on hold long enough: unhold it.",
    ),
    instances=_numbers("o.status = 'on hold'"),
    expected=_released,
    solution=[do(steps.open_order, "{number}"), click("button", "Unhold")],
)


def _moved(world: World, id: int, status: str) -> list[Expected]:
    """Return the change of an order to a status; empty if the order already has it."""
    if world.value("SELECT status FROM shop_orders WHERE id = ?", id) == status:
        return []
    return [Updated("shop_orders", {"id": id}, {"status": status})]


def _invoiced(world: World, number: str) -> list[Expected]:
    id, total = _order(world, number)
    sent = world.value(f"SELECT 1 FROM shop_orders o WHERE o.id = ? AND {_SHIPPED}", id)
    added = Added("shop_invoices", {"order_id": id, "total": total})
    return [added, *_moved(world, id, "complete" if sent else "processing")]


invoice_order = AdminTemplate(
    "cms-invoice-order",
    "change",
    "medium",
    intents=(
        "Create the invoice for order #{number}.",
        "The money for order {number} has arrived: invoice the order.",
        "Invoice everything in order #{number}.",
    ),
    instances=_numbers(f"{_OPEN} AND NOT {_INVOICED}"),
    expected=_invoiced,
    solution=[do(steps.open_order, "{number}"), click("link", "Invoice"), click("button", "Submit Invoice")],
)


def _tracked(orders: Instances) -> Instances:
    """Return instances with a carrier and a random tracking number."""

    def found(world: World, rng: Random) -> Iterator[Params]:
        carriers = queries.carriers(world)
        for row in call_by_name(orders, {"world": world, "rng": rng}):
            yield {**row, "carrier": rng.choice(carriers), "track": f"{rng.randint(10**9, 10**10 - 1)}"}

    return found


def _shipped(world: World, number: str, carrier: str, track: str) -> list[Expected]:
    id, _ = _order(world, number)
    paid = world.value(f"SELECT 1 FROM shop_orders o WHERE o.id = ? AND {_INVOICED}", id)
    tracked = Added("shop_tracks", {"carrier": carrier, "number": track})
    moved = _moved(world, id, "complete" if paid else "processing")
    return [Added("shop_shipments", {"order_id": id}), tracked, *moved]


ship_order = AdminTemplate(
    "cms-ship-order",
    "change",
    "medium",
    intents=(
        "Ship order #{number} with {carrier}, tracking number {track}.",
        "Create the shipment for order {number}. The carrier is {carrier}, and the tracking number is {track}.",
        "The parcel of order #{number} has gone out with {carrier} as number {track}. Enter the shipment.",
    ),
    instances=_tracked(_numbers(f"{_OPEN} AND NOT {_SHIPPED}")),
    expected=_shipped,
    solution=[
        do(steps.open_order, "{number}"),
        click("link", "Ship"),
        choose_option("Carrier", "{carrier}"),
        type_text("Tracking Number", "{track}"),
        click("button", "Submit Shipment"),
    ],
)

add_tracking_number = AdminTemplate(
    "cms-add-tracking-number",
    "change",
    "hard",
    intents=(
        "Add the {carrier} tracking number {track} to the shipment of order #{number}.",
        "Order {number} was shipped without a tracking number. It is {track}, with {carrier}: please add it.",
        "Update order #{number} with its tracking number: {carrier} {track}.",
    ),
    instances=_tracked(
        rows(
            """SELECT o.number FROM shop_orders o JOIN shop_shipments s ON s.order_id = o.id
            WHERE s.id NOT IN (SELECT shipment FROM shop_tracks) GROUP BY o.id HAVING COUNT(*) = 1 ORDER BY o.id""",
            sample=30,
        )
    ),
    expected=lambda world, number, carrier, track: Added(
        "shop_tracks", {"shipment": world.value(_SHIPMENT, number), "carrier": carrier, "number": track}
    ),
    solution=[
        do(steps.open_from_menu, "Sales", "Shipments"),
        do(steps.filter_grid, {"Order number": "{number}"}),
        click("link", ORDER_LINK),
        choose_option("Carrier", "{carrier}"),
        type_text("Tracking Number", "{track}"),
        click("button", "Add Tracking Number"),
    ],
)


def _refunded(world: World, number: str, fee: int) -> list[Expected]:
    id, total = _order(world, number)
    shipping = world.value("SELECT shipping FROM shop_orders WHERE id = ?", id)
    memo = {"order_id": id, "total": total - 100 * fee, "shipping": shipping}
    return [Added("shop_refunds", memo), _status(number, "closed")]


refund_order = AdminTemplate(
    "cms-refund-order",
    "change",
    "medium",
    held_out=True,
    intents=(
        "Refund order #{number} with its shipping, less an adjustment fee of ${fee}.00. Do not return items to stock.",
        "Create a credit memo for order {number}: shipping refunded in full, an adjustment fee of ${fee}.00, nothing "
        "put back into stock.",
        "Give the customer of order #{number} everything back, shipping included, except for a fee of ${fee}.00. "
        "The items do not go back to stock.",
    ),
    instances=_numbers(
        f"o.status = 'complete' AND {_INVOICED} AND o.total > 3000 "
        "AND NOT EXISTS (SELECT 1 FROM shop_refunds WHERE order_id = o.id)",
        sample=30,
        fee=(2, 3, 4, 5, 6, 8, 10),
    ),
    expected=_refunded,
    solution=[
        do(steps.open_order, "{number}"),
        click("link", "Credit Memo"),
        type_text("Adjustment Fee", "{fee}"),
        click("button", "Refund Offline"),
    ],
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


def _commented(world: World, customer: str, status: str, message: str) -> Added:
    number = queries.newest_order(world, customer, status)
    return Added("shop_order_comments", {"order_id": number, "status": status, "text": message, "notified": 1})


notify_customer = AdminTemplate(
    "cms-notify-customer",
    "change",
    "hard",
    intents=(
        'Notify {customer} about their most recent {status} order with the message "{message}".',
        'Add the comment "{message}" to the newest {status} order of {customer}, and notify the customer of it.',
        'Write "{message}" as a comment on the latest {status} order that {customer} placed; the customer is to be '
        "notified by e-mail.",
    ),
    instances=rows(
        """SELECT DISTINCT c.first || ' ' || c.last AS customer, o.status FROM shop_orders o
        JOIN shop_customers c ON c.id = o.customer WHERE o.status IN ('pending', 'processing') ORDER BY 1, 2""",
        message=_MESSAGES,
    ),
    expected=_commented,
    solution=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, {"Customer": "{customer}"}, Status=steps.STATUS),
        click("link", ORDER_LINK),
        do(steps.add_comment, "{message}"),
    ],
)


def _correct_address_instances(world: World, rng: Random) -> Iterator[Params]:
    streets = [row[0] for row in world.rows("SELECT DISTINCT street FROM shop_addresses ORDER BY 1")]
    names = sorted({street.partition(" ")[2] for street in streets})
    query = f"SELECT number FROM shop_orders o WHERE {_OPEN} OR o.status = 'on hold' ORDER BY id"
    for order in queries.sample_some(world.rows(query), rng, 30):
        phone = f"0{rng.randint(10, 99)} 555 {rng.randint(1000, 9999)}"
        yield {"number": order["number"], "street": f"{rng.randint(200, 999)} {rng.choice(names)}", "phone": phone}


def _corrected(world: World, number: str, street: str, phone: str) -> Updated:
    id, _ = _order(world, number)
    values = {"street": street, "phone": phone}
    return Updated("shop_order_addresses", {"order_id": id, "kind": "shipping"}, values)


correct_address = AdminTemplate(
    "cms-correct-address",
    "change",
    "medium",
    intents=(
        'The customer of order #{number} has moved. Change the street in the shipping address to "{street}" and the '
        "phone number to {phone}.",
        'In the shipping address of order {number}, the street must be "{street}" and the phone {phone}. Correct it.',
        'Update the shipping address of order #{number}: street address "{street}", phone number {phone}. Leave the '
        "billing address alone.",
    ),
    instances=_correct_address_instances,
    expected=_corrected,
    solution=[
        do(steps.open_order, "{number}"),
        click("link", "Edit shipping address"),
        type_text("Street Address", "{street}"),
        type_text("Phone Number", "{phone}"),
        click("button", "Save Address"),
    ],
)

cancel_complete_order = AdminTemplate(
    "cms-cancel-impossible",
    "change",
    "easy",
    intents=(
        "Cancel order #{number}.",
        "The customer no longer wants order {number}. Cancel the order (a refund is not what we are looking for).",
        "Please set order #{number} to canceled.",
    ),
    instances=_numbers(f"o.status = 'complete' AND {_INVOICED} AND {_SHIPPED}", sample=30),
    expected=NotAchievable,
    solution=[do(steps.open_order, "{number}"), not_offered("button", "Cancel")],
    mistake=answer("Done"),
)
