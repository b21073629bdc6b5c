"""Tasks of several steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, QueryReturns
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import ordering, queries, reviews, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed

_KEYS = ("one", "two", "three", "four")


class CheapestOfFour(TemplateClass):
    """Name the cheapest of four products, with offers taken into account."""

    name, group, sites = "shopping-cheapest-of-four", "shopping", ("shop",)
    kind, difficulty, held_out = "information", "hard", True
    intents = (
        "Which of these costs least at the moment: the {one}; the {two}; the {three}; or the {four}?",
        "I want to spend as little as possible. Should I take the {one}; the {two}; the {three}; or the {four}?",
        "Compare the current prices of these four, and name the cheapest: {one}; {two}; {three}; {four}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Sets of four products in which an offer makes another product the cheapest."""
        query = "SELECT name, price, {} AS sold FROM shop_products p WHERE enabled AND category = ? ORDER BY id"
        found = []
        for (category,) in world.rows("SELECT id FROM shop_categories WHERE parent IS NOT NULL ORDER BY id"):
            rows = world.rows(query.format(queries.SOLD), category)
            for _ in range(8):
                four = rng.sample(rows, min(4, len(rows)))
                if len(four) == 4 and min(four, key=lambda row: row["price"]) != min(four, key=lambda row: row["sold"]):
                    found.append(dict(zip(_KEYS, (row["name"] for row in four), strict=True)))
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = f"SELECT name FROM shop_products p WHERE name IN (?, ?, ?, ?) ORDER BY {queries.SOLD}"
        names = [row[0] for row in world.rows(query, *(params[key] for key in _KEYS))]
        return [says(names[0], others=names)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.stop(min((yield from self._prices(page, params)))[1])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the most expensive one."""
        yield page.stop(max((yield from self._prices(page, params)))[1])

    def _prices(self, page: PageReader, params: Params) -> Steps[list[tuple[int, str]]]:
        prices = []
        for key in _KEYS:
            yield from steps.open_product(page, params[key])
            prices.append((steps.cents(steps.price(page)), params[key]))
        return prices


class AddThree(TemplateClass):
    """Add three products to the cart."""

    name, group, sites = "shopping-add-three", "shopping", ("shop",)
    kind, difficulty = "change", "hard"
    intents = (
        "Add these three to my cart, one of each: {one}; {two}; {three}.",
        "My shopping list: {one}; {two}; {three}. Put one of each into the cart.",
        "I need three things in my shopping cart, one piece each: the {one}; the {two}; and the {three}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows(f"SELECT name FROM shop_products p WHERE {queries.ADDABLE} AND {queries.PLAIN} ORDER BY id")
        names = [row["name"] for row in rows]
        rng.shuffle(names)
        threes = zip(names[::3], names[1::3], names[2::3], strict=False)
        return [dict(zip(_KEYS, three, strict=False)) for three in threes]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(*(queries.in_cart(world, params[key]) for key in _KEYS[:3]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        for key in _KEYS[:3]:
            yield from steps.open_product(page, params[key])
            yield page.click("button", "Add to Cart")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Add only two of them."""
        for key in _KEYS[:2]:
            yield from steps.open_product(page, params[key])
            yield page.click("button", "Add to Cart")
        yield page.stop()


class ReplaceComparison(TemplateClass):
    """Replace the comparison list by two products."""

    name, group, sites = "shopping-compare-only", "shopping", ("shop",)
    kind, difficulty = "change", "hard"
    intents = (
        "Make my comparison list hold the {one} and the {other}, and nothing else: what is in it now must go.",
        "Clear the list of products to compare. Then add the {one} and the {other} to it.",
        "I want to compare just two things, the {one} and the {other}. Take everything else off the compare list.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Pairs of products of a category that are not on the list."""
        return queries.uncompared_pairs(world)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        wanted = [(queries.ME, queries.product_id(world, params[name])) for name in ("one", "other")]
        rows = QueryReturns("SELECT customer, product FROM shop_compares", wanted)
        return [changed(free=["shop_compares"]), rows]  # the new rows may reuse the ids of the removed ones

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", re.compile(r"Compare Products \(\d+\)"))
        yield page.click("button", "Clear All")
        yield from _compare(page, params)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Add them without clearing the list."""
        yield from _compare(page, params)


def _compare(page: PageReader, params: Params) -> Iterator[str]:
    for name in ("one", "other"):
        yield from steps.open_product(page, params[name])
        yield page.click("button", "Add to Compare")
    yield page.stop()


class WishCheapest(TemplateClass):
    """Add the cheapest product with an attribute to the wish list, with a comment."""

    name, group, sites = "shopping-wish-cheapest", "shopping", ("shop",)
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        'Find the cheapest product of "{category}" ({department}) with {attribute} "{value}", put it on my wish list, '
        'and write the comment "{comment}" to it.',
        "Under {department} > {category}, which product with {attribute}: {value} costs least? Add it to my wish list "
        'with the comment "{comment}".',
        'Put the least expensive "{category}" product ({department}) whose {attribute} is "{value}" on my wish list. '
        'The comment there should read "{comment}".',
    )
    _COMMENTS = ("For the new flat", "When the old one breaks", "Ask at home first", "Present for a friend")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Filters of a category whose cheapest product is not on the wish list."""
        wished = {row[0] for row in world.rows("SELECT product FROM shop_wishes WHERE customer = ?", queries.ME)}
        kept = (row for row in queries.filters(world) if queries.cheapest_filtered(world, row) not in wished)
        return [{**row, "comment": rng.choice(self._COMMENTS)} for row in kept]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"product": queries.cheapest_filtered(world, params), "comment": params["comment"]}
        return [changed(Added("shop_wishes", {"customer": queries.ME, **values}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_category(page, params["department"], params["category"])
        yield from steps.apply_filter(page, params["attribute"], params["value"])
        yield page.choose("Sort By", steps.PRICE_UP)
        product = steps.listed_products(page)[0].name
        yield page.click("link", product)
        yield page.click("button", "Add to Wish List")
        yield page.type("Comment", params["comment"], enter=True, after=product)
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Add the most expensive product."""
        yield from steps.open_category(page, params["department"], params["category"])
        yield from steps.apply_filter(page, params["attribute"], params["value"])
        yield page.choose("Sort By", steps.PRICE_DOWN)
        yield page.click("button", "Add to Wish List")
        yield page.stop()


class ReviewOrdered(TemplateClass):
    """Review the product that was ordered on a day."""

    name, group, sites = "shopping-review-bought", "shopping", ("shop",)
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        "On {day} I ordered a single product. Write a review of it: {stars} stars, nickname "
        '"{nickname}", title "{title}", text "{text}"',
        "Review what I bought on {day} (there is just one product in that order) with {stars} stars. Sign as "
        '"{nickname}", call it "{title}", and write: "{text}"',
        "Find the only product of my order from {day} and give it {stars} stars. The nickname is "
        '"{nickname}", the summary "{title}" and the review "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Complete orders of a single product that is not reviewed yet."""
        bought = self._bought(world)
        return [{"day": when, **reviews.something_said(rng)} for when in bought for _ in range(3)]

    def _bought(self, world: World) -> dict[str, int]:
        """Return the products by the days of their orders."""
        rows = world.rows(
            "SELECT o.moment, l.product FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id "
            "JOIN shop_products p ON p.id = l.product WHERE o.customer = ? AND o.status = 'complete' AND p.enabled "
            "AND l.product NOT IN (SELECT product FROM shop_reviews WHERE customer = o.customer) "
            "GROUP BY o.id HAVING (SELECT COUNT(*) FROM shop_order_lines m WHERE m.order_id = o.id) = 1 ORDER BY o.id",
            queries.ME,
        )
        return {day(row["moment"]): row["product"] for row in rows}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(queries.review_added(self._bought(world)[params["day"]], params))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_order(page, lambda order: order.day == params["day"])
        yield page.click("link", re.compile(".*"), after="Subtotal")
        yield from steps.write_review(page, params)
        yield page.stop()


class ReorderAndBuy(TemplateClass):
    """Reorder a previous order and check out."""

    name, group, sites = "shopping-reorder-and-buy", "shopping", ("shop",)
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        "Put everything from my order #{number} into the cart again, and then order all that is in the cart: "
        "{shipping}, to my address at {street}, paid by {payment}.",
        "I want the same things as in order #{number} once more, together with what is in my cart already. Order it "
        "with {shipping} to {street}, and pay by {payment}.",
        "Reorder #{number} and check out with everything in the cart. Shipping: {shipping}; address: {street}; "
        "payment: {payment}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        checkouts = list(ordering.Checkout().instances(world, rng))
        return [{**params, **rng.choice(checkouts)} for params in ordering.Reorder().instances(world, rng)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        more = queries.order_lines(world, params["number"])
        return [changed(*queries.order_changes(world, [*queries.cart_lines(world), *more], params, new=len(more)))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        order = yield from steps.find_order(page, lambda order: order.number == params["number"])
        yield page.click_in(order.number, "button", "Reorder")
        yield from steps.check_out(page, params)
        yield page.stop()


TEMPLATES = (CheapestOfFour(), AddThree(), ReplaceComparison(), WishCheapest(), ReviewOrdered(), ReorderAndBuy())
