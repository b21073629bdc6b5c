"""Tasks that end on a page of the shop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from random import Random
from urllib.parse import urlencode

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.shop.listing import SORTS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.instances import choose, rows
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_LIMITS = ("price_from", "price_to")
_ORDERS = {text: name for name, (text, _) in SORTS.items() if name != "position"}

open_category = ShopTemplate(
    "shopping-open-category",
    "navigation",
    "easy",
    intents=(
        'Show me the category "{category}" of {department}.',
        "Take me to {department} > {category}.",
        'Open the page that lists everything in "{category}", which is a part of {department}.',
    ),
    instances=queries.categories,
    expected=lambda world, category: [EndsOn(queries.category_url(world, category)), _only_filters()],
    solution=[do(steps.open_category, "{department}", "{category}")],
)

sorted_search = ShopTemplate(
    "shopping-sorted-search",
    "navigation",
    "easy",
    intents=(
        'Search the shop for "{words}" and sort the results by "{order}".',
        'Show me the search results for "{words}", in the order "{order}".',
        'I am looking for "{words}". List what the search finds, sorted by "{order}".',
    ),
    instances=rows("SELECT term AS words FROM shop_searches WHERE results > 1", order=list(_ORDERS)),
    expected=lambda words, order: [
        EndsOn(f"{ORIGINS['shop']}/search?{urlencode({'q': words, 'sort': _ORDERS[order]})}"),
        _only_filters("q"),
    ],
    solution=[do(steps.search, "{words}"), choose_option("Sort By", "{order}")],
    mistake=[do(steps.search, "{words}")],
)


def _filtered_list(world: World, attribute: str, value: str, order: str, category: str) -> ExpectedResult:
    field = _url_parameter(attribute)
    query = {field: value, "sort": _ORDERS[order]}
    return [EndsOn(f"{queries.category_url(world, category)}?{urlencode(query)}"), _only_filters(field)]


filtered_category = ShopTemplate(
    "shopping-narrowed-category",
    "navigation",
    "medium",
    intents=(
        'In {department} > {category}, show only the products with {attribute} "{value}", sorted by "{order}".',
        'List the products of "{category}" ({department}) whose {attribute} is "{value}", in the order "{order}".',
        'Go to "{category}" in {department}, filter by {attribute}: {value}, and sort by "{order}".',
    ),
    instances=choose(queries.filters, order=[text for text in _ORDERS if text.startswith("Price")]),
    expected=_filtered_list,
    solution=[
        do(steps.open_category, "{department}", "{category}"),
        do(steps.apply_filter, "{attribute}", "{value}"),
        choose_option("Sort By", "{order}"),
    ],
    mistake=[do(steps.open_category, "{department}", "{category}"), choose_option("Sort By", "{order}")],
)

count_filtered = ShopTemplate(
    "shopping-count-products",
    "information",
    "medium",
    intents=(
        'How many products in "{category}" ({department}) have {attribute} "{value}"? Answer with the number alone.',
        "Under {department} > {category}, how many products are there with {attribute}: {value}? Give just the number.",
        'Count the products of the category "{category}" in {department} whose {attribute} is "{value}". One number '
        "will do.",
    ),
    instances=queries.filters,
    expected=lambda world, params: says(queries.count_filtered(world, params)),
    solution=[
        do(steps.open_category, "{department}", "{category}"),
        do(steps.apply_filter, "{attribute}", "{value}"),
        answer(steps.item_count),
    ],
    mistake=[do(steps.open_category, "{department}", "{category}"), answer(steps.item_count)],
)


def _extreme_product(world: World, brand: str, extreme: str) -> EndsOn:
    _, slug = queries.brands(world)[brand][0 if extreme == "cheapest" else -1]
    return EndsOn(f"{ORIGINS['shop']}/product/{slug}")


open_extreme_of_brand = ShopTemplate(
    "shopping-open-extreme",
    "navigation",
    "easy",
    intents=(
        "Open the page of the {extreme} {brand} product that the shop sells.",
        "Show me the {extreme} of all products made by {brand}: I want to see its own page.",
        "Find the {extreme} thing by {brand} and go to its page.",
    ),
    instances=lambda world: [
        {"brand": brand, "extreme": extreme}
        for brand, prices in queries.brands(world).items()
        for extreme, end in (("cheapest", 0), ("most expensive", -1))
        if len(prices) > 3 and [price for price, _ in prices].count(prices[end][0]) == 1
    ],
    expected=_extreme_product,
    solution=[
        do(steps.search, "{brand}"),
        choose_option("Sort By", steps.PRICE_TO_EXTREME),
        click("link", steps.nth_product(0)),
    ],
)


def _rated_reviews_expected(world: World, product: str, stars: int) -> ExpectedResult:
    slug = world.value("SELECT slug FROM shop_products WHERE name = ?", product)
    return [EndsOn(f"{ORIGINS['shop']}/product/{slug}/reviews?stars={stars}"), _only_filters("stars")]


rated_reviews = ShopTemplate(
    "shopping-rated-reviews",
    "navigation",
    "medium",
    intents=(
        "Show me the reviews of the {product} that give {stars} stars, and only these.",
        "Open the list of all {stars}-star reviews of the {product}.",
        "I want to read what those say who gave the {product} {stars} stars. Bring up the page of just these reviews.",
    ),
    instances=rows(
        "SELECT p.name AS product, r.rating AS stars FROM shop_products p JOIN shop_reviews r ON r.product = p.id "
        "WHERE p.enabled AND r.status = 'approved' AND r.rating > 1 GROUP BY p.id, r.rating"
    ),
    expected=_rated_reviews_expected,
    solution=[do(steps.open_reviews, "{product}"), click("link", "{stars} stars")],
    mistake=[do(steps.open_reviews, "{product}")],
)


def _limits(world: World, rng: Random) -> Iterator[Params]:
    """Yield brands and limits that some of their products are within, but not all."""
    for brand, prices in queries.brands(world).items():
        low, high = rng.choice(((5, 40), (10, 50), (20, 80), (25, 100), (30, 150)))
        if 1 <= sum(100 * low <= price <= 100 * high for price, _ in prices) < len(prices):
            yield {"brand": brand, "low": low, "high": high}


def _found_within(brand: str, low: int, high: int) -> ExpectedResult:
    start = f"{ORIGINS['shop']}/advanced-search/results?"
    pairs = product(_price_spellings(low), _price_spellings(high))
    limits = [dict(zip(_LIMITS, pair, strict=True)) for pair in pairs]
    urls = [start + urlencode({"brand": brand, **limit}) for limit in limits]
    return [EndsOn(OR.join(urls)), Requested(urls, method="GET", status=200), _only_filters("brand", *_LIMITS)]


advanced_search = ShopTemplate(
    "shopping-advanced-search",
    "navigation",
    "medium",
    records=True,
    intents=(
        "Use the advanced search to list everything by the brand {brand} that costs from {low} to {high} dollars.",
        "With the shop's advanced search, find the products of {brand} with a price between {low} and {high} dollars.",
        "Show me what the advanced search finds for the brand {brand} and prices from {low} to {high} dollars.",
    ),
    instances=_limits,
    expected=_found_within,
    solution=[
        click("link", "Advanced Search"),
        type_text("Brand", "{brand}"),
        type_text("Price from ($)", "{low}"),
        type_text("Price to ($)", "{high}", enter=True),
    ],
)


def _price_spellings(whole: int) -> tuple[str, ...]:
    """The spellings of an amount of whole dollars."""
    return f"{whole}", f"{whole}.00", f"${whole}", f"${whole}.00"


def _only_filters(*names: str) -> PageHolds:
    """Return a check that the list on the last page has only these filters; its URL alone may contain more."""
    known = json.dumps([*names, "sort", "page"])
    more = f"filter(([name, value]) => value.trim() && !{known}.includes(name))"
    script = f"[...new URLSearchParams(location.search)].{more}.map(pair => pair.join('=')).join() || 'none'"
    return PageHolds("last", script, exact="none")


def _url_parameter(attribute: str) -> str:
    """Return the name of an attribute in the URL of a list."""
    return attribute.lower() if attribute == "Brand" else attribute
