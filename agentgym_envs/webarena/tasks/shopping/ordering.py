"""Tasks that place, repeat or cancel an order."""

from __future__ import annotations

from agentgym_envs.webarena.evaluators.state import Expected, Updated
from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.shop.money import PAYMENT_METHODS, SHIPPING_METHODS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import ALL_PARAMETERS, click, do
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params


def checkouts(world: World) -> list[Params]:
    """Return the ways to check out."""
    rows = world.rows("SELECT street FROM shop_addresses WHERE customer = ? ORDER BY id", queries.ME)
    return [
        {"street": row["street"], "shipping": shipping, "payment": payment}
        for row in rows
        for shipping in SHIPPING_METHODS
        for payment in PAYMENT_METHODS
    ]


checkout = ShopTemplate(
    "shopping-checkout",
    "change",
    "medium",
    intents=(
        "Order everything that is in my cart: {shipping}, to my address at {street}, paid by {payment}.",
        "Check out my cart. The parcel goes to my address at {street} by {shipping}, and I pay by {payment}.",
        "Buy what is in the shopping cart, and have it sent to {street}. Shipping method: {shipping}; payment method: "
        "{payment}.",
    ),
    instances=checkouts,
    expected=lambda world, params: queries.order_changes(world, queries.cart_lines(world), params),
    solution=[do(steps.open_cart), do(steps.check_out, ALL_PARAMETERS)],
)


def _one_more_ordered(world: World, params: Params, product: str) -> ExpectedResult:
    columns = f"id AS product, name, sku, '' AS options, {queries.SOLD} AS price, 1 AS quantity"
    query = f"SELECT {columns} FROM shop_products p"
    more = dict(world.rows(f"{query} WHERE name = ?", product)[0])
    return queries.order_changes(world, [*queries.cart_lines(world), more], params, new=1)


add_and_checkout = ShopTemplate(
    "shopping-buy",
    "change",
    "hard",
    held_out=True,
    intents=(
        "Add one {product} to my cart and order everything in it: {shipping}, to my address at {street}, paid by "
        "{payment}.",
        "I want to buy the {product} together with what is in my cart already. Send it by {shipping} to my address in "
        "{street}; I pay by {payment}.",
        "Put the {product} into the cart, then check out with {shipping} and {payment}. It should go to {street}.",
    ),
    instances=lambda world, rng: [
        {**rng.choice(checkouts(world)), "product": row["product"]} for row in world.rows(queries.ADDABLE_PRODUCTS)
    ],
    expected=_one_more_ordered,
    solution=[do(steps.put_into_cart, "{product}"), do(steps.open_cart), do(steps.check_out, ALL_PARAMETERS)],
)


def repeatable(world: World) -> list[Params]:
    """Return orders whose products are all available, and not in the cart."""
    inside = {line["product"] for line in queries.cart_lines(world)}
    return [
        {"number": row["number"]}
        for row in queries.orders(world)
        if all(
            line["enabled"] and line["stock"] >= line["quantity"] and line["product"] not in inside
            for line in queries.order_lines(world, row["number"])
        )
    ]


reorder = ShopTemplate(
    "shopping-reorder",
    "change",
    "medium",
    intents=(
        "Reorder: put everything from my order #{number} into the cart again, in the same quantities.",
        "I want the same things again as in order #{number}. Put them all into my cart.",
        "Fill my cart with what I bought in order #{number}, without checking out.",
    ),
    instances=repeatable,
    expected=lambda world, number: [
        queries.in_cart(world, line["name"], line["options"], line["quantity"])
        for line in queries.order_lines(world, number)
    ],
    solution=[do(steps.open_order, steps.WITH_NUMBER), click("button", "Reorder")],
)


def _canceled(world: World, day: str) -> ExpectedResult:
    order = next(row for row in queries.orders(world) if clock.day(row["moment"]) == day)
    changes: list[Expected] = [Updated("shop_orders", {"number": order["number"]}, {"status": "canceled"})]
    for line in queries.order_lines(world, order["number"]):
        stock = line["stock"] + line["quantity"]
        changes.append(Updated("shop_products", {"id": line["product"]}, {"stock": stock}))
    return changes


cancel_pending_order = ShopTemplate(
    "shopping-cancel-order",
    "change",
    "medium",
    intents=(
        "Cancel the order that I placed on {day}.",
        "I no longer need what I ordered on {day}. Cancel that order.",
        "Please cancel my pending order of {day}.",
    ),
    instances=lambda world: [
        {"day": clock.day(row["moment"])} for row in queries.orders(world) if row["status"] == "pending"
    ],
    expected=_canceled,
    solution=[do(steps.open_order, steps.PLACED_ON_DAY), do(steps.cancel_order)],
    mistake=click("button", "Reorder"),
)
