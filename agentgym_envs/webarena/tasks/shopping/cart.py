"""Tasks about the contents of the cart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Removed, Updated
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed


class AddToCart(TemplateClass):
    """Add a product to the cart."""

    name, group, sites = "shopping-add-to-cart", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Add the {product} to my cart.",
        "Put one {product} into my shopping cart.",
        "I would like to buy the {product}. Please put it into the cart, but do not check out yet.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products without options that are not in the cart."""
        rows = world.rows(f"SELECT name FROM shop_products p WHERE {queries.ADDABLE} AND {queries.PLAIN} ORDER BY id")
        return [{"product": row["name"]} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(queries.in_cart(world, params["product"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        yield page.click("button", "Add to Cart")
        yield page.stop()


class AddWithOptions(TemplateClass):
    """Add several units of a product with options to the cart."""

    name, group, sites = "shopping-add-chosen", "shopping", ("shop",)
    kind, difficulty = "change", "medium"
    intents = (
        "Add {quantity} of the {product} to my cart ({options}).",
        "I need {quantity} pieces of the {product}, {options}. Put them into my cart.",
        "Put the {product} into the cart with these options: {options}. Quantity: {quantity}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows(
            f"SELECT name FROM shop_products p WHERE {queries.ADDABLE} AND NOT {queries.PLAIN} ORDER BY id"
        )
        return [
            {"product": row[0], "options": queries.some_options(world, rng, row[0]), "quantity": rng.randint(2, 5)}
            for row in rows
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(queries.in_cart(world, params["product"], params["options"], params["quantity"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        yield from steps.choose_options(page, params["options"])
        yield page.type("Qty", str(params["quantity"]))
        yield page.click("button", "Add to Cart")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Add only one unit."""
        yield from steps.open_product(page, params["product"])
        yield from steps.choose_options(page, params["options"])
        yield page.click("button", "Add to Cart")
        yield page.stop()


class AddCheapestAndDearest(TemplateClass):
    """Add the cheapest and the most expensive product of a category to the cart."""

    name, group, sites = "shopping-add-both-ends", "shopping", ("shop",)
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        'Add the cheapest and the most expensive product of "{category}" ({department}) to my cart, one of each.',
        "Put two things from {department} > {category} into my cart: the one with the lowest price and the one with "
        "the highest.",
        'I want to compare extremes: of the category "{category}" in {department}, put the cheapest product and the '
        "most expensive one into the cart.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Categories in which both are in stock and have no options."""
        able = {
            row[0]
            for row in world.rows(
                f"SELECT name FROM shop_products p WHERE {queries.ADDABLE} AND {queries.PLAIN} ORDER BY id"
            )
        }
        ends = ((row, queries.by_price(world, row["category"])) for row in queries.categories(world))
        return [row for row, names in ends if names[0] in able and names[-1] in able]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        names = queries.by_price(world, params["category"])
        return [changed(queries.in_cart(world, names[0]), queries.in_cart(world, names[-1]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        for order in (steps.PRICE_UP, steps.PRICE_DOWN):
            yield from steps.open_category(page, params["department"], params["category"])
            yield page.choose("Sort By", order)
            yield page.click("link", steps.listed_products(page)[0].name)
            yield page.click("button", "Add to Cart")
        yield page.stop()


class ChangeQuantity(TemplateClass):
    """Change the quantity of a product in the cart."""

    name, group, sites = "shopping-change-quantity", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Change the quantity of the {product} in my cart to {quantity}.",
        "My cart holds the {product}. Make that {quantity} pieces.",
        "Set how many of the {product} are in my cart to {quantity}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Quantities that differ from the current one."""
        return [
            {"product": row["name"], "quantity": number}
            for row in queries.cart_lines(world)
            for number in range(1, 11)
            if row["quantity"] != number <= row["stock"]
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        product = queries.product_id(world, params["product"])
        return [changed(Updated("shop_cart_lines", {"product": product}, {"quantity": params["quantity"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_cart(page)
        yield page.type("Qty", str(params["quantity"]), enter=True, after=params["product"])
        yield page.stop()


class RemoveFromCart(TemplateClass):
    """Remove a product from the cart."""

    name, group, sites = "shopping-remove-from-cart", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Remove the {product} from my cart.",
        "I have changed my mind about the {product}: take it out of my shopping cart.",
        "Delete the {product} from the cart, and leave everything else in it.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"product": row["name"]} for row in queries.cart_lines(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Removed("shop_cart_lines", {"product": queries.product_id(world, params["product"])}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_cart(page)
        yield page.click_in(params["product"], "button", "Remove item")
        yield page.stop()


class CartWithCoupon(TemplateClass):
    """Add a product to the cart and apply a coupon."""

    name, group, sites = "shopping-coupon", "shopping", ("shop",)
    kind, difficulty = "change", "medium"
    intents = (
        'Add the {product} to my cart and apply the coupon code "{coupon}".',
        "Put one {product} into my cart, then use the code {coupon} to get the discount. Do not order yet.",
        "I have a coupon, {coupon}. Add the {product} to the cart and make sure that the discount is applied.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products without options, each with a coupon that is valid for the cart."""
        rules = [row for row in queries.rules(world, _subtotal(world)) if row["coupon"]]
        rows = world.rows(f"SELECT name FROM shop_products p WHERE {queries.ADDABLE} AND {queries.PLAIN} ORDER BY id")
        return [{"product": row["name"], "coupon": rng.choice(rules)["coupon"]} for row in rows if rules]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        price = world.value(f"SELECT {queries.SOLD} FROM shop_products p WHERE name = ?", params["product"])
        saved = money(queries.discount(world, _subtotal(world) + price, params["coupon"]))
        return [
            changed(
                queries.in_cart(world, params["product"]),
                Updated("shop_carts", {"customer": queries.ME}, {"coupon": params["coupon"]}),
            ),
            PageHolds(f"{ORIGINS['shop']}/cart", "document.body.innerText", [saved]),
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        yield page.click("button", "Add to Cart")
        yield from steps.open_cart(page)
        yield from steps.apply_coupon(page, params["coupon"])
        yield page.stop()


class MoveWishToCart(TemplateClass):
    """Move a product from the wish list to the cart."""

    name, group, sites = "shopping-wish-to-cart", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Move the {product} from my wish list to my cart.",
        "The {product} is on my wish list. I have saved enough: move it from there to the shopping cart.",
        "Use my wish list to put the {product} into the cart, so that it leaves the list.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Items of the wish list without options."""
        wished = f"SELECT product FROM shop_wishes WHERE customer = {queries.ME}"
        rows = world.rows(
            f"SELECT name FROM shop_products p WHERE {queries.ADDABLE} AND {queries.PLAIN} AND id IN ({wished})"
        )
        return [{"product": row["name"]} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        where = {"customer": queries.ME, "product": queries.product_id(world, params["product"])}
        return [changed(queries.in_cart(world, params["product"]), Removed("shop_wishes", where))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "My Wish List")
        yield page.click_in(params["product"], "button", "Add to Cart")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Add it from its product page, so that it stays on the wish list."""
        yield from steps.open_product(page, params["product"])
        yield page.click("button", "Add to Cart")
        yield page.stop()


def _subtotal(world: World) -> int:
    """Return the subtotal of the cart at the start."""
    return sum(line["price"] * line["quantity"] for line in queries.cart_lines(world))


TEMPLATES = (
    AddToCart(),
    AddWithOptions(),
    AddCheapestAndDearest(),
    ChangeQuantity(),
    RemoveFromCart(),
    CartWithCoupon(),
    MoveWishToCart(),
)
