"""Questions about the customer's orders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from agentgym_envs.webarena.actions import GoBack, format_command
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import answer, do
from agentgym_envs.webarena.tasks.template import Params

_ORDER_LINES = (
    "FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id "
    f"WHERE o.customer = {queries.ME} AND o.status <> 'canceled'"
)

own_order_total = ShopTemplate(
    "shopping-order-total",
    "information",
    "easy",
    intents=(
        "What was the grand total of my order #{number}?",
        "How much did I pay altogether for order #{number}, with tax and shipping?",
        "Look up my order #{number} and tell me its total.",
    ),
    instances=lambda world: [{"number": row["number"]} for row in queries.orders(world)],
    expected=lambda world, number: says(money(world.value("SELECT total FROM shop_orders WHERE number = ?", number))),
    solution=[do(steps.find_order, steps.WITH_NUMBER), answer(lambda found: found.total)],
    mistake=[do(steps.open_order, steps.WITH_NUMBER), answer(lambda page: page.value("Subtotal"))],
)

_WHICH = ("latest", "second latest", "oldest")


def _statuses(world: World) -> list[Params]:
    counts = Counter(row["status"] for row in queries.orders(world))
    return [
        {"status": queries.shown_status(status), "which": which}
        for status, count in counts.items()
        for which in _WHICH
        if which == "latest" or count > 2
    ]


def _number_of(world: World, status: str, which: str) -> Says:
    rows = queries.orders(world)
    found = [row["number"] for row in rows if queries.shown_status(row["status"]) == status]
    return says(_pick(found, which), others=[row["number"] for row in rows])


def _pick(numbers: Sequence[str], which: str) -> str:
    return numbers[(0, 1, -1)[_WHICH.index(which)]]


order_of_status = ShopTemplate(
    "shopping-order-of-status",
    "information",
    "easy",
    intents=(
        'What is the number of my {which} order with the status "{status}"?',
        'Among my orders that are "{status}", which is the {which} one? Tell me its number.',
        'Give me the order number of the {which} of my "{status}" orders.',
    ),
    instances=_statuses,
    expected=_number_of,
    solution=[
        do(steps.all_orders),
        answer(lambda found, which, status: _pick([order.number for order in found if order.status == status], which)),
    ],
    mistake=answer(lambda found, status: next(order.number for order in found if order.status != status)),
)


def _periods(world: World) -> list[Params]:
    """Return years and months with at least two orders, not all of one status."""
    found: list[Params] = []
    for time in queries.order_periods(world):
        rows = queries.orders(world, time)
        counts = Counter(row["status"] for row in rows)
        found += [{"time": time, "status": queries.shown_status(one)} for one in counts if 1 <= counts[one] < len(rows)]
    return found


def _number_of_orders(world: World, time: str, status: str) -> Says:
    rows = queries.orders(world, time)
    return says(sum(queries.shown_status(row["status"]) == status for row in rows))


count_own_orders = ShopTemplate(
    "shopping-count-orders",
    "information",
    "medium",
    intents=(
        'How many of the orders that I placed in {time} have the status "{status}"? Answer with the number alone.',
        'Count my orders of {time} whose status is "{status}". Give just the number.',
        'Of everything I ordered in {time}, how many orders are "{status}"? One number will do.',
    ),
    instances=_periods,
    expected=_number_of_orders,
    solution=[
        do(steps.all_orders),
        answer(
            lambda found, time, status: sum(
                steps.is_within(order.day, time) and order.status == status for order in found
            )
        ),
    ],
    mistake=answer(lambda found, time: sum(steps.is_within(order.day, time) for order in found)),
)


def _spent_in_months_instances(world: World) -> list[Params]:
    """Periods of two to four months with two to eight orders that count."""
    months = [time for time in reversed(queries.order_periods(world)) if len(time) > 4]
    spans = ((months[start : start + size]) for size in (2, 3, 4) for start in range(len(months) - size + 1))
    kept = (span for span in spans if 2 <= len(_totals(world, span)) <= 8)
    return [{"first": span[0], "last": span[-1]} for span in kept]


def _totals(world: World, months: Sequence[str]) -> list[int]:
    rows = (row for time in months for row in queries.orders(world, time))
    return [row["total"] for row in rows if row["status"] != "canceled"]


def _period_orders(page: PageReader, first: str, last: str) -> Steps[list[steps.ListedOrder]]:
    every = yield from steps.all_orders(page)
    months = steps.months(first, last)
    return [order for order in every if any(steps.is_within(order.day, time) for time in months)]


spent_in_months = ShopTemplate(
    "shopping-spent",
    "information",
    "medium",
    intents=(
        "How much did I spend in the shop from {first} to {last} (both included)? Add up the totals of my orders, "
        "leaving out canceled ones.",
        "Not counting canceled orders, what do my orders of the months {first} to {last} come to altogether?",
        "I am doing my accounts: what is the sum of the grand totals of all orders that I placed from {first} up to "
        "and including {last} and that were not canceled?",
    ),
    instances=_spent_in_months_instances,
    expected=lambda world, first, last: says(money(sum(_totals(world, steps.months(first, last))))),
    solution=[
        do(_period_orders, "{first}", "{last}"),
        answer(lambda found: money(sum(steps.cents(order.total) for order in found if order.status != "Canceled"))),
    ],
    mistake=answer(lambda found: next(order.total for order in found if order.status != "Canceled")),
)


def _tracking_numbers(world: World) -> dict[str, str]:
    rows = world.rows(
        "SELECT o.moment, t.number FROM shop_orders o JOIN shop_shipments s ON s.order_id = o.id "
        "JOIN shop_tracks t ON t.shipment = s.id WHERE o.customer = ?",
        queries.ME,
    )
    return {clock.day(row["moment"]): row["number"] for row in rows}


order_tracking_number = ShopTemplate(
    "shopping-tracking",
    "information",
    "medium",
    intents=(
        "What is the tracking number of the order that I placed on {day}?",
        "I want to follow the parcel of my order from {day}. What is its tracking number?",
        "Find the tracking number for what I ordered on {day}.",
    ),
    instances=lambda world: [{"day": when} for when in _tracking_numbers(world)],
    expected=lambda world, day: says(_tracking_numbers(world)[day], others=list(_tracking_numbers(world).values())),
    solution=[do(steps.open_order, steps.PLACED_ON_DAY), answer(steps.tracking_number)],
)


def _chosen_option_instances(world: World) -> list[Params]:
    """Ordered products with options whose value is not part of another value."""
    rows = world.rows(f"SELECT o.moment, l.name, l.options {_ORDER_LINES} AND l.options <> ''")
    return [
        {"product": row["name"], "day": clock.day(row["moment"]), "option": option}
        for row in rows
        for option, value in queries.options(row["options"]).items()
        if len(value) > 1 and not any(value in other != value for other in _offered(world, row["name"], option))
    ]


def _chosen_option_expected(world: World, product: str, day: str, option: str) -> Says:
    rows = world.rows(f"SELECT o.moment, l.options {_ORDER_LINES} AND l.name = ?", product)
    options = next(row["options"] for row in rows if clock.day(row["moment"]) == day)
    others = _offered(world, product, option)
    return says(queries.options(options)[option], others=others)


def _offered(world: World, product: str, option: str) -> list[str]:
    """Return the values on offer, except single letters, which a sentence may contain by chance ("it's")."""
    query = "SELECT value FROM shop_options WHERE product = ? AND LOWER(name) = ? AND LENGTH(value) > 1"
    return [row["value"] for row in world.rows(query, queries.product_id(world, product), option)]


chosen_option = ShopTemplate(
    "shopping-chosen-option",
    "information",
    "medium",
    intents=(
        "Which {option} of the {product} did I choose in my order of {day}?",
        "On {day} I ordered the {product}. In which {option}?",
        "I want to buy the {product} again as on {day}. Which {option} did I take then?",
    ),
    instances=_chosen_option_instances,
    expected=_chosen_option_expected,
    solution=[
        do(steps.open_order, steps.PLACED_ON_DAY),
        answer(lambda page, option, product: steps.chosen_options(page, product)[option]),
    ],
    mistake=answer("{day}"),
)


def _open_order_instances(world: World) -> list[Params]:
    """Products that were ordered once, in months of two or three orders."""
    rows = world.rows(f"SELECT o.moment, l.name {_ORDER_LINES}")
    counts = Counter(row["name"] for row in rows)
    crowd = Counter(queries.month(row["moment"]) for row in queries.orders(world))
    kept = [row for row in rows if counts[row["name"]] == 1 and 2 <= crowd[queries.month(row["moment"])] <= 3]
    return [{"product": row["name"], "month": queries.month(row["moment"])} for row in kept]


def _order_page(world: World, product: str) -> EndsOn:
    number = world.value(f"SELECT o.number {_ORDER_LINES} AND l.name = ?", product)
    return EndsOn(f"{ORIGINS['shop']}/account/orders/{number}")


def _look_into_orders(page: PageReader, month: str, product: str) -> Steps[None]:
    first = yield from steps.find_order(page, lambda order: steps.is_within(order.day, month))
    number = first.number
    while True:
        yield page.click_in(number, "link", "View Order")
        if page.has("cell", re.compile(rf"{re.escape(product)}( .*)?")):
            break
        yield format_command(GoBack())
        number = yield from steps.next_order(page, number)


open_order = ShopTemplate(
    "shopping-open-order",
    "navigation",
    "hard",
    intents=(
        "Open the order of {month} in which I bought the {product}.",
        "Show me the details of the order, placed in {month}, that has the {product} in it.",
        "I bought the {product} in {month}. Bring up that order.",
    ),
    instances=_open_order_instances,
    expected=_order_page,
    solution=_look_into_orders,
    mistake=[do(steps.all_orders)],
)
