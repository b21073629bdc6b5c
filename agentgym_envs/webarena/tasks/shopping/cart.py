"""Tasks about the contents of the cart."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Removed, Updated
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import click, click_in, do, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

add_to_cart = ShopTemplate(
    "shopping-add-to-cart",
    "change",
    "easy",
    intents=(
        "Add the {product} to my cart.",
        "Put one {product} into my shopping cart.",
        "I would like to buy the {product}. Please put it into the cart, but do not check out yet.",
    ),
    instances=rows(queries.ADDABLE_PRODUCTS),
    expected=lambda world, product: queries.in_cart(world, product),
    solution=[do(steps.put_into_cart, "{product}")],
)


def _with_options(world: World, rng: Random) -> list[Params]:
    """Return products with random options and quantities."""
    rows = world.rows(f"SELECT name FROM shop_products p WHERE {queries.ADDABLE} AND NOT {queries.PLAIN} ORDER BY id")
    return [
        {"product": row[0], "options": queries.some_options(world, rng, row[0]), "quantity": rng.randint(2, 5)}
        for row in rows
    ]


add_with_options = ShopTemplate(
    "shopping-add-chosen",
    "change",
    "medium",
    intents=(
        "Add {quantity} of the {product} to my cart ({options}).",
        "I need {quantity} pieces of the {product}, {options}. Put them into my cart.",
        "Put the {product} into the cart with these options: {options}. Quantity: {quantity}.",
    ),
    instances=_with_options,
    expected=queries.in_cart,
    solution=[
        do(steps.open_product, "{product}"),
        do(steps.choose_options, "{options}"),
        type_text("Qty", "{quantity}"),
        click("button", "Add to Cart"),
    ],
    mistake=[
        do(steps.open_product, "{product}"),
        do(steps.choose_options, "{options}"),
        click("button", "Add to Cart"),
    ],
)


def _both_addable(world: World) -> list[Params]:
    """Return categories in which both are in stock and have no options."""
    able = {row[0] for row in world.rows(queries.ADDABLE_PRODUCTS)}
    ends = ((row, queries.by_price(world, row["category"])) for row in queries.categories(world))
    return [row for row, names in ends if names[0] in able and names[-1] in able]


def _add_first(page: PageReader, department: str, category: str, order: str) -> Iterator[str]:
    yield from steps.open_category(page, department, category)
    yield page.choose("Sort By", order)
    yield page.click("link", steps.listed_products(page)[0].name)
    yield page.click("button", "Add to Cart")


add_cheapest_and_dearest = ShopTemplate(
    "shopping-add-both-ends",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Add the cheapest and the most expensive product of "{category}" ({department}) to my cart, one of each.',
        "Put two things from {department} > {category} into my cart: the one with the lowest price and the one with "
        "the highest.",
        'I want to compare extremes: of the category "{category}" in {department}, put the cheapest product and the '
        "most expensive one into the cart.",
    ),
    instances=_both_addable,
    expected=lambda world, category: [
        queries.in_cart(world, queries.by_price(world, category)[end]) for end in (0, -1)
    ],
    solution=[
        do(_add_first, "{department}", "{category}", steps.PRICE_UP),
        do(_add_first, "{department}", "{category}", steps.PRICE_DOWN),
    ],
)

change_quantity = ShopTemplate(
    "shopping-change-quantity",
    "change",
    "easy",
    intents=(
        "Change the quantity of the {product} in my cart to {quantity}.",
        "My cart holds the {product}. Make that {quantity} pieces.",
        "Set how many of the {product} are in my cart to {quantity}.",
    ),
    instances=lambda world: [
        {"product": row["name"], "quantity": number}
        for row in queries.cart_lines(world)
        for number in range(1, 11)
        if row["quantity"] != number <= row["stock"]
    ],
    expected=lambda world, product, quantity: Updated(
        "shop_cart_lines", {"product": queries.product_id(world, product)}, {"quantity": quantity}
    ),
    solution=[do(steps.open_cart), type_text("Qty", "{quantity}", enter=True, after="{product}")],
)

remove_from_cart = ShopTemplate(
    "shopping-remove-from-cart",
    "change",
    "easy",
    intents=(
        "Remove the {product} from my cart.",
        "I have changed my mind about the {product}: take it out of my shopping cart.",
        "Delete the {product} from the cart, and leave everything else in it.",
    ),
    instances=lambda world: [{"product": row["name"]} for row in queries.cart_lines(world)],
    expected=lambda world, product: Removed("shop_cart_lines", {"product": queries.product_id(world, product)}),
    solution=[do(steps.open_cart), click_in("{product}", "button", "Remove item")],
)


def _valid_coupons(world: World) -> list[str]:
    return [row["coupon"] for row in queries.rules(world, queries.subtotal(world)) if row["coupon"]]


def _discounted(world: World, product: str, coupon: str) -> ExpectedResult:
    price = world.value(f"SELECT {queries.SOLD} FROM shop_products p WHERE name = ?", product)
    discount = queries.discount(world, queries.subtotal(world) + price, coupon)
    applied = Updated("shop_carts", {"customer": queries.ME}, {"coupon": coupon})
    shown = PageHolds(f"{ORIGINS['shop']}/cart", "document.body.innerText", [money(discount)])
    return [queries.in_cart(world, product), applied, shown]


cart_with_coupon = ShopTemplate(
    "shopping-coupon",
    "change",
    "medium",
    intents=(
        'Add the {product} to my cart and apply the coupon code "{coupon}".',
        "Put one {product} into my cart, then use the code {coupon} to get the discount. Do not order yet.",
        "I have a coupon, {coupon}. Add the {product} to the cart and make sure that the discount is applied.",
    ),
    instances=rows(queries.ADDABLE_PRODUCTS, coupon=_valid_coupons),
    expected=_discounted,
    solution=[do(steps.put_into_cart, "{product}"), do(steps.open_cart), do(steps.apply_coupon, "{coupon}")],
)

move_wish_to_cart = ShopTemplate(
    "shopping-wish-to-cart",
    "change",
    "easy",
    intents=(
        "Move the {product} from my wish list to my cart.",
        "The {product} is on my wish list. I have saved enough: move it from there to the shopping cart.",
        "Use my wish list to put the {product} into the cart, so that it leaves the list.",
    ),
    instances=rows(
        f"SELECT name AS product FROM shop_products p WHERE {queries.ADDABLE} AND {queries.PLAIN} "
        "AND id IN (SELECT product FROM shop_wishes WHERE customer = ?)",
        queries.ME,
    ),
    expected=lambda world, product: [
        queries.in_cart(world, product),
        Removed("shop_wishes", {"customer": queries.ME, "product": queries.product_id(world, product)}),
    ],
    solution=[click("link", "My Wish List"), click_in("{product}", "button", "Add to Cart")],
    mistake=[do(steps.put_into_cart, "{product}")],
)
