"""Questions about the customer's orders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.actions import GoBack, format_command
from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass

_ORDER_LINES = (
    "FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id "
    f"WHERE o.customer = {queries.ME} AND o.status <> 'canceled'"
)


class OwnOrderTotal(TemplateClass):
    """Name the grand total of an order."""

    name, group, sites = "shopping-order-total", "shopping", ("shop",)
    kind, difficulty = "information", "easy"
    intents = (
        "What was the grand total of my order #{number}?",
        "How much did I pay altogether for order #{number}, with tax and shipping?",
        "Look up my order #{number} and tell me its total.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"number": row["number"]} for row in queries.orders(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(money(world.value("SELECT total FROM shop_orders WHERE number = ?", params["number"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        order = yield from steps.find_order(page, lambda order: order.number == params["number"])
        yield page.stop(order.total)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the subtotal, without tax."""
        yield from steps.open_order(page, lambda order: order.number == params["number"])
        yield page.stop(page.value("Subtotal"))


class OrderOfStatus(TemplateClass):
    """Name the number of the latest or oldest order with a status."""

    name, group, sites = "shopping-order-of-status", "shopping", ("shop",)
    kind, difficulty = "information", "easy"
    intents = (
        'What is the number of my {which} order with the status "{status}"?',
        'Among my orders that are "{status}", which is the {which} one? Tell me its number.',
        'Give me the order number of the {which} of my "{status}" orders.',
    )
    _WHICH = ("latest", "second latest", "oldest")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        counts = Counter(row["status"] for row in queries.orders(world))
        return [
            {"status": queries.shown_status(status), "which": which}
            for status, count in counts.items()
            for which in self._WHICH
            if which == "latest" or count > 2
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        rows = queries.orders(world)
        found = [row["number"] for row in rows if queries.shown_status(row["status"]) == params["status"]]
        wanted = self._pick(found, params)
        return [says(wanted, others=[row["number"] for row in rows])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        found = yield from steps.all_orders(page)
        yield page.stop(self._pick([order.number for order in found if order.status == params["status"]], params))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the latest order of another status."""
        found = yield from steps.all_orders(page)
        yield page.stop(next(order.number for order in found if order.status != params["status"]))

    def _pick(self, numbers: Sequence[str], params: Params) -> str:
        return numbers[(0, 1, -1)[self._WHICH.index(params["which"])]]


class CountOwnOrders(TemplateClass):
    """Count the orders of a status in a period."""

    name, group, sites = "shopping-count-orders", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        'How many of the orders that I placed in {time} have the status "{status}"? Answer with the number alone.',
        'Count my orders of {time} whose status is "{status}". Give just the number.',
        'Of everything I ordered in {time}, how many orders are "{status}"? One number will do.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Years and months with at least two orders, not all of one status."""
        found = []
        for time in queries.order_periods(world):
            rows = queries.orders(world, time)
            counts = Counter(row["status"] for row in rows)
            found += [
                {"time": time, "status": queries.shown_status(one)} for one in counts if 1 <= counts[one] < len(rows)
            ]
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        rows = queries.orders(world, params["time"])
        return [says(sum(queries.shown_status(row["status"]) == params["status"] for row in rows))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        found = yield from steps.all_orders(page)
        chosen = [order for order in found if steps.is_within(order.day, params["time"])]
        yield page.stop(sum(order.status == params["status"] for order in chosen))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Count the orders of all statuses."""
        found = yield from steps.all_orders(page)
        yield page.stop(sum(steps.is_within(order.day, params["time"]) for order in found))


class SpentInMonths(TemplateClass):
    """Add up the orders of several months."""

    name, group, sites = "shopping-spent", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        "How much did I spend in the shop from {first} to {last} (both included)? Add up the totals of my orders, "
        "leaving out canceled ones.",
        "Not counting canceled orders, what do my orders of the months {first} to {last} come to altogether?",
        "I am doing my accounts: what is the sum of the grand totals of all orders that I placed from {first} up to "
        "and including {last} and that were not canceled?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Periods of two to four months with two to eight orders that count."""
        months = [time for time in reversed(queries.order_periods(world)) if len(time) > 4]
        spans = ((months[start : start + size]) for size in (2, 3, 4) for start in range(len(months) - size + 1))
        kept = (span for span in spans if 2 <= len(self._totals(world, span)) <= 8)
        return [{"first": span[0], "last": span[-1]} for span in kept]

    def _totals(self, world: World, months: Sequence[str]) -> list[int]:
        rows = (row for time in months for row in queries.orders(world, time))
        return [row["total"] for row in rows if row["status"] != "canceled"]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(money(sum(self._totals(world, steps.months(params["first"], params["last"])))))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        found = yield from self._period_orders(page, params)
        yield page.stop(money(sum(steps.cents(order.total) for order in found if order.status != "Canceled")))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the last order alone."""
        found = yield from self._period_orders(page, params)
        yield page.stop(next(order.total for order in found if order.status != "Canceled"))

    def _period_orders(self, page: PageReader, params: Params) -> Steps[list[steps.ListedOrder]]:
        every = yield from steps.all_orders(page)
        months = steps.months(params["first"], params["last"])
        return [order for order in every if any(steps.is_within(order.day, time) for time in months)]


class OrderTrackingNumber(TemplateClass):
    """Name the tracking number of an order."""

    name, group, sites = "shopping-tracking", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        "What is the tracking number of the order that I placed on {day}?",
        "I want to follow the parcel of my order from {day}. What is its tracking number?",
        "Find the tracking number for what I ordered on {day}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"day": when} for when in self._tracking_numbers(world)]

    def _tracking_numbers(self, world: World) -> dict[str, str]:
        rows = world.rows(
            "SELECT o.moment, t.number FROM shop_orders o JOIN shop_shipments s ON s.order_id = o.id "
            "JOIN shop_tracks t ON t.shipment = s.id WHERE o.customer = ?",
            queries.ME,
        )
        return {day(row["moment"]): row["number"] for row in rows}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        tracks = self._tracking_numbers(world)
        return [says(tracks[params["day"]], others=list(tracks.values()))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_order(page, lambda order: order.day == params["day"])
        yield page.stop(steps.tracking_number(page))


class ChosenOption(TemplateClass):
    """Name an option that was chosen for an ordered product."""

    name, group, sites = "shopping-chosen-option", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        "Which {option} of the {product} did I choose in my order of {day}?",
        "On {day} I ordered the {product}. In which {option}?",
        "I want to buy the {product} again as on {day}. Which {option} did I take then?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Ordered products with options whose value is not part of another value."""
        rows = world.rows(f"SELECT o.moment, l.name, l.options {_ORDER_LINES} AND l.options <> ''")
        return [
            {"product": row["name"], "day": day(row["moment"]), "option": option}
            for row in rows
            for option, value in queries.options(row["options"]).items()
            if len(value) > 1
            and not any(value in other != value for other in self._offered(world, row["name"], option))
        ]

    def _offered(self, world: World, product: str, option: str) -> list[str]:
        """Return the values on offer, except single letters, which a sentence may contain by chance ("it's")."""
        query = "SELECT value FROM shop_options WHERE product = ? AND LOWER(name) = ? AND LENGTH(value) > 1"
        return [row["value"] for row in world.rows(query, queries.product_id(world, product), option)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        rows = world.rows(f"SELECT o.moment, l.options {_ORDER_LINES} AND l.name = ?", params["product"])
        options = next(row["options"] for row in rows if day(row["moment"]) == params["day"])
        others = self._offered(world, params["product"], params["option"])
        return [says(queries.options(options)[params["option"]], others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_order(page, lambda order: order.day == params["day"])
        yield page.stop(steps.chosen_options(page, params["product"])[params["option"]])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the day of the order."""
        yield from steps.open_order(page, lambda order: order.day == params["day"])
        yield page.stop(params["day"])


class OpenOrder(TemplateClass):
    """Open the order that contains a product."""

    name, group, sites = "shopping-open-order", "shopping", ("shop",)
    kind, difficulty = "navigation", "hard"
    intents = (
        "Open the order of {month} in which I bought the {product}.",
        "Show me the details of the order, placed in {month}, that has the {product} in it.",
        "I bought the {product} in {month}. Bring up that order.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products that were ordered once, in months of two or three orders."""
        rows = world.rows(f"SELECT o.moment, l.name {_ORDER_LINES}")
        counts = Counter(row["name"] for row in rows)
        crowd = Counter(queries.month(row["moment"]) for row in queries.orders(world))
        kept = [row for row in rows if counts[row["name"]] == 1 and 2 <= crowd[queries.month(row["moment"])] <= 3]
        return [{"product": row["name"], "month": queries.month(row["moment"])} for row in kept]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = world.value(f"SELECT o.number {_ORDER_LINES} AND l.name = ?", params["product"])
        return [EndsOn(f"{ORIGINS['shop']}/account/orders/{number}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        first = yield from steps.find_order(page, lambda order: steps.is_within(order.day, params["month"]))
        number = first.number
        while True:
            yield page.click_in(number, "link", "View Order")
            if page.has("cell", re.compile(rf"{re.escape(params['product'])}( .*)?")):
                break
            yield format_command(GoBack())
            number = yield from steps.next_order(page, number)
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Show the list of orders without opening one."""
        yield from steps.all_orders(page)
        yield page.stop()


TEMPLATES = (
    OwnOrderTotal(),
    OrderOfStatus(),
    CountOwnOrders(),
    SpentInMonths(),
    OrderTrackingNumber(),
    ChosenOption(),
    OpenOrder(),
)
