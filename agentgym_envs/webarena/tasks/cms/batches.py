"""Tasks over several orders or products, and drafts of price rules."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Expected, Updated
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import AdminTemplate
from agentgym_envs.webarena.tasks.cms.steps import ORDER_LINK
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, click, do, given
from agentgym_envs.webarena.tasks.template import Params

_CUSTOMER = (
    "SELECT o.*, c.first || ' ' || c.last AS name, c.email FROM shop_orders o "
    "JOIN shop_customers c ON c.id = o.customer"
)
_FACTS = {"name": "name", "e-mail address": "email", "number of canceled orders": "count"}


def _cancelers(world: World) -> list[tuple[int, str, str]]:
    """Return (canceled orders, name, e-mail address) of all customers, most first."""
    rows = world.rows(f"{_CUSTOMER} WHERE o.status = 'canceled'")
    counts = Counter((row["name"], row["email"]) for row in rows)
    return sorted(((count, *who) for who, count in counts.items()), reverse=True)


def _most_canceled_instances(world: World) -> Iterator[Params]:
    """Yield the facts of the customer with the most canceled orders; on a tie, only their number."""
    found = _cancelers(world)
    for fact in _FACTS:
        if found[0][0] > found[1][0] or fact.startswith("number"):
            yield {"fact": fact}


def _most_canceled_expected(world: World, fact: str) -> Says:
    found = _cancelers(world)
    place = 1 if fact == "name" else 2
    return (
        says(found[0][0]) if fact.startswith("number") else says(found[0][place], others=[r[place] for r in found[1:]])
    )


def _count_canceled(page: PageReader, fact: str, status: str = "Canceled") -> Steps[str]:
    yield from steps.open_from_menu(page, "Sales", "Orders")
    yield from steps.filter_grid(page, {}, Status=status)
    names = [row["Customer"] for row in page.table()]
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        names += [row["Customer"] for row in page.table()]
    ((name, count),) = Counter(names).most_common(1)
    if fact != "e-mail address":
        return name if fact == "name" else str(count)
    yield from steps.open_customer(page, name)
    return steps.field_value(page, "E-mail")


most_canceled = AdminTemplate(
    "cms-most-canceled",
    "information",
    "hard",
    since=2,
    intents=(
        "Tell me the {fact} of the customer who has the most canceled orders of all time.",
        "Which customer has canceled most often? I need the {fact}.",
        "Look at all canceled orders, and find the customer with the largest number of them. What is the {fact}?",
    ),
    instances=_most_canceled_instances,
    expected=_most_canceled_expected,
    solution=_count_canceled,
    mistake=lambda page: _count_canceled(page, "name", "Closed"),
)

disable_product = AdminTemplate(
    "cms-disable-product",
    "change",
    "easy",
    since=2,
    intents=(
        "Disable {product} in the shop, there are some quality issues with it.",
        "Take {product} off the shop: disable it.",
        "We do not want to sell {product} at the moment. Disable the product, and leave everything else as it is.",
    ),
    instances=rows("SELECT name AS product FROM shop_products WHERE enabled ORDER BY id", sample=queries.ENOUGH),
    expected=lambda product: Updated("shop_products", {"name": product}, {"enabled": 0}),
    solution=[do(steps.open_product, "{product}"), click("checkbox", "Enable Product"), click("button", "Save")],
)


def _of_brand(world: World, brand: str, category: str) -> list[tuple[str, int]]:
    query = """SELECT p.name, p.price FROM shop_products p JOIN shop_categories k ON k.id = p.category
        WHERE p.brand = ? AND k.name = ? ORDER BY p.id"""
    return [(row["name"], row["price"]) for row in world.rows(query, brand, category)]


def _small_groups(world: World) -> list[Params]:
    """Return brands and categories with two to four products together, all in stock."""
    query = """SELECT p.brand, k.name AS category FROM shop_products p JOIN shop_categories k ON k.id = p.category
        GROUP BY p.brand, k.id HAVING COUNT(*) BETWEEN 2 AND 4 AND MIN(p.stock) > 0 ORDER BY p.brand, k.id"""
    return [dict(row) for row in world.rows(query)]


def _change_each(
    page: PageReader, brand: str, category: str, label: str, change: object, most: int = 9
) -> Iterator[str]:
    """Change a field of each product of a brand in a category; `change` computes the new text from the old one."""
    assert callable(change)
    yield from steps.open_from_menu(page, "Catalog", "Products")
    yield from steps.filter_grid(page, {"Brand": brand}, Category=category)
    for name in [row["Name"] for row in page.table()][:most]:
        yield from steps.open_product(page, name)
        yield page.type(label, change(steps.field_value(page, label)))
        yield page.click("button", "Save")


out_of_stock = AdminTemplate(
    "cms-out-of-stock",
    "change",
    "hard",
    since=2,
    intents=(
        'Set all {brand} products of the category "{category}" to out of stock: none is left of any of them.',
        'There has been a fire where we keep "{category}" by {brand}. The quantity of each of these products is 0 now; '
        "enter that.",
        'Of the products in "{category}" by {brand}, nothing is in stock any more. Correct the quantity of every one.',
    ),
    instances=_small_groups,
    expected=lambda world, brand, category: [
        Updated("shop_products", {"name": name}, {"stock": 0}) for name, _ in _of_brand(world, brand, category)
    ],
    solution=[do(_change_each, "{brand}", "{category}", "Quantity", given(lambda: lambda old: "0"))],
    mistake=[do(_change_each, "{brand}", "{category}", "Quantity", given(lambda: lambda old: "0"), most=1)],
)


def _with_amounts(world: World, rng: Random) -> Iterator[Params]:
    for row in _small_groups(world):
        amount = rng.choice((1, 2, 3, 5))
        if all(price > 200 * amount for _, price in _of_brand(world, row["brand"], row["category"])):
            found = {**row, "change": rng.choice(("Reduce", "Increase")), "amount": amount}
            if found["change"] == "Increase" or 100 * amount < _least_discount(world, row["brand"], row["category"]):
                yield found


def _least_discount(world: World, brand: str, category: str) -> float:
    """Return the least difference between price and special price: the form refuses a price that is not above."""
    query = """SELECT MIN(p.price - p.special_price) FROM shop_products p JOIN shop_categories k ON k.id = p.category
        WHERE p.brand = ? AND k.name = ?"""
    found = world.value(query, brand, category)
    return math.inf if found is None else float(found)


def _repriced(world: World, brand: str, category: str, change: str, amount: int) -> Iterator[Expected]:
    for name, price in _of_brand(world, brand, category):
        new = price + (100 if change == "Increase" else -100) * amount
        yield Updated("shop_products", {"name": name}, {"price": new})


def _other_price(change: str, amount: int) -> object:
    sign = 1 if change == "Increase" else -1
    return lambda old: queries.dollars(queries.cents(old) + sign * 100 * amount)


change_brand_prices = AdminTemplate(
    "cms-change-brand-prices",
    "change",
    "hard",
    since=2,
    intents=(
        '{change} the price of all {brand} products in the category "{category}" by ${amount} each. Leave special '
        "prices as they are.",
        '{change} the regular price of every product of "{category}" that is by {brand}, by ${amount}.',
        '{change} by ${amount} what each "{category}" product of the brand {brand} costs, without touching special '
        "prices.",
    ),
    instances=_with_amounts,
    expected=_repriced,
    solution=[
        do(_change_each, "{brand}", "{category}", "Price", given(lambda change, amount: _other_price(change, amount)))
    ],
    mistake=[
        do(
            _change_each,
            "{brand}",
            "{category}",
            "Price",
            given(lambda change, amount: _other_price(change, amount)),
            most=1,
        )
    ],
)


def _last_orders(world: World, count: int) -> int:
    query = f"SELECT id FROM shop_orders ORDER BY moment DESC, id DESC LIMIT {count}"
    return int(world.value(f"SELECT SUM(quantity) FROM shop_order_lines WHERE order_id IN ({query})"))


items_in_last = AdminTemplate(
    "cms-items-in-last",
    "information",
    "easy",
    since=2,
    intents=(
        "What is the total number of items sold in the most recent {count} orders?",
        "Add up the items of the {count} orders that were placed last. How many are that?",
        "How many items do our newest {count} orders have altogether?",
    ),
    instances=lambda: [{"count": count} for count in (2, 3, 4, 5)],
    expected=lambda world, count: says(_last_orders(world, count)),
    solution=[
        answer(
            lambda page, count: str(sum(int(row["Items"]) for row in steps.table_with(page, "Items")[:count])),
        )
    ],
    mistake=answer(lambda page: str(sum(int(row["Items"]) for row in steps.table_with(page, "Items")) + 1)),
)

_ORDER_FACTS = (
    "name of the customer",
    "e-mail address of the customer",
    "grand total",
    "date",
    "names of the products",
)


def _latest_facts(world: World) -> list[Params]:
    statuses = ("pending", "processing", "complete", "canceled", "closed")
    return [{"status": status, "fact": fact} for status in statuses for fact in _ORDER_FACTS]


def _latest_fact(world: World, status: str, fact: str) -> Says:
    order = world.rows(f"{_CUSTOMER} WHERE o.status = ? ORDER BY o.moment DESC LIMIT 1", status)[0]
    if fact == "names of the products":
        lines = world.rows("SELECT DISTINCT name FROM shop_order_lines WHERE order_id = ?", order["id"])
        return says(*(row["name"] for row in lines))
    if fact in ("grand total", "date"):
        return says(money(order["total"]) if fact == "grand total" else day(order["moment"]))
    column = "email" if fact.startswith("e-mail") else "name"
    others = world.rows(f"SELECT DISTINCT {column} FROM ({_CUSTOMER}) WHERE {column} <> ?", order[column])
    return says(order[column], others=[row[0] for row in others])


def _read_fact(page: PageReader, fact: str) -> str:
    if fact == "names of the products":
        return "\n".join(dict.fromkeys(e.name for e in page.all("link", re.compile(".+ .+ .+"), after="Row Total")))
    labels = {"name of the customer": "Customer Name", "e-mail address of the customer": "E-mail"}
    value = page.value({**labels, "grand total": "Grand Total", "date": "Order Date"}[fact])
    return value.rsplit(", ", 1)[0] if fact == "date" else value


latest_order_fact = AdminTemplate(
    "cms-latest-order-fact",
    "information",
    "medium",
    since=2,
    intents=(
        'What is the {fact} of the most recent order with the status "{status}"?',
        'Look up the {fact} of the "{status}" order that was placed last.',
        'Among the orders with the status "{status}", take the newest. Tell me the {fact}.',
    ),
    instances=_latest_facts,
    expected=_latest_fact,
    solution=[
        do(steps.open_from_menu, "Sales", "Orders"),
        do(steps.filter_grid, {}, Status=steps.STATUS),
        click("link", ORDER_LINK),
        answer(_read_fact),
    ],
    mistake=answer(lambda page: page.value("Payment Method")),
)


def _by_phone(world: World, phone: str) -> Says:
    query = """SELECT c.first || ' ' || c.last AS name, c.email FROM shop_customers c
        JOIN shop_addresses a ON a.id = c.address WHERE a.phone = ?"""
    (row,) = world.rows(query, phone)
    return says(row["name"], row["email"])


name_and_email = AdminTemplate(
    "cms-name-and-email",
    "information",
    "medium",
    since=2,
    intents=(
        "Find the name and the e-mail address of the customer with the phone number {phone}.",
        "Who has the phone number {phone}? Tell me the customer's name and e-mail address.",
        "A customer left only the number {phone}. Look up the name and the e-mail address that belong to it.",
    ),
    instances=rows(
        """SELECT a.phone FROM shop_customers c JOIN shop_addresses a ON a.id = c.address
            GROUP BY a.phone HAVING COUNT(*) = 1 ORDER BY c.id""",
        sample=queries.ENOUGH,
    ),
    expected=_by_phone,
    solution=[
        do(steps.open_from_menu, "Customers", "All Customers"),
        do(steps.filter_grid, {"Phone": "{phone}"}),
        answer(lambda page: f"{page.table()[0]['Name']}, {page.table()[0]['E-mail']}"),
    ],
    mistake=answer(lambda page: page.table()[0]["Name"]),
)
