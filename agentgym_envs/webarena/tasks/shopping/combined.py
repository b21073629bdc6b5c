"""Tasks of several steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, QueryReturns
from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import ordering, queries, reviews, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import ALL_PARAMETERS, answer, choose_option, click, click_in, do
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_KEYS = ("one", "two", "three", "four")


def _fours(world: World, rng: Random) -> list[Params]:
    """Return sets of four products in which an offer makes another product the cheapest."""
    query = "SELECT name, price, {} AS sold FROM shop_products p WHERE enabled AND category = ? ORDER BY id"
    found: list[Params] = []
    for (category,) in world.rows("SELECT id FROM shop_categories WHERE parent IS NOT NULL ORDER BY id"):
        rows = world.rows(query.format(queries.SOLD), category)
        for _ in range(8):
            four = rng.sample(rows, min(4, len(rows)))
            if len(four) == 4 and min(four, key=lambda row: row["price"]) != min(four, key=lambda row: row["sold"]):
                found.append(dict(zip(_KEYS, (row["name"] for row in four), strict=True)))
    return found


def _cheapest(world: World, params: Params) -> Says:
    query = f"SELECT name FROM shop_products p WHERE name IN (?, ?, ?, ?) ORDER BY {queries.SOLD}"
    names = [row[0] for row in world.rows(query, *(params[key] for key in _KEYS))]
    return says(names[0], others=names)


def _prices(page: PageReader, params: Params) -> Steps[list[tuple[int, str]]]:
    prices = []
    for key in _KEYS:
        yield from steps.open_product(page, params[key])
        prices.append((steps.cents(steps.price(page)), params[key]))
    return prices


cheapest_of_four = ShopTemplate(
    "shopping-cheapest-of-four",
    "information",
    "hard",
    held_out=True,
    intents=(
        "Which of these costs least at the moment: the {one}; the {two}; the {three}; or the {four}?",
        "I want to spend as little as possible. Should I take the {one}; the {two}; the {three}; or the {four}?",
        "Compare the current prices of these four, and name the cheapest: {one}; {two}; {three}; {four}.",
    ),
    instances=_fours,
    expected=_cheapest,
    solution=[do(_prices, ALL_PARAMETERS), answer(lambda found: min(found)[1])],
    mistake=answer(lambda found: max(found)[1]),
)


def _threes(world: World, rng: Random) -> list[Params]:
    names = [row["product"] for row in world.rows(queries.ADDABLE_PRODUCTS)]
    rng.shuffle(names)
    threes = zip(names[::3], names[1::3], names[2::3], strict=False)
    return [dict(zip(_KEYS, three, strict=False)) for three in threes]


add_three = ShopTemplate(
    "shopping-add-three",
    "change",
    "hard",
    intents=(
        "Add these three to my cart, one of each: {one}; {two}; {three}.",
        "My shopping list: {one}; {two}; {three}. Put one of each into the cart.",
        "I need three things in my shopping cart, one piece each: the {one}; the {two}; and the {three}.",
    ),
    instances=_threes,
    expected=lambda world, one, two, three: [queries.in_cart(world, name) for name in (one, two, three)],
    solution=[do(steps.put_into_cart, name) for name in ("{one}", "{two}", "{three}")],
    mistake=[do(steps.put_into_cart, name) for name in ("{one}", "{two}")],
)

replace_comparison = ShopTemplate(
    "shopping-compare-only",
    "change",
    "hard",
    intents=(
        "Make my comparison list hold the {one} and the {other}, and nothing else: what is in it now must go.",
        "Clear the list of products to compare. Then add the {one} and the {other} to it.",
        "I want to compare just two things, the {one} and the {other}. Take everything else off the compare list.",
    ),
    instances=queries.uncompared_pairs,
    expected=lambda world, one, other: QueryReturns(
        "SELECT customer, product FROM shop_compares",
        [(queries.ME, queries.product_id(world, name)) for name in (one, other)],
    ),
    free=("shop_compares",),  # the new rows may reuse the ids of the removed ones
    solution=[
        click("link", re.compile(r"Compare Products \(\d+\)")),
        click("button", "Clear All"),
        do(steps.compare, "{one}"),
        do(steps.compare, "{other}"),
    ],
    mistake=[do(steps.compare, "{one}"), do(steps.compare, "{other}")],
)

_COMMENTS = ("For the new flat", "When the old one breaks", "Ask at home first", "Present for a friend")


def _cheapest_not_wished(world: World) -> list[Params]:
    """Return filters of a category whose cheapest product is not on the wish list."""
    wished = {row[0] for row in world.rows("SELECT product FROM shop_wishes WHERE customer = ?", queries.ME)}
    return [row for row in queries.filters(world) if queries.cheapest_filtered(world, row) not in wished]


def _wish_first(page: PageReader, comment: str) -> Iterator[str]:
    product = steps.listed_products(page)[0].name
    yield page.click("link", product)
    yield page.click("button", "Add to Wish List")
    yield page.type("Comment", comment, enter=True, after=product)


wish_cheapest = ShopTemplate(
    "shopping-wish-cheapest",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Find the cheapest product of "{category}" ({department}) with {attribute} "{value}", put it on my wish list, '
        'and write the comment "{comment}" to it.',
        "Under {department} > {category}, which product with {attribute}: {value} costs least? Add it to my wish list "
        'with the comment "{comment}".',
        'Put the least expensive "{category}" product ({department}) whose {attribute} is "{value}" on my wish list. '
        'The comment there should read "{comment}".',
    ),
    instances=choose(_cheapest_not_wished, comment=_COMMENTS),
    expected=lambda world, params, comment: Added(
        "shop_wishes", {"customer": queries.ME, "product": queries.cheapest_filtered(world, params), "comment": comment}
    ),
    solution=[
        do(steps.open_category, "{department}", "{category}"),
        do(steps.apply_filter, "{attribute}", "{value}"),
        choose_option("Sort By", steps.PRICE_UP),
        do(_wish_first, "{comment}"),
    ],
    mistake=[
        do(steps.open_category, "{department}", "{category}"),
        do(steps.apply_filter, "{attribute}", "{value}"),
        choose_option("Sort By", steps.PRICE_DOWN),
        click("button", "Add to Wish List"),
    ],
)


def _bought(world: World) -> dict[str, int]:
    """Return the products of complete orders of a single product, not yet reviewed, by the days of the orders."""
    rows = world.rows(
        "SELECT o.moment, l.product FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id "
        "JOIN shop_products p ON p.id = l.product WHERE o.customer = ? AND o.status = 'complete' AND p.enabled "
        "AND l.product NOT IN (SELECT product FROM shop_reviews WHERE customer = o.customer) "
        "GROUP BY o.id HAVING (SELECT COUNT(*) FROM shop_order_lines m WHERE m.order_id = o.id) = 1 ORDER BY o.id",
        queries.ME,
    )
    return {clock.day(row["moment"]): row["product"] for row in rows}


review_ordered = ShopTemplate(
    "shopping-review-bought",
    "change",
    "hard",
    held_out=True,
    intents=(
        "On {day} I ordered a single product. Write a review of it: {stars} stars, nickname "
        '"{nickname}", title "{title}", text "{text}"',
        "Review what I bought on {day} (there is just one product in that order) with {stars} stars. Sign as "
        '"{nickname}", call it "{title}", and write: "{text}"',
        "Find the only product of my order from {day} and give it {stars} stars. The nickname is "
        '"{nickname}", the summary "{title}" and the review "{text}"',
    ),
    instances=lambda world, rng: [
        {"day": when, **reviews.something_said(rng)} for when in _bought(world) for _ in range(3)
    ],
    expected=lambda world, params, day: queries.review_added(_bought(world)[day], params),
    solution=[
        do(steps.open_order, steps.PLACED_ON_DAY),
        click("link", re.compile(".*"), after="Subtotal"),
        do(steps.write_review, ALL_PARAMETERS),
    ],
)


def _reordered(world: World, params: Params, number: str) -> ExpectedResult:
    more = queries.order_lines(world, number)
    return queries.order_changes(world, [*queries.cart_lines(world), *more], params, new=len(more))


reorder_and_buy = ShopTemplate(
    "shopping-reorder-and-buy",
    "change",
    "hard",
    held_out=True,
    intents=(
        "Put everything from my order #{number} into the cart again, and then order all that is in the cart: "
        "{shipping}, to my address at {street}, paid by {payment}.",
        "I want the same things as in order #{number} once more, together with what is in my cart already. Order it "
        "with {shipping} to {street}, and pay by {payment}.",
        "Reorder #{number} and check out with everything in the cart. Shipping: {shipping}; address: {street}; "
        "payment: {payment}.",
    ),
    instances=lambda world, rng: [
        {**row, **rng.choice(ordering.checkouts(world))} for row in ordering.repeatable(world)
    ],
    expected=_reordered,
    solution=[
        do(steps.find_order, steps.WITH_NUMBER),
        click_in("{number}", "button", "Reorder"),
        do(steps.check_out, ALL_PARAMETERS),
    ],
)
