"""Questions about orders, invoices, shipments and credit memos."""

from __future__ import annotations

from random import Random

from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says, says_first
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import ENOUGH, MONTHS, AdminTemplate
from agentgym_envs.webarena.tasks.cms.steps import ORDER_LINK
from agentgym_envs.webarena.tasks.instances import choose, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, click, do, given
from agentgym_envs.webarena.tasks.template import Params

_PLACED = {"Purchase date from": "{start}", "Purchase date to": "{end}"}
_NEWEST = """SELECT o.*, c.first || ' ' || c.last AS name FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
    WHERE o.moment = (SELECT MAX(moment) FROM shop_orders WHERE customer = o.customer)"""

order_grand_total = AdminTemplate(
    "cms-order-total",
    "information",
    "easy",
    intents=(
        "What is the grand total of order #{number}?",
        "Tell me how much order #{number} came to in all.",
        "How much did the customer have to pay for order #{number} altogether?",
    ),
    instances=queries.one_row_per_answer("SELECT total, number FROM shop_orders ORDER BY id"),
    expected=lambda world, number: says(money(world.value("SELECT total FROM shop_orders WHERE number = ?", number))),
    solution=[do(steps.open_order, "{number}"), answer(lambda page: page.value("Grand Total"))],
)


def _street(world: World, number: str) -> Says:
    query = """SELECT a.street FROM shop_order_addresses a JOIN shop_orders o ON o.id = a.order_id
        WHERE o.number = ? AND a.kind = 'shipping'"""
    street = world.value(query, number)
    others = world.rows("SELECT street FROM shop_order_addresses UNION SELECT street FROM shop_addresses")
    return says(street, others=[row[0] for row in others if row[0] != street])


order_street = AdminTemplate(
    "cms-order-street",
    "information",
    "easy",
    intents=(
        "To which street address is order #{number} shipped?",
        "What street and house number are given in the shipping address of order #{number}?",
        "Look up order #{number}: which street does the parcel go to?",
    ),
    instances=queries.one_row_per_answer("""SELECT a.street, o.number FROM shop_order_addresses a
        JOIN shop_orders o ON o.id = a.order_id WHERE a.kind = 'shipping' ORDER BY o.id"""),
    expected=_street,
    solution=[do(steps.open_order, "{number}"), answer(lambda page: page.texts(after="Shipping Address")[2])],
)

invoice_total = AdminTemplate(
    "cms-invoice-total",
    "information",
    "medium",
    intents=(
        "What is the amount of invoice #{number}?",
        "How much was charged with invoice #{number}?",
        "Find invoice #{number} and tell me its amount.",
    ),
    instances=queries.one_row_per_answer("SELECT total, number FROM shop_invoices ORDER BY id"),
    expected=lambda world, number: says(money(world.value("SELECT total FROM shop_invoices WHERE number = ?", number))),
    solution=[
        do(steps.open_from_menu, "Sales", "Invoices"),
        do(steps.filter_grid, {"Invoice number": "{number}"}),
        answer(lambda page: page.table()[0]["Amount"]),
    ],
)


def _shipment_carrier_expected(world: World, number: str) -> Says:
    query = """SELECT t.carrier, t.number FROM shop_tracks t JOIN shop_shipments s ON s.id = t.shipment
        JOIN shop_orders o ON o.id = s.order_id WHERE o.number = ?"""
    (carrier, track), *_ = world.rows(query, number)
    others = [row[0] for row in world.rows("SELECT DISTINCT carrier FROM shop_tracks WHERE carrier <> ?", carrier)]
    return says(carrier, track, others=others)


shipment_carrier = AdminTemplate(
    "cms-tracking-number",
    "information",
    "easy",
    intents=(
        "Which carrier has the shipment of order #{number}, and what is its tracking number?",
        "A customer asks where order #{number} is. Give me the carrier and the tracking number.",
        "Tell me the carrier and the tracking number under which order #{number} was sent.",
    ),
    instances=rows(
        """SELECT o.number FROM shop_orders o JOIN shop_shipments s ON s.order_id = o.id
            JOIN shop_tracks t ON t.shipment = s.id GROUP BY o.id HAVING COUNT(*) = 1 ORDER BY o.id""",
        sample=ENOUGH,
    ),
    expected=_shipment_carrier_expected,
    solution=[do(steps.open_order, "{number}"), answer(lambda page: page.search(r"([A-Z][A-Za-z ]+ \d{8,})")[0])],
)


def _refund(world: World, number: str) -> Says:
    query = "SELECT r.total FROM shop_refunds r JOIN shop_orders o ON o.id = r.order_id WHERE o.number = ?"
    return says(money(world.value(query, number)))


refunded_amount = AdminTemplate(
    "cms-refunded",
    "information",
    "medium",
    intents=(
        "How much money was refunded for order #{number}?",
        "What is the total of the credit memo for order #{number}?",
        "Tell me the amount that the customer got back for order #{number}.",
    ),
    instances=queries.one_row_per_answer(
        """SELECT MAX(r.total), o.number FROM shop_refunds r JOIN shop_orders o ON o.id = r.order_id
        GROUP BY o.id HAVING COUNT(*) = 1 ORDER BY o.id""",
        sample=0,
    ),
    expected=_refund,
    solution=[
        do(steps.open_from_menu, "Sales", "Credit Memos"),
        do(steps.filter_grid, {"Order number": "{number}"}),
        answer(lambda page: page.table()[0]["Amount"]),
    ],
)


def _periods(world: World, rng: Random) -> list[Params]:
    """Return periods of one to four months."""
    found = []
    for start, end in queries.random_periods(rng, 60, least=30, most=130):
        status = rng.choice(("complete", "complete", "canceled", "closed"))
        found.append({"status": status, "start": start, "end": end})
    return queries.one_per_answer((count, params) for params in found if (count := _count(world, **params)) > 1)


def _count(world: World, status: str, start: str, end: str) -> int:
    query = "SELECT COUNT(*) FROM shop_orders WHERE status = ? AND substr(moment, 1, 10) BETWEEN ? AND ?"
    return int(world.value(query, status, start, end))


count_orders_in_period = AdminTemplate(
    "cms-count-orders",
    "information",
    "medium",
    intents=(
        "How many orders placed from {start} to {end}, both days included, are {status} now?",
        "Count the orders with the status {status} that were placed between {start} and {end} (inclusive).",
        "Of the orders that came in from {start} until {end}, both included, how many have the status {status}?",
    ),
    instances=_periods,
    expected=lambda world, start, end, status: says(_count(world, status, start, end)),
    solution=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, _PLACED, Status=steps.STATUS),
        answer(steps.count_found),
    ],
)


def _months_and_counts(world: World) -> list[Params]:
    """Return counts of two to five for each month."""
    chosen: list[Params] = [{"count": n, "status": "complete", "month": name} for n in (2, 3, 4, 5) for name in MONTHS]
    return queries.one_per_answer((_sum(world, **params), params) for params in chosen)


def _placed_in(month: str) -> dict[str, str]:
    first, last = queries.month_range(month).values()
    return {"Purchase date from": first, "Purchase date to": last}


def _add_up(page: PageReader, count: int) -> str:
    return money(sum(queries.cents(row["Grand Total"]) for row in page.table()[:count]))


def _sum(world: World, status: str, count: int, month: str) -> int:
    query = """SELECT SUM(total) FROM (SELECT total FROM shop_orders WHERE status = ? AND substr(moment, 1, 7) = ?
        ORDER BY moment DESC LIMIT ?)"""
    return int(world.value(query, status, MONTHS[month], count))


last_orders = AdminTemplate(
    "cms-sum-of-last-orders",
    "information",
    "medium",
    held_out=True,
    intents=(
        "What do the last {count} {status} orders of {month} come to together, by their grand totals?",
        "Add up the grand totals of the {count} newest orders with the status {status} that were placed in {month}.",
        "Tell me the sum of the grand totals of the {count} most recent {status} orders placed in {month}.",
    ),
    instances=_months_and_counts,
    expected=lambda world, count, status, month: says(money(_sum(world, status, count, month))),
    solution=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, given(_placed_in), Status=steps.STATUS),
        answer(_add_up),
    ],
)


def _clear_items(world: World) -> list[Params]:
    """Return customers whose newest order has several items and a single most expensive one."""
    found = [(_items(world, row["id"]), row["name"]) for row in world.rows(_NEWEST)]
    chosen = [
        (items[0]["name"], {"customer": name}) for items, name in found if queries.has_single_leader(items, "price")
    ]
    return queries.one_per_answer(chosen)


def _most_expensive_item_expected(world: World, customer: str) -> Says:
    (order,) = world.rows(f"{_NEWEST} AND name = ?", customer)
    return says_first(item["name"] for item in _items(world, order["id"]))


def _items(world: World, order: int) -> list[dict[str, object]]:
    query = "SELECT name, price FROM shop_order_lines WHERE order_id = ? ORDER BY price DESC, id"
    return [dict(row) for row in world.rows(query, order)]


most_expensive_item = AdminTemplate(
    "cms-dearest-item",
    "information",
    "easy",
    intents=(
        "Which item of {customer}'s most recent order costs the most apiece?",
        "Look at the latest order of {customer}. What is the most expensive product in it, by the price of one?",
        "What is the priciest single item in the newest order that {customer} placed?",
    ),
    instances=choose(_clear_items, sample=ENOUGH),
    expected=_most_expensive_item_expected,
    solution=[
        do(steps.open_customer, "{customer}"),
        click("link", ORDER_LINK),
        answer(
            lambda page: max(steps.table_with(page, "Product"), key=lambda row: queries.cents(row["Price"]))["Product"]
        ),
    ],
)


def _clear_periods(world: World, rng: Random) -> list[Params]:
    """Return periods with a single leader."""
    found = [{"start": start, "end": end} for start, end in queries.random_periods(rng, 140, least=5, most=45)]
    ranked = [(_ranked(world, **params), params) for params in found]
    return queries.one_per_answer(
        (rows[0]["name"], params) for rows, params in ranked if queries.has_single_leader(rows, "total")
    )


def _biggest_order_expected(world: World, start: str, end: str) -> Says:
    first, *others = [str(row["name"]) for row in _ranked(world, start, end)]
    return says(first, others=sorted({*others} - {first}))


def _ranked(world: World, start: str, end: str) -> list[dict[str, object]]:
    query = """SELECT c.first || ' ' || c.last AS name, o.total FROM shop_orders o
        JOIN shop_customers c ON c.id = o.customer WHERE substr(o.moment, 1, 10) BETWEEN ? AND ?
        ORDER BY o.total DESC"""
    return [dict(row) for row in world.rows(query, start, end)]


biggest_order = AdminTemplate(
    "cms-biggest-order",
    "information",
    "medium",
    intents=(
        "Which customer placed the order with the highest grand total between {start} and {end}, both days included?",
        "From {start} to {end} (inclusive), who placed our most expensive order?",
        "Find the order with the largest grand total of those placed from {start} until {end}. Who is the customer?",
    ),
    instances=_clear_periods,
    expected=_biggest_order_expected,
    solution=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, _PLACED),
        click("link", "Grand Total"),
        click("link", "Grand Total"),
        answer(lambda page: page.table()[0]["Customer"]),
    ],
)
