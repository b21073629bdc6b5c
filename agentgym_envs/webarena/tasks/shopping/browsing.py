"""Tasks that end on a page of the shop."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from random import Random
from urllib.parse import urlencode

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.shop.listing import SORTS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass

_ENDS, _LIMITS = ("low", "high"), ("price_from", "price_to")
_ORDERS = {text: name for name, (text, _) in SORTS.items() if name != "position"}


class OpenCategory(TemplateClass):
    """Show a category."""

    name, group, sites = "shopping-open-category", "shopping", ("shop",)
    kind, difficulty = "navigation", "easy"
    intents = (
        'Show me the category "{category}" of {department}.',
        "Take me to {department} > {category}.",
        'Open the page that lists everything in "{category}", which is a part of {department}.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return queries.categories(world)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(queries.category_url(world, params["category"])), _only_filters()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_category(page, params["department"], params["category"])
        yield page.stop()


class SortedSearch(TemplateClass):
    """Show the results of a search in an order."""

    name, group, sites = "shopping-sorted-search", "shopping", ("shop",)
    kind, difficulty = "navigation", "easy"
    intents = (
        'Search the shop for "{words}" and sort the results by "{order}".',
        'Show me the search results for "{words}", in the order "{order}".',
        'I am looking for "{words}". List what the search finds, sorted by "{order}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows("SELECT term FROM shop_searches WHERE results > 1")
        return [{"words": row["term"], "order": rng.choice(list(_ORDERS))} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = urlencode({"q": params["words"], "sort": _ORDERS[params["order"]]})
        return [EndsOn(f"{ORIGINS['shop']}/search?{query}"), _only_filters("q")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.search(page, params["words"])
        yield page.choose("Sort By", params["order"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Leave the results in their default order."""
        yield from steps.search(page, params["words"])
        yield page.stop()


class FilteredCategory(TemplateClass):
    """Show a category, filtered by an attribute, in an order."""

    name, group, sites = "shopping-narrowed-category", "shopping", ("shop",)
    kind, difficulty = "navigation", "medium"
    intents = (
        'In {department} > {category}, show only the products with {attribute} "{value}", sorted by "{order}".',
        'List the products of "{category}" ({department}) whose {attribute} is "{value}", in the order "{order}".',
        'Go to "{category}" in {department}, filter by {attribute}: {value}, and sort by "{order}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Filters that some products of a category pass, but not all."""
        orders = [text for text in _ORDERS if text.startswith("Price")]
        return [{**row, "order": rng.choice(orders)} for row in queries.filters(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        field = _url_parameter(params["attribute"])
        query = {field: params["value"], "sort": _ORDERS[params["order"]]}
        return [EndsOn(f"{queries.category_url(world, params['category'])}?{urlencode(query)}"), _only_filters(field)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_category(page, params["department"], params["category"])
        yield from steps.apply_filter(page, params["attribute"], params["value"])
        yield page.choose("Sort By", params["order"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Show the whole category in that order."""
        yield from steps.open_category(page, params["department"], params["category"])
        yield page.choose("Sort By", params["order"])
        yield page.stop()


class CountFiltered(TemplateClass):
    """Count the products of a category that a filter leaves."""

    name, group, sites = "shopping-count-products", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        'How many products in "{category}" ({department}) have {attribute} "{value}"? Answer with the number alone.',
        "Under {department} > {category}, how many products are there with {attribute}: {value}? Give just the number.",
        'Count the products of the category "{category}" in {department} whose {attribute} is "{value}". One number '
        "will do.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Filters that some products of a category pass, but not all."""
        return queries.filters(world)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(queries.count_filtered(world, params))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_category(page, params["department"], params["category"])
        yield from steps.apply_filter(page, params["attribute"], params["value"])
        yield page.stop(steps.item_count(page))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the number of all products in the category."""
        yield from steps.open_category(page, params["department"], params["category"])
        yield page.stop(steps.item_count(page))


class OpenExtremeOfBrand(TemplateClass):
    """Open the cheapest or most expensive product of a brand."""

    name, group, sites = "shopping-open-extreme", "shopping", ("shop",)
    kind, difficulty = "navigation", "easy"
    intents = (
        "Open the page of the {extreme} {brand} product that the shop sells.",
        "Show me the {extreme} of all products made by {brand}: I want to see its own page.",
        "Find the {extreme} thing by {brand} and go to its page.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Both ends of each brand, where no other product has the same price."""
        return [
            {"brand": brand, "extreme": extreme}
            for brand, prices in queries.brands(world).items()
            for extreme, end in (("cheapest", 0), ("most expensive", -1))
            if len(prices) > 3 and [price for price, _ in prices].count(prices[end][0]) == 1
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        _, slug = queries.brands(world)[params["brand"]][0 if params["extreme"] == "cheapest" else -1]
        return [EndsOn(f"{ORIGINS['shop']}/product/{slug}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.search(page, params["brand"])
        yield page.choose("Sort By", steps.PRICE_UP if params["extreme"] == "cheapest" else steps.PRICE_DOWN)
        yield page.click("link", steps.listed_products(page)[0].name)
        yield page.stop()


class RatedReviews(TemplateClass):
    """Show the reviews of a product with a number of stars."""

    name, group, sites = "shopping-rated-reviews", "shopping", ("shop",)
    kind, difficulty = "navigation", "medium"
    intents = (
        "Show me the reviews of the {product} that give {stars} stars, and only these.",
        "Open the list of all {stars}-star reviews of the {product}.",
        "I want to read what those say who gave the {product} {stars} stars. Bring up the page of just these reviews.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows(
            "SELECT p.name AS product, r.rating AS stars FROM shop_products p JOIN shop_reviews r ON r.product = p.id "
            "WHERE p.enabled AND r.status = 'approved' AND r.rating > 1 GROUP BY p.id, r.rating"
        )
        return map(dict, rows)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        slug = world.value("SELECT slug FROM shop_products WHERE name = ?", params["product"])
        return [EndsOn(f"{ORIGINS['shop']}/product/{slug}/reviews?stars={params['stars']}"), _only_filters("stars")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_reviews(page, params["product"])
        yield page.click("link", f"{params['stars']} stars")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Show all reviews."""
        yield from steps.open_reviews(page, params["product"])
        yield page.stop()


class AdvancedSearch(TemplateClass):
    """Search by brand and price."""

    name, group, sites = "shopping-advanced-search", "shopping", ("shop",)
    kind, difficulty = "navigation", "medium"
    records = True
    intents = (
        "Use the advanced search to list everything by the brand {brand} that costs from {low} to {high} dollars.",
        "With the shop's advanced search, find the products of {brand} with a price between {low} and {high} dollars.",
        "Show me what the advanced search finds for the brand {brand} and prices from {low} to {high} dollars.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Brands and limits that some of their products are within, but not all."""
        found = []
        for brand, prices in queries.brands(world).items():
            low, high = rng.choice(((5, 40), (10, 50), (20, 80), (25, 100), (30, 150)))
            if 1 <= sum(100 * low <= price <= 100 * high for price, _ in prices) < len(prices):
                found.append({"brand": brand, "low": low, "high": high})
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The page of results, in any spelling of the prices, requested by the form."""
        page = f"{ORIGINS['shop']}/advanced-search/results?"
        limits = [
            dict(zip(_LIMITS, pair, strict=True)) for pair in product(*(_price_spellings(params[end]) for end in _ENDS))
        ]
        urls = [page + urlencode({"brand": params["brand"], **limit}) for limit in limits]
        return [EndsOn(OR.join(urls)), Requested(urls, method="GET", status=200), _only_filters("brand", *_LIMITS)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Advanced Search")
        yield page.type("Brand", params["brand"])
        yield page.type("Price from ($)", str(params["low"]))
        yield page.type("Price to ($)", str(params["high"]), enter=True)
        yield page.stop()


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


TEMPLATES = (
    OpenCategory(),
    SortedSearch(),
    FilteredCategory(),
    CountFiltered(),
    OpenExtremeOfBrand(),
    RatedReviews(),
    AdvancedSearch(),
)
