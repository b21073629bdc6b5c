"""Questions about orders that need several of them, or arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from sqlite3 import Row

from agentgym_envs.webarena.actions import GoBack, format_command
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NOT_ACHIEVABLE, NotAchievable, Says, says
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import kinds, queries, steps
from agentgym_envs.webarena.tasks.shopping.ordering import repeatable
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import answer, do, given
from agentgym_envs.webarena.tasks.template import Params

_OPTIONS = re.compile(r" (?=[A-Z][a-z]+: )")
"""Between a product and its options in an order."""


def _lines(page: PageReader) -> list[tuple[str, int]]:
    """Return the products of the order on the page with their subtotals in cents."""
    return [(_OPTIONS.split(row["Product Name"])[0], steps.cents(row["Subtotal"])) for row in page.table()]


def _visit(page: PageReader, time: str) -> Steps[list[tuple[str, str, int]]]:
    """Open all orders of a time that were not canceled, and return (day, product, cents) of their lines."""
    found: list[tuple[str, str, int]] = []
    yield page.click("link", "My Orders")
    while True:
        for order in steps.listed_orders(page):
            if steps.is_within(order.day, time) and order.status != "Canceled":
                yield page.click_in(order.number, "link", "View Order")
                found += [(order.day, name, cents) for name, cents in _lines(page)]
                yield format_command(GoBack())
        if not page.has("link", "Next") or _is_before(steps.listed_orders(page)[-1].day, time):
            return found
        yield page.click("link", "Next")


def _is_before(day: str, time: str) -> bool:
    return int(day[-4:]) < int(time[-4:])


def _spent(world: World, time: str) -> dict[str, int]:
    """Return what was spent on the goods of each department in a year or month."""
    sums: dict[str, int] = {}
    for order in queries.orders(world, time):
        for line in queries.order_lines_paid(world, order):
            sums[kinds.department(line["name"])] = sums.get(kinds.department(line["name"]), 0) + line["cents"]
    return sums


def _spent_instances(world: World) -> Iterator[Params]:
    """Yield times with two to five orders that count, and departments of some of what was bought."""
    for time in queries.order_periods(world):
        counted = [row for row in queries.orders(world, time) if row["status"] != "canceled"]
        sums = _spent(world, time)
        if 1 < len(counted) < 6 and len(sums) > 1:
            yield from ({"time": time, "department": name} for name in sums)


spent_by_department = ShopTemplate(
    "shopping-spent-on-department",
    "information",
    "hard",
    since=2,
    intents=(
        'How much did I spend in {time} on goods of the department "{department}"? Add up the subtotals of these '
        "products, without tax and shipping, and leave canceled orders out.",
        "What did the things come to that I bought in {time} and that belong to {department}? Only the goods, before "
        "tax, shipping and discounts; canceled orders do not count.",
        "Look through my orders of {time} that were not canceled. What is the sum of the subtotals of all products "
        'from "{department}"?',
    ),
    instances=_spent_instances,
    expected=lambda world, time, department: says(money(_spent(world, time)[department])),
    solution=[
        do(_visit, "{time}"),
        answer(
            lambda found, department: money(
                sum(cents for _, name, cents in found if kinds.department(name) == department)
            )
        ),
    ],
    mistake=answer(lambda found: money(sum(cents for *_, cents in found) + 1)),
)


def _spent_discounted(world: World, time: str, least: int, percent: int) -> int:
    """Return the totals of a time in cents, with the larger orders reduced."""
    totals = [row["total"] for row in queries.orders(world, time) if row["status"] != "canceled"]
    return sum(total - round(total * percent / 100) if total > 100 * least else total for total in totals)


def _discounted_instances(world: World, rng: Random) -> Iterator[Params]:
    for time in queries.order_periods(world):
        totals = [row["total"] for row in queries.orders(world, time) if row["status"] != "canceled"]
        for least in (100, 150, 200):
            large = sum(total > 100 * least for total in totals)
            if len(totals) >= 2 and 0 < large < len(totals):
                yield {"time": time, "least": least, "percent": rng.choice((10, 20, 50))}


spent_with_rebate = ShopTemplate(
    "shopping-spent-with-rebate",
    "information",
    "medium",
    since=2,
    intents=(
        "How much did I spend in {time}, canceled orders left out? The shop gave me {percent}% of the total back in "
        "cash for each order over ${least}.",
        "For every order of more than ${least} I got {percent}% of its total back, rounded to the cent. What did all "
        "my orders of {time} cost me then? Do not count canceled ones.",
        "Add up the totals of my orders of {time} without the canceled ones, taking {percent}% off each that is over "
        "${least}. What is the sum?",
    ),
    instances=_discounted_instances,
    expected=lambda world, time, least, percent: says(money(_spent_discounted(world, time, least, percent))),
    solution=[
        do(steps.all_orders),
        answer(lambda found, time, least, percent: money(_sum(found, time, least, percent))),
    ],
    mistake=answer(lambda found, time: money(_sum(found, time, 10**6, 0))),
)


def _sum(orders: list[steps.ListedOrder], time: str, least: int, percent: int) -> int:
    totals = [steps.cents(o.total) for o in orders if steps.is_within(o.day, time) and o.status != "Canceled"]
    return sum(total - round(total * percent / 100) if total > 100 * least else total for total in totals)


_HOW = ("including the shipping fee", "if the shipping fee is not refunded")


def _refund(world: World, number: str, how: str) -> Says:
    (order,) = world.rows("SELECT total, shipping FROM shop_orders WHERE number = ?", number)
    return says(money(order["total"] - (order["shipping"] if how == _HOW[1] else 0)))


def _canceled_months(world: World) -> Iterator[Params]:
    """Yield months with a single canceled order, which had a shipping fee if it matters."""
    canceled = [row for row in queries.orders(world) if row["status"] == "canceled"]
    months = [queries.month(row["moment"]) for row in canceled]
    for row, month in zip(canceled, months, strict=True):
        if months.count(month) == 1:
            yield from ({"month": month, "how": how} for how in _HOW if row["shipping"] or how == _HOW[0])


def _canceled_in(world: World, month: str) -> str:
    return next(str(row["number"]) for row in queries.orders(world, month) if row["status"] == "canceled")


def _read_refund(page: PageReader, month: str, how: str) -> Steps[str]:
    fits = lambda order: steps.is_within(order.day, month) and order.status == "Canceled"  # noqa: E731
    yield from steps.open_order(page, fits)
    total = steps.cents(page.value("Grand Total"))
    shipping = steps.cents(page.value(re.compile(r"Shipping \(.*\)")))
    return money(total - (shipping if how == _HOW[1] else 0))


refund_of_canceled = ShopTemplate(
    "shopping-refund-of-canceled",
    "information",
    "medium",
    since=2,
    intents=(
        "How much refund should I expect from my order of {month} that was canceled, {how}?",
        "I canceled an order that I had placed in {month}. What do I get back, {how}?",
        "My order of {month} was canceled after I had paid. What amount will be refunded, {how}?",
    ),
    instances=_canceled_months,
    expected=lambda world, month, how: _refund(world, _canceled_in(world, month), how),
    solution=[do(_read_refund, "{month}", "{how}"), answer(lambda found: found)],
    mistake=answer(lambda page: page.value("Subtotal")),
)


def _spans(world: World) -> Iterator[Params]:
    """Yield first months of spans up to now with two or more complete orders, and others."""
    months = [time for time in queries.order_periods(world) if len(time) > 4]
    for month in months:
        rows = _since(world, month)
        if 1 < sum(row["status"] == "complete" for row in rows) < len(rows):
            yield {"month": month}


def _since(world: World, month: str) -> list[Row]:
    """Return the orders since the beginning of a month."""
    rows = queries.orders(world)
    last = max(number for number, row in enumerate(rows) if queries.month(row["moment"]) == month)
    return rows[: last + 1]


def _count_and_sum(world: World, month: str) -> Says:
    totals = [row["total"] for row in _since(world, month) if row["status"] == "complete"]
    return says(len(totals), money(sum(totals)))


def _complete_since(page: PageReader, month: str) -> Steps[str]:
    orders = yield from steps.all_orders(page)
    last = max(index for index, order in enumerate(orders) if steps.is_within(order.day, month))
    totals = [steps.cents(order.total) for order in orders[: last + 1] if order.status == "Complete"]
    return f"{len(totals)} orders, {money(sum(totals))}"


complete_since = ShopTemplate(
    "shopping-complete-since",
    "information",
    "medium",
    since=2,
    intents=(
        "How many complete orders have I placed since the beginning of {month}, and what did they come to altogether?",
        "From {month} until today: how many of my orders are complete, and how much money did I spend on them?",
        "Count my orders with the status Complete from {month} on, that month included, and add up their totals. Tell "
        "me both numbers.",
    ),
    instances=_spans,
    expected=_count_and_sum,
    solution=_complete_since,
    mistake=lambda page: _all_totals(page),
)


def _all_totals(page: PageReader) -> Steps[str]:
    orders = yield from steps.all_orders(page)
    return f"{len(orders)} orders, {money(sum(steps.cents(order.total) for order in orders))}"


def _bought(world: World) -> dict[str, list[str]]:
    """Return the days on which each kind of product was ordered and not canceled, the newest first."""
    found: dict[str, list[str]] = {}
    for row in queries.orders(world):
        if row["status"] != "canceled":
            for line in queries.order_lines_paid(world, row):
                days = found.setdefault(kinds.kind(line["name"]), [])
                days += [day for day in [clock.day(row["moment"])] if day not in days]
    return found


def _last_day(world: World, kind: str) -> Says:
    days = _bought(world)
    others = {day for every in days.values() for day in every if day != days[kind][0]}
    return says(days[kind][0], others=sorted(others))


def _find_last(page: PageReader, kind: str) -> Steps[str]:
    """Open the orders, the newest first, until one has this kind of product."""
    yield page.click("link", "My Orders")
    while True:
        for order in steps.listed_orders(page):
            if order.status == "Canceled":
                continue
            yield page.click_in(order.number, "link", "View Order")
            if any(kinds.kind(name) == kind for name, _ in _lines(page)):
                return order.day
            yield format_command(GoBack())
        yield page.click("link", "Next")


def _recent_kinds(world: World) -> list[Params]:
    """Return kinds that were bought in one of the last six orders that count."""
    days = [clock.day(row["moment"]) for row in queries.orders(world) if row["status"] != "canceled"][:6]
    return [{"kind": kind} for kind, when in _bought(world).items() if when[0] in days]


last_ordered = ShopTemplate(
    "shopping-last-ordered",
    "information",
    "hard",
    since=2,
    intents=(
        "Tell me when I last ordered my {kind}. Orders that were canceled do not count.",
        'On which day did I most recently order something like "{kind}" that was not canceled?',
        "I forgot when I bought the {kind}. Give me the date of the last order with one, canceled orders aside.",
    ),
    instances=_recent_kinds,
    expected=_last_day,
    solution=_find_last,
    mistake=[answer("2026-03-16")],
)

_STATUSES = {"canceled", "pending", "processing", "complete"}


def _latest(world: World, status: str) -> Row:
    rows = queries.orders(world)
    return next(
        row for row in rows if row["status"] == status or (status == "non-canceled" and row["status"] != "canceled")
    )


def _some_statuses(world: World) -> list[Params]:
    known = sorted({row["status"] for row in queries.orders(world)} & _STATUSES)
    return [{"status": status} for status in [*known, "non-canceled"]]


def _fits(status: str) -> Callable[[steps.ListedOrder], bool]:
    if status == "non-canceled":
        return lambda order: order.status != "Canceled"
    return lambda order: order.status == status.capitalize()


latest_total = ShopTemplate(
    "shopping-latest-total",
    "information",
    "easy",
    since=2,
    intents=(
        "Tell me the total cost of my latest {status} order.",
        "What did my most recent order that is {status} come to, with tax and shipping?",
        "Look for my newest {status} order. What is its total?",
    ),
    instances=_some_statuses,
    expected=lambda world, status: says(money(_latest(world, status)["total"])),
    solution=[
        do(steps.find_order, given(lambda status: _fits(status))),
        answer(lambda found: found.total),
    ],
    mistake=answer(lambda page, found: next(o.total for o in steps.listed_orders(page) if o.total != found.total)),
)

show_latest = ShopTemplate(
    "shopping-show-latest",
    "navigation",
    "easy",
    since=2,
    intents=(
        "Show me my most recent {status} order.",
        "Open the latest of my orders that is {status}.",
        "Bring me to the page of my newest {status} order.",
    ),
    instances=_some_statuses,
    expected=lambda world, status: EndsOn(f"{ORIGINS['shop']}/account/orders/{_latest(world, status)['number']}"),
    solution=[do(steps.open_order, given(lambda status: _fits(status)))],
    mistake=[
        do(
            steps.open_order,
            given(lambda status: lambda order: order.status == ("Complete" if status != "complete" else "Canceled")),
        )
    ],
)

_FACTS = {
    "shipping method": "shipping_method",
    "payment method": "payment_method",
    "date": "moment",
    "street of the shipping address": "shipping",
    "street of the billing address": "billing",
}


def _order_fact(world: World, number: str, fact: str) -> Says:
    (order,) = world.rows("SELECT * FROM shop_orders WHERE number = ?", number)
    if fact.startswith("street"):
        query = "SELECT kind, street FROM shop_order_addresses WHERE order_id = ?"
        streets = {row["kind"]: row["street"] for row in world.rows(query, order["id"])}
        return says(streets.pop(_FACTS[fact]), others=list(streets.values()))
    if fact == "date":
        return says(clock.day(order["moment"]))
    column = _FACTS[fact]
    every = world.rows(f"SELECT DISTINCT {column} AS value FROM shop_orders ORDER BY 1")
    return says(order[column], others=[row["value"] for row in every if row["value"] != order[column]])


def _fact_instances(world: World) -> Iterator[Params]:
    for row in queries.orders(world):
        yield from ({"number": str(int(row["number"])), "fact": fact} for fact in _FACTS)


def _read_fact(page: PageReader, fact: str) -> str:
    if fact == "date":
        return page.search(r"Placed on (\w+ \d+, \d+)")[0]
    if fact.startswith("street"):
        return page.texts(after=f"{_FACTS[fact].capitalize()} Address")[2]
    return page.value(fact.title())


order_fact = ShopTemplate(
    "shopping-order-fact",
    "information",
    "easy",
    since=2,
    intents=(
        "Show me the {fact} of order number {number}.",
        "What is the {fact} of my order {number}?",
        "Look into order {number} and tell me its {fact}.",
    ),
    instances=_fact_instances,
    expected=lambda world, number, fact: _order_fact(world, number.zfill(9), fact),
    solution=[
        do(steps.open_order, given(lambda number: lambda order: int(order.number) == int(number))),
        answer(_read_fact),
    ],
    mistake=answer(lambda page: page.value("Subtotal")),
)

_ADDRESSES = ("4000 Meadow Avenue", "155 Mill Road", "77 Harbour Street", "6 Chapel Lane", "231 Willow Walk")


def _fixed_orders(world: World) -> list[Params]:
    return [{"address": address} for address in _ADDRESSES]


change_order_address = ShopTemplate(
    "shopping-change-order-address",
    "change",
    "easy",
    since=2,
    intents=(
        "Change the delivery address of my most recent order to {address}.",
        "My latest order has to go to {address} instead. Change where it is delivered.",
        "Redirect the order that I placed last to {address}.",
    ),
    instances=_fixed_orders,
    expected=lambda: NotAchievable(),
    solution=[
        do(steps.open_order, given(lambda: lambda order: True)),
        answer(lambda page: "" if page.has("link", re.compile("Edit.*")) else NOT_ACHIEVABLE),
    ],
    mistake=answer("Done"),
)

_PLACES = {"first": -1, "second": -2, "latest": 0}


purchase_day = ShopTemplate(
    "shopping-purchase-day",
    "information",
    "easy",
    since=2,
    intents=(
        "What is the date when I made my {which} purchase in this shop?",
        "On which day did I place my {which} order here?",
        "Tell me the day of the {which} order that I placed in the shop.",
    ),
    instances=lambda: [{"which": which} for which in _PLACES],
    expected=lambda world, which: says(clock.day(queries.orders(world)[_PLACES[which]]["moment"])),
    solution=[do(steps.all_orders), answer(lambda found, which: found[_PLACES[which]].day)],
    mistake=answer(lambda found: found[len(found) // 2].day),
)

order_again = ShopTemplate(
    "shopping-order-again",
    "change",
    "medium",
    since=2,
    intents=(
        'In {month} I ordered "{kind}", among other things perhaps, and canceled the order. Put it all into my cart '
        "again.",
        'I previously ordered "{kind}" in {month} and then canceled that. Reorder it: everything in that order goes '
        "into the cart.",
        'My canceled order of {month} had "{kind}" in it. Fill the cart with what was in that order, in the same '
        "quantities.",
    ),
    instances=lambda world: list(_canceled_goods(world)),
    expected=lambda world, month: [
        queries.in_cart(world, line["name"], line["options"], line["quantity"])
        for line in queries.order_lines(world, _canceled_in(world, month))
    ],
    solution=[
        do(
            steps.open_order,
            given(lambda month: lambda order: steps.is_within(order.day, month) and order.status == "Canceled"),
        ),
        do(lambda page: page.click("button", "Reorder")),
    ],
    mistake=[
        do(steps.open_order, given(lambda: lambda order: order.status != "Canceled")),
        do(lambda page: page.click("button", "Reorder")),
    ],
)


def _canceled_goods(world: World) -> Iterator[Params]:
    """Yield the kinds of products in canceled orders of months with a single one."""
    again = {row["number"] for row in repeatable(world)}
    months = {params["month"] for params in _canceled_months(world)}
    for month in sorted(months):
        number = _canceled_in(world, month)
        if number in again:
            for line in queries.order_lines(world, number):
                yield {"month": month, "kind": kinds.kind(line["name"])}
