"""Tasks that find a product by its price, size, rating or kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import kinds, queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ME, PLAIN, SOLD, ShopTemplate
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, given
from agentgym_envs.webarena.tasks.template import Params

SHOP = ORIGINS["shop"]
_ORDERS = {"ascending": (steps.PRICE_UP, "price-asc"), "descending": (steps.PRICE_DOWN, "price-desc")}
_REVIEWS = "FROM shop_reviews r WHERE r.product = p.id AND r.status = 'approved'"


def products_of(world: World, category: str) -> list[dict[str, Any]]:
    """Return the products of a category with their prices and ratings."""
    rows = world.rows(
        f"SELECT p.id, p.name, p.slug, p.stock, {SOLD} AS sold, {PLAIN} AS plain, (SELECT COUNT(*) {_REVIEWS}) AS "
        f"reviews, COALESCE((SELECT ROUND(AVG(r.rating), 1) {_REVIEWS}), 0) AS rating "
        "FROM shop_products p JOIN shop_categories c ON c.id = p.category WHERE p.enabled AND c.name = ? ORDER BY "
        "sold, p.id",
        category,
    )
    return [dict(row) for row in rows]


def _url(product: dict[str, Any]) -> str:
    return f"{SHOP}/product/{product['slug']}"


sorted_category = ShopTemplate(
    "shopping-sorted-category",
    "navigation",
    "easy",
    since=2,
    intents=(
        'List the products of the category "{category}" ({department}) by {order} price.',
        "Show me everything under {department} > {category}, with {order} prices.",
        'I want to see the products from "{category}" in {department} sorted by {order} price.',
    ),
    instances=choose(queries.categories, order=tuple(_ORDERS)),
    expected=lambda world, category, order: EndsOn(f"{queries.category_url(world, category)}?sort={_ORDERS[order][1]}"),
    solution=[
        do(steps.open_category, "{department}", "{category}"),
        choose_option("Sort By", given(lambda order: _ORDERS[order][0])),
    ],
    mistake=choose_option("Sort By", "Newest First"),
)

most_expensive = ShopTemplate(
    "shopping-show-most-expensive",
    "navigation",
    "medium",
    since=2,
    intents=(
        'I am doing a market survey: show me the most expensive product of the category "{category}" in {department}.',
        'Open the page of the product with the highest price in "{category}" ({department}).',
        "Which product of {department} > {category} costs most? Bring me to its page.",
    ),
    instances=queries.categories,
    expected=lambda world, category: EndsOn(_url(products_of(world, category)[-1])),
    solution=[
        do(steps.open_category, "{department}", "{category}"),
        choose_option("Sort By", steps.PRICE_DOWN),
        click("link", steps.nth_product(0)),
    ],
    mistake=click("link", steps.nth_product(1)),
)


def _cheap_categories(world: World) -> Iterator[Params]:
    """Yield categories with some products below a limit of the price filter, and others above."""
    for row in queries.categories(world):
        prices = [one["sold"] for one in products_of(world, row["category"])]
        for low, high in ((0, 10), (10, 25), (25, 50), (50, 100), (100, 200)):
            if 0 < sum(100 * low <= price < 100 * high for price in prices) < len(prices):
                yield {**row, "low": low, "high": high}


under_price = ShopTemplate(
    "shopping-price-range-of-category",
    "navigation",
    "easy",
    since=2,
    intents=(
        'Show me the products of "{category}" ({department}) that cost from ${low} to just under ${high}.',
        "Which things under {department} > {category} cost at least ${low}, but less than ${high}? Show only these.",
        'I have less than ${high} for something from "{category}" in {department}, and it should not be below ${low}. '
        "Filter the list accordingly.",
    ),
    instances=_cheap_categories,
    expected=lambda world, category, low, high: EndsOn(f"{queries.category_url(world, category)}?price={low}-{high}"),
    solution=[
        do(steps.open_category, "{department}", "{category}"),
        do(
            steps.apply_filter,
            "Price",
            given(lambda low, high: f"Under ${high}" if not low else f"${low} to ${high - 0.01:.2f}"),
        ),
    ],
    mistake=choose_option("Sort By", steps.PRICE_UP),
)

_SIZE = re.compile(r", (\d+(?:\.\d+)?) (l|ml|kg|g|cm|m|h|W|lm|pairs|Pieces|Pages)$")


def _sizes(world: World, kind: str) -> list[tuple[int, float, str, str]]:
    """Return (price, size, unit, slug) of the products of a kind, the cheapest first."""
    query = f"SELECT name, slug, {SOLD} AS sold FROM shop_products p WHERE id = ?"
    rows = [world.rows(query, number)[0] for number in kinds.products(world, kind)]
    found = [(row, _SIZE.search(row["name"])) for row in rows]
    return sorted((row["sold"], float(match[1]), match[2], row["slug"]) for row, match in found if match)


def _capacities(world: World) -> Iterator[Params]:
    """Yield kinds and sizes that rule out the cheapest product, but not all."""
    names = [row["name"] for row in world.rows("SELECT name FROM shop_products WHERE enabled ORDER BY id")]
    for kind in sorted({kinds.kind(name) for name in names if kinds.known(name)}):
        sizes = _sizes(world, kind)
        if len({unit for *_, unit, _ in sizes}) == 1 and len(sizes) > 2:
            for least in sorted({size for _, size, *_ in sizes}):
                fits = [one for one in sizes if one[1] >= least]
                if sizes[0] not in fits and (len(fits) == 1 or fits[0][0] < fits[1][0]):
                    yield {"kind": kind, "size": f"{least:g} {sizes[0][2]}"}


def _all_found(page: PageReader, words: str, order: str) -> Iterator[str]:
    yield from steps.search(page, words)
    yield page.choose("Sort By", order)


def _open_fitting(page: PageReader, kind: str, size: str) -> Iterator[str]:
    """Open the first product of the list that is of this kind and large enough."""
    least = float(size.split()[0])
    yield from steps.show_few(page)
    while True:
        for product in steps.listed_products(page):
            match = _SIZE.search(product.name)
            if kinds.known(product.name) and kinds.kind(product.name) == kind and match and float(match[1]) >= least:
                yield page.click("link", product.name)
                return
        yield page.click("link", "Next")


cheapest_of_size = ShopTemplate(
    "shopping-cheapest-of-size",
    "navigation",
    "medium",
    since=2,
    intents=(
        "Show me the least expensive {kind} of at least {size}.",
        'I need "{kind}" with {size} or more, as cheap as possible. Open the page of the best choice.',
        "Which {kind} that has no less than {size} costs least? Bring me to its page.",
    ),
    instances=_capacities,
    expected=lambda world, kind, size: EndsOn(
        f"{SHOP}/product/{next(slug for _, one, _, slug in _sizes(world, kind) if one >= float(size.split()[0]))}"
    ),
    solution=[do(_all_found, "{kind}", steps.PRICE_UP), do(_open_fitting, "{kind}", "{size}")],
    mistake=[do(_all_found, "{kind}", steps.PRICE_UP), click("link", steps.nth_product(0))],
)


def _kinds_of_brands(world: World) -> list[Params]:
    """Return brands with two to five products of a kind, and all kinds with three to ten products."""
    counts: dict[str, int] = {}
    for row in world.rows("SELECT name FROM shop_products WHERE enabled ORDER BY id"):
        if kinds.known(row["name"]):
            counts[kinds.kind(row["name"])] = counts.get(kinds.kind(row["name"]), 0) + 1
    return [{"kind": kind} for kind, count in counts.items() if 2 < count <= 10 and _is_exact(world, kind)]


def _is_exact(world: World, kind: str) -> bool:
    """Return whether a search for a kind finds nothing else."""
    words = [word.rstrip("s") for word in kind.split()]
    names = [row["name"].lower() for row in world.rows("SELECT name FROM shop_products WHERE enabled")]
    return sum(all(word in name for word in words) for name in names) == len(kinds.products(world, kind))


def _prices(world: World, kind: str) -> list[tuple[int, str]]:
    query = f"SELECT {SOLD}, name FROM shop_products p WHERE id = ?"
    return sorted(tuple(world.rows(query, number)[0]) for number in kinds.products(world, kind))


def _range(world: World, kind: str) -> Says:
    prices = [price for price, _ in _prices(world, kind)]
    return says(money(prices[0]), money(prices[-1]))


def _ends(page: PageReader, kind: str) -> Steps[tuple[str, str]]:
    yield from _all_found(page, kind, steps.PRICE_UP)
    low = steps.listed_products(page)[0].price
    yield page.choose("Sort By", steps.PRICE_DOWN)
    return low, steps.listed_products(page)[0].price


price_range = ShopTemplate(
    "shopping-kind-range",
    "information",
    "medium",
    since=2,
    intents=(
        'What is the price range of "{kind}" in this shop?',
        'From which price to which does the shop sell something like "{kind}"?',
        'I want "{kind}". What do the cheapest and the most expensive one cost here?',
    ),
    instances=_kinds_of_brands,
    expected=_range,
    solution=[do(_ends, "{kind}"), answer(lambda found: f"{found[0]} to {found[1]}")],
    mistake=answer(lambda found: found[1]),
)


def _names_and_range(world: World, kind: str) -> Says:
    found = _prices(world, kind)
    return says(*(name for _, name in found), money(found[0][0]), money(found[-1][0]))


names_and_range = ShopTemplate(
    "shopping-names-and-range",
    "information",
    "medium",
    since=2,
    intents=(
        "Give me the full names of all products of the kind {kind} in the shop, and the range of their prices: only "
        "the lowest and the highest price.",
        "Which {kind} models does the shop have? List their complete names, followed by the lowest and the highest of "
        "their prices.",
        "List every {kind} by its full name. Then tell me the price range, as the lowest and the highest price.",
    ),
    instances=lambda world: [row for row in _kinds_of_brands(world) if len(kinds.products(world, row["kind"])) < 6],
    expected=_names_and_range,
    solution=[
        do(_all_found, "{kind}", steps.PRICE_UP),
        answer(lambda page: _listing(steps.listed_products(page))),
    ],
    mistake=answer(lambda page: _listing(steps.listed_products(page)[:-1])),
)


def _listing(found: list[steps.ListedProduct]) -> str:
    names = "\n".join(product.name for product in found)
    return f"{names}\nFrom {found[0].price} to {found[-1].price}"


_NEEDS = {
    "I grind my teeth at night": "night guard",
    "too much light keeps me awake": "sleep mask",
    "the neighbours are so loud that I cannot fall asleep": "white noise machine",
    "my shoes lie all over the hall": "shoe rack",
    "my fork cannot reach between my teeth": "dental floss",
    "my phone is always empty before I am home": "power bank",
    "the sun burns my skin": "sun cream",
    "my lips are chapped": "lip balm",
    "my bicycle was nearly stolen": "bike lock",
    "my tyres are flat": "floor pump",
    "my feet get wet in the garden": "rain boots",
    "I never hear who is at the front door": "video doorbell",
    "I oversleep": "alarm clock",
    "my laptop is too low on the desk": "laptop stand",
}


def _needs(world: World) -> list[Params]:
    return [{"need": need} for need, kind in _NEEDS.items() if kinds.products(world, kind)]


def _any_of(world: World, kind: str) -> str:
    slugs = (world.value("SELECT slug FROM shop_products WHERE id = ?", one) for one in kinds.products(world, kind))
    return OR.join(f"{SHOP}/product/{slug}" for slug in slugs)


open_need = ShopTemplate(
    "shopping-open-need",
    "navigation",
    "easy",
    since=2,
    intents=(
        "The trouble is that {need}. Open the page of a product made against this.",
        "I have a problem: {need}. Show me something in the shop that is made for it, on its own page.",
        "Find a product in the shop that helps, since {need}, and open its page.",
    ),
    instances=_needs,
    expected=lambda world, need: EndsOn(_any_of(world, _NEEDS[need])),
    solution=[
        do(steps.search, given(lambda need: _NEEDS[need])),
        click("link", given(lambda page, need: _first_of(page, _NEEDS[need]))),
    ],
    mistake=click("link", "Customer Service"),
)


def _first_of(page: PageReader, kind: str) -> str:
    """Return the first product of a kind in the list."""
    names = (product.name for product in steps.listed_products(page))
    return next(name for name in names if kinds.known(name) and kinds.kind(name) == kind)


def _wishable(world: World) -> list[Params]:
    """Return the kinds without a product on the wish list."""
    wished = {row[0] for row in world.rows("SELECT product FROM shop_wishes WHERE customer = ?", ME)}
    names = [row["name"] for row in world.rows("SELECT name FROM shop_products WHERE enabled ORDER BY id")]
    every = sorted({kinds.kind(name) for name in names if kinds.known(name)})
    return [{"kind": kind} for kind in every if not wished & set(kinds.products(world, kind))]


wish_any = ShopTemplate(
    "shopping-wish-any",
    "change",
    "easy",
    since=2,
    intents=(
        'Add "{kind}" to my wish list; any will do.',
        'I would like to have "{kind}". Put one on my wish list, whichever you like.',
        "Find some {kind} in the shop and save it to my wish list.",
    ),
    instances=_wishable,
    expected=lambda world, kind: Added("shop_wishes", {"customer": ME, "product": set(kinds.products(world, kind))}),
    solution=[
        do(steps.search, "{kind}"),
        click("link", given(lambda page, kind: _first_of(page, kind))),
        click("button", "Add to Wish List"),
    ],
    mistake=[do(steps.search, "{kind}"), click("link", given(lambda page, kind: _first_of(page, kind)))],
)


def _misspelt(word: str, rng: Random) -> str:
    """Swap two letters within the longest word of a text."""
    longest = max(word.split(), key=len)
    at = rng.choice([n for n in range(1, len(longest) - 1) if longest[n] != longest[n + 1]])
    return word.replace(longest, longest[:at] + longest[at + 1] + longest[at] + longest[at + 2 :])


def _misspelt_products(world: World, rng: Random) -> Iterator[Params]:
    """Yield cheapest products of kinds that can be added to the cart, with a typing error in the kind."""
    addable = {row["product"] for row in world.rows(queries.ADDABLE_PRODUCTS)}
    for row in _wishable(world):
        prices = _prices(world, row["kind"])
        if len(prices) > 1 and prices[0][0] < prices[1][0] and prices[0][1] in addable and len(row["kind"]) > 6:
            yield {"request": _misspelt(row["kind"], rng)}


def _meant(request: str) -> str:
    """Return the kind with the same letters."""
    return next(kind for kind in kinds.every() if sorted(kind) == sorted(request) and kind.split()[0][0] == request[0])


def _add_first(page: PageReader, kind: str) -> Iterator[str]:
    yield page.click("link", _first_of(page, kind))
    yield page.click("button", "Add to Cart")


misspelt_request = ShopTemplate(
    "shopping-misspelt-request",
    "change",
    "medium",
    since=2,
    intents=(
        "pls put the cheapest {request} in my cart thx",
        "need a {request}, cheapest one u can find, add to cart",
        "can you add a {request} to my cart? the one that costs least",
    ),
    instances=_misspelt_products,
    expected=lambda world, request: queries.in_cart(world, _prices(world, _meant(request))[0][1]),
    solution=[
        do(_all_found, given(lambda request: _meant(request)), steps.PRICE_UP),
        do(_add_first, given(lambda request: _meant(request))),
    ],
    mistake=[
        do(_all_found, given(lambda request: _meant(request)), steps.PRICE_DOWN),
        do(_add_first, given(lambda request: _meant(request))),
    ],
)
