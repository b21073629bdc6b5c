"""Tasks of several steps."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says_first
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import AdminTemplate
from agentgym_envs.webarena.tasks.cms.steps import ORDER_LINK, SELECT_ALL
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, given, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params


def _pending_orders(world: World, rng: Random) -> Iterator[Params]:
    carriers = queries.carriers(world)
    for row in world.rows("SELECT number FROM shop_orders WHERE status = 'pending' ORDER BY id"):
        yield {"number": row[0], "carrier": rng.choice(carriers), "track": f"{rng.randint(10**9, 10**10 - 1)}"}


def _fulfilled(world: World, number: str, carrier: str, track: str) -> ExpectedResult:
    (row,) = world.rows("SELECT id, total FROM shop_orders WHERE number = ?", number)
    invoice = Added("shop_invoices", {"order_id": row["id"], "total": row["total"]})
    tracked = Added("shop_tracks", {"carrier": carrier, "number": track})
    done = Updated("shop_orders", {"id": row["id"]}, {"status": "complete"})
    return [invoice, Added("shop_shipments", {"order_id": row["id"]}), tracked, done]


fulfil_order = AdminTemplate(
    "cms-fulfil-order",
    "change",
    "hard",
    held_out=True,
    intents=(
        "Order #{number} is paid and packed: create its invoice, then ship it with {carrier}, tracking number {track}.",
        "Invoice order {number} and enter its shipment with {carrier} under the tracking number {track}.",
        "Complete order #{number}. It needs an invoice, and a shipment with the {carrier} tracking number {track}.",
    ),
    instances=_pending_orders,
    expected=_fulfilled,
    solution=[
        do(steps.open_order, "{number}"),
        click("link", "Invoice"),
        click("button", "Submit Invoice"),
        click("link", "Ship"),
        choose_option("Carrier", "{carrier}"),
        type_text("Tracking Number", "{track}"),
        click("button", "Submit Shipment"),
    ],
)


def _promote_customer_instances(world: World, rng: Random) -> Iterator[Params]:
    chosen = [{"start": start, "end": end} for start, end in queries.random_periods(rng, 110, least=5, most=45)]
    ranked = [(_by_total(world, **params), params) for params in chosen]
    found = queries.one_per_answer(
        (rows[0]["id"], (rows[0], params)) for rows, params in ranked if queries.has_single_leader(rows, "total")
    )
    for row, params in found:
        others = [one for one in ("General", "Wholesale", "Retailer") if one != row["customer_group"]]
        yield {**params, "target": rng.choice(others)}


def _by_total(world: World, start: str, end: str) -> list[dict[str, Any]]:
    query = """SELECT c.id, c.customer_group, o.total FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
        WHERE substr(o.moment, 1, 10) BETWEEN ? AND ? ORDER BY o.total DESC"""
    return [dict(row) for row in world.rows(query, start, end)]


promote_customer = AdminTemplate(
    "cms-promote-customer",
    "change",
    "hard",
    intents=(
        "Find out who placed the order with the highest grand total from {start} to {end} (inclusive), and move that "
        "customer to the group {target}.",
        "The customer whose order had the highest grand total between {start} and {end}, both days included, is to "
        "become a {target} customer. Change the group of the account.",
        "Which customer placed the most expensive order from {start} until {end}? Set the group of that customer to "
        "{target}.",
    ),
    instances=_promote_customer_instances,
    expected=lambda world, start, end, target: Updated(
        "shop_customers", {"id": _by_total(world, start, end)[0]["id"]}, {"customer_group": target}
    ),
    solution=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, {"Purchase date from": "{start}", "Purchase date to": "{end}"}),
        click("link", "Grand Total"),
        click("link", "Grand Total"),
        do(steps.open_customer, given(lambda page: page.table()[0]["Customer"])),
        choose_option("Group", "{target}"),
        click("button", "Save Customer"),
    ],
    mistake=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, {"Purchase date from": "{start}", "Purchase date to": "{end}"}),
        click("link", "Grand Total"),
        do(steps.open_customer, given(lambda page: page.table()[0]["Customer"])),
        choose_option("Group", "{target}"),
        click("button", "Save Customer"),
    ],
)


def _correct_both_addresses_instances(world: World, rng: Random) -> Iterator[Params]:
    names = sorted({row[0].partition(" ")[2] for row in world.rows("SELECT street FROM shop_addresses")})
    query = "SELECT number FROM shop_orders WHERE status <> 'canceled' ORDER BY id DESC"
    for row in queries.sample_some(world.rows(f"{query} LIMIT 120"), rng, 40):
        yield {"number": row["number"], "street": f"{rng.randint(200, 999)} {rng.choice(names)}"}


def _correct(page: PageReader, kind: str, street: str) -> Iterator[str]:
    yield page.click("link", f"Edit {kind} address")
    yield page.type("Street Address", street)
    yield page.click("button", "Save Address")


correct_both_addresses = AdminTemplate(
    "cms-correct-both-addresses",
    "change",
    "hard",
    held_out=True,
    intents=(
        'The street in both addresses of order #{number}, shipping and billing, must be "{street}". Correct them.',
        'Change the street address of order {number} to "{street}", in the billing address as well as in the shipping '
        "address.",
        'The billing and the shipping address of order #{number} have an old street. Set it to "{street}" in each.',
    ),
    instances=_correct_both_addresses_instances,
    expected=lambda world, number, street: Updated(
        "shop_order_addresses",
        {"order_id": world.value("SELECT id FROM shop_orders WHERE number = ?", number)},
        {"street": street},
        2,
    ),
    solution=[
        do(steps.open_order, "{number}"),
        do(_correct, "shipping", "{street}"),
        do(_correct, "billing", "{street}"),
    ],
)


def _disable_low_stock_instances(world: World, rng: Random) -> Iterator[Params]:
    """Categories in which two to four products, all enabled, are at or below a stock level."""
    for row in world.rows("SELECT id, name FROM shop_categories WHERE parent IS NOT NULL ORDER BY id"):
        query = "SELECT stock, enabled FROM shop_products WHERE category = ? ORDER BY stock"
        stocks, count = world.rows(query, row["id"]), rng.choice((2, 2, 3, 4))
        if len(stocks) <= count or not all(one["enabled"] for one in stocks[:count]):
            continue
        room = stocks[count]["stock"] - stocks[count - 1]["stock"]
        if room > 1:
            yield {"category": row["name"], "most": stocks[count - 1]["stock"] + room // 2}


def _disabled(world: World, category: str, most: int) -> list[Expected]:
    query = """SELECT p.id FROM shop_products p JOIN shop_categories k ON k.id = p.category
        WHERE k.name = ? AND k.parent IS NOT NULL AND p.stock <= ? ORDER BY p.id"""
    rows = world.rows(query, category, most)
    return [Updated("shop_products", {"id": row["id"]}, {"enabled": 0}) for row in rows]


disable_low_stock = AdminTemplate(
    "cms-disable-low-stock",
    "change",
    "hard",
    intents=(
        'Disable the products of the category "{category}" of which there are at most {most} units in stock.',
        'In the category "{category}", disable every product with {most} or fewer units left.',
        'We want to sell no product of "{category}" of which we have no more than {most}. Disable these products, and '
        "leave the others enabled.",
    ),
    instances=_disable_low_stock_instances,
    expected=_disabled,
    solution=[
        do(steps.open_from_menu, "Catalog", "Products"),
        do(steps.filter_grid, {"Quantity to": "{most}"}, Category="{category}"),
        do(steps.apply_to_rows, "Disable", [SELECT_ALL]),
    ],
)

_HEADS = ("Thank you", "Welcome back", "Partner bonus", "Large orders", "Spring greeting")


def _new_group_rule_instances(rng: Random) -> Iterator[Params]:
    """Use coupon codes that are not taken."""
    for group in ("Wholesale", "Retailer", "General"):
        for head in _HEADS:
            for amount in rng.sample((4, 6, 7, 9, 11, 12, 14), 2):
                rule = f"{head}, {group}"
                code = f"{head.split(' ')[0].upper()}-{group[0]}{amount}"
                yield {"rule": rule, "coupon": code, "target": group, "amount": amount}


def _rule_added(rule: str, coupon: str, target: str, amount: int) -> Added:
    values = {"name": rule, "coupon": coupon, "kind": "fixed", "amount": 100 * amount}
    values |= {"customer_group": target, "active": 1, "minimum": 0, "starts": None, "ends": None}
    return Added("shop_rules", values)


new_group_rule = AdminTemplate(
    "cms-new-group-rule",
    "change",
    "hard",
    intents=(
        'Create an active cart price rule "{rule}" for the customer group {target}: with the coupon {coupon}, '
        "${amount} off the whole cart, with no minimum and no dates.",
        'Add a cart price rule called "{rule}" with the coupon code {coupon}. It gives {target} customers a fixed '
        "${amount} off the whole cart, is active, and has neither a minimum nor dates.",
        "{target} customers are to get ${amount} off any cart with the coupon {coupon}. Set up the cart price rule, "
        'name it "{rule}", leave it active and without dates.',
    ),
    instances=_new_group_rule_instances,
    expected=_rule_added,
    solution=[
        do(steps.open_from_menu, "Marketing", "Cart Price Rules"),
        click("link", "Add New Rule"),
        do(steps.fill_in, {"Rule Name": "{rule}", "Coupon Code": "{coupon}"}),
        choose_option("Customer Group", "{target}"),
        choose_option("Apply", "Fixed amount for the whole cart"),
        type_text("Discount Amount", "{amount}"),
        click("button", "Save"),
    ],
)


def _most_expensive_of_category_instances(world: World) -> list[Params]:
    """Categories with a single most expensive product."""
    names = [str(row[0]) for row in world.rows("SELECT name FROM shop_categories WHERE parent IS NOT NULL ORDER BY id")]
    return [{"category": name} for name in names if queries.has_single_leader(_by_price(world, name), "price")]


def _by_price(world: World, category: str) -> list[dict[str, object]]:
    query = """SELECT p.name, p.price FROM shop_products p JOIN shop_categories k ON k.id = p.category
        WHERE k.name = ? AND k.parent IS NOT NULL ORDER BY p.price DESC"""
    return [dict(row) for row in world.rows(query, category)]


most_expensive_of_category = AdminTemplate(
    "cms-dearest-of-category",
    "information",
    "medium",
    intents=(
        'Which product in the category "{category}" has the highest price? Leave special prices aside.',
        'What is the most expensive product of the category "{category}" by its regular price?',
        'Name the product with the highest regular price in "{category}".',
    ),
    instances=_most_expensive_of_category_instances,
    expected=lambda world, category: says_first(row["name"] for row in _by_price(world, category)),
    solution=[
        do(steps.open_from_menu, "Catalog", "Products"),
        do(steps.filter_grid, {}, Category="{category}"),
        click("link", "Price"),
        click("link", "Price"),
        answer(lambda page: page.table()[0]["Name"]),
    ],
)

_MESSAGES = ("Thank you for coming back so often!", "You have been our best customer. Thank you!", "Many thanks!")


def _periods(world: World, rng: Random) -> list[Params]:
    """Return periods with a single leader."""
    chosen = [(_by_orders(world, *span), span) for span in queries.random_periods(rng, 150, least=10, most=70)]
    found = queries.one_per_answer(
        (rows[0]["customer"], span) for rows, span in chosen if queries.has_single_leader(rows, "orders")
    )
    return [{"start": start, "end": end} for start, end in found]


def _buyer_thanked(world: World, start: str, end: str, message: str) -> ExpectedResult:
    customer = _by_orders(world, start, end)[0]["customer"]
    query = "SELECT id, status FROM shop_orders WHERE customer = ? ORDER BY moment DESC LIMIT 1"
    (order,) = world.rows(query, customer)
    values = {"order_id": order["id"], "status": order["status"], "text": message, "notified": 1}
    return Added("shop_order_comments", values)


def _by_orders(world: World, start: str, end: str) -> list[dict[str, object]]:
    query = """SELECT customer, COUNT(*) AS orders FROM shop_orders WHERE status <> 'canceled'
        AND substr(moment, 1, 10) BETWEEN ? AND ? GROUP BY customer ORDER BY orders DESC"""
    return [dict(row) for row in world.rows(query, start, end)]


message_buyer = AdminTemplate(
    "cms-thank-customer",
    "change",
    "hard",
    held_out=True,
    intents=(
        "Which customer placed the most orders from {start} to {end} (canceled ones left out)? Add the comment "
        '"{message}" to the most recent order of that customer, whatever its status, and notify the customer.',
        "Find the customer with the largest number of orders between {start} and {end}, canceled ones not counted. "
        'Comment on the newest order of that customer, whatever its status, with "{message}", and have them notified.',
        "Thank our most frequent buyer of the time from {start} until {end} (without canceled orders): write "
        '"{message}" as a comment on the latest order of that buyer, whatever its status, with a notification.',
    ),
    instances=choose(_periods, message=_MESSAGES),
    expected=_buyer_thanked,
    solution=[
        do(steps.open_from_menu, "Reports", "Order Count Report"),
        do(steps.fill_in, {"From": "{start}", "To": "{end}"}, enter=True),
        do(steps.open_customer, given(lambda page: page.table()[0]["Customer"])),
        click("link", ORDER_LINK),
        do(steps.add_comment, "{message}"),
    ],
    mistake=[
        do(steps.open_from_menu, "Sales", "Orders"),
        click("link", ORDER_LINK),
        type_text("Comment", "{message}"),
        click("button", "Submit Comment"),
    ],
)
