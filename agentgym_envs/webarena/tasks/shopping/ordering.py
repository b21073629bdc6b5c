"""Tasks that place, repeat or cancel an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Expected, Updated
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.shop.money import PAYMENT_METHODS, SHIPPING_METHODS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed


class Checkout(TemplateClass):
    """Order the contents of the cart."""

    name, group, sites = "shopping-checkout", "shopping", ("shop",)
    kind, difficulty = "change", "medium"
    intents = (
        "Order everything that is in my cart: {shipping}, to my address at {street}, paid by {payment}.",
        "Check out my cart. The parcel goes to my address at {street} by {shipping}, and I pay by {payment}.",
        "Buy what is in the shopping cart, and have it sent to {street}. Shipping method: {shipping}; payment method: "
        "{payment}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        streets = [
            row["street"]
            for row in world.rows("SELECT street FROM shop_addresses WHERE customer = ? ORDER BY id", queries.ME)
        ]
        return [
            {"street": street, "shipping": shipping, "payment": payment}
            for street in streets
            for shipping in SHIPPING_METHODS
            for payment in PAYMENT_METHODS
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(*queries.order_changes(world, queries.cart_lines(world), params))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_cart(page)
        yield from steps.check_out(page, params)
        yield page.stop()


class AddAndCheckout(TemplateClass):
    """Add a product to the cart, and check out."""

    name, group, sites = "shopping-buy", "shopping", ("shop",)
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        "Add one {product} to my cart and order everything in it: {shipping}, to my address at {street}, paid by "
        "{payment}.",
        "I want to buy the {product} together with what is in my cart already. Send it by {shipping} to my address in "
        "{street}; I pay by {payment}.",
        "Put the {product} into the cart, then check out with {shipping} and {payment}. It should go to {street}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows(f"SELECT name FROM shop_products p WHERE {queries.ADDABLE} AND {queries.PLAIN} ORDER BY id")
        checkouts = list(Checkout().instances(world, rng))
        return [{**rng.choice(checkouts), "product": row["name"]} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        columns = f"id AS product, name, sku, '' AS options, {queries.SOLD} AS price, 1 AS quantity"
        query = f"SELECT {columns} FROM shop_products p"
        more = dict(world.rows(f"{query} WHERE name = ?", params["product"])[0])
        return [changed(*queries.order_changes(world, [*queries.cart_lines(world), more], params, new=1))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        yield page.click("button", "Add to Cart")
        yield from steps.open_cart(page)
        yield from steps.check_out(page, params)
        yield page.stop()


class Reorder(TemplateClass):
    """Add all products of an order to the cart again."""

    name, group, sites = "shopping-reorder", "shopping", ("shop",)
    kind, difficulty = "change", "medium"
    intents = (
        "Reorder: put everything from my order #{number} into the cart again, in the same quantities.",
        "I want the same things again as in order #{number}. Put them all into my cart.",
        "Fill my cart with what I bought in order #{number}, without checking out.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Orders whose products are all available, and not in the cart."""
        inside = {line["product"] for line in queries.cart_lines(world)}
        return [
            {"number": row["number"]}
            for row in queries.orders(world)
            if all(
                line["enabled"] and line["stock"] >= line["quantity"] and line["product"] not in inside
                for line in queries.order_lines(world, row["number"])
            )
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        lines = queries.order_lines(world, params["number"])
        return [changed(*(queries.in_cart(world, line["name"], line["options"], line["quantity"]) for line in lines))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_order(page, lambda order: order.number == params["number"])
        yield page.click("button", "Reorder")
        yield page.stop()


class CancelPendingOrder(TemplateClass):
    """Cancel a pending order."""

    name, group, sites = "shopping-cancel-order", "shopping", ("shop",)
    kind, difficulty = "change", "medium"
    intents = (
        "Cancel the order that I placed on {day}.",
        "I no longer need what I ordered on {day}. Cancel that order.",
        "Please cancel my pending order of {day}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"day": day(row["moment"])} for row in queries.orders(world) if row["status"] == "pending"]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The status, and the products back in stock."""
        order = next(row for row in queries.orders(world) if day(row["moment"]) == params["day"])
        changes: list[Expected] = [Updated("shop_orders", {"number": order["number"]}, {"status": "canceled"})]
        for line in queries.order_lines(world, order["number"]):
            stock = line["stock"] + line["quantity"]
            changes.append(Updated("shop_products", {"id": line["product"]}, {"stock": stock}))
        return [changed(*changes)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_order(page, lambda order: order.day == params["day"])
        yield from steps.cancel_order(page)
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Reorder it instead."""
        yield from steps.open_order(page, lambda order: order.day == params["day"])
        yield page.click("button", "Reorder")
        yield page.stop()


TEMPLATES = (Checkout(), AddAndCheckout(), Reorder(), CancelPendingOrder())
