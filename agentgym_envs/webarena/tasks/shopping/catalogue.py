"""Questions about the shop's catalogue: prices and properties of products."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass


class OfferPrice(TemplateClass):
    """Name the current price of a product on offer."""

    name, group, sites = "shopping-offer-price", "shopping", ("shop",)
    kind, difficulty = "information", "easy"
    intents = (
        "How much does the {product} cost at the moment?",
        "What is the {product} sold for right now, before tax and shipping?",
        "Tell me the current price of the {product}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return map(dict, world.rows("SELECT name AS product FROM shop_products WHERE enabled AND special_price > 0"))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(money(world.value("SELECT special_price FROM shop_products WHERE name = ?", params["product"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        yield page.stop(steps.price(page))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the regular price."""
        yield from steps.open_product(page, params["product"])
        yield page.stop(steps.old_price(page))


class ProductAttribute(TemplateClass):
    """Name an attribute of a product."""

    name, group, sites = "shopping-attribute", "shopping", ("shop",)
    kind, difficulty = "information", "easy"
    intents = (
        'What does the shop give as "{attribute}" for the {product}?',
        'Look up the {product}: what is listed under "{attribute}"?',
        'Under the details of the {product}, what does it say for "{attribute}"?',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Attributes with a textual value that is not part of another value."""
        rows = world.rows(
            "SELECT p.name AS product, a.name AS attribute, a.value FROM shop_attributes a "
            "JOIN shop_products p ON p.id = a.product WHERE p.enabled AND LENGTH(a.value) > 3"
        )
        kept = [row for row in rows if not re.search(r"\d", row["value"]) and self._is_whole(world, row["value"])]
        return [{"product": row["product"], "attribute": row["attribute"]} for row in kept]

    def _is_whole(self, world: World, value: str) -> bool:
        return len(world.rows("SELECT DISTINCT value FROM shop_attributes WHERE value LIKE ?", f"%{value}%")) == 1

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The value, and neither other products' values of this attribute nor the product's other attributes."""
        given = queries.product_id(world, params["product"]), params["attribute"]
        value = world.value("SELECT value FROM shop_attributes WHERE product = ? AND name = ?", *given)
        query = "SELECT DISTINCT value FROM shop_attributes WHERE (product = ? OR name = ?) AND LENGTH(value) > 3"
        intent = f"{params['product']} {params['attribute']}".lower()
        return [says(value, others=[row[0] for row in world.rows(query, *given) if row[0].lower() not in intent])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        yield page.stop(steps.detail(page, params["attribute"]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the SKU instead."""
        yield from steps.open_product(page, params["product"])
        yield page.stop(steps.detail(page, "SKU"))


class ExtremePrice(TemplateClass):
    """Name the cheapest or most expensive product of a category."""

    name, group, sites = "shopping-extreme-price", "shopping", ("shop",)
    kind, difficulty = "information", "easy"
    intents = (
        'What is the {extreme} product in the category "{category}" of {department}?',
        'I am looking at {department}, "{category}". Which product there is the {extreme}?',
        "Name the {extreme} product that the shop has under {department} > {category}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = queries.categories(world)
        return [{**row, "extreme": extreme} for row in rows for extreme in ("cheapest", "most expensive")]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The product's name; prices are unique within a category."""
        names = queries.by_price(world, params["category"])
        wanted = names[0] if params["extreme"] == "cheapest" else names[-1]
        return [says(wanted, others=names)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_category(page, params["department"], params["category"])
        yield page.choose("Sort By", steps.PRICE_UP if params["extreme"] == "cheapest" else steps.PRICE_DOWN)
        yield page.stop(steps.listed_products(page)[0].name)


class BrandRange(TemplateClass):
    """Name the lowest and the highest price of a brand."""

    name, group, sites = "shopping-brand-range", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        "What is the price range of products from {brand} in the shop?",
        "From what price up to what price does the shop sell things by {brand}?",
        "Give me the lowest and the highest price of all {brand} products.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Brands with at least four products."""
        query = "SELECT brand FROM shop_products WHERE enabled GROUP BY brand HAVING COUNT(*) >= 4"
        return map(dict, world.rows(query))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = f"SELECT {queries.SOLD} FROM shop_products p WHERE enabled AND brand = ? ORDER BY 1"
        prices = [money(row[0]) for row in world.rows(query, params["brand"])]
        return [says(prices[0], prices[-1], others=prices)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.search(page, params["brand"])
        yield page.choose("Sort By", steps.PRICE_UP)
        low = steps.listed_products(page)[0].price
        yield page.choose("Sort By", steps.PRICE_DOWN)
        yield page.stop(f"{low} to {steps.listed_products(page)[0].price}")


class MostReviewed(TemplateClass):
    """Name the product of a category with the most reviews."""

    name, group, sites = "shopping-most-reviewed", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        'Which product in "{category}" ({department}) has the most customer reviews?',
        "Under {department} > {category}: what has been reviewed most often?",
        'Find the product of the category "{category}" in {department} that has got more reviews than any other there.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Categories with a single leader."""
        return [row for row in queries.categories(world) if self._leads(world, row["category"])]

    def _ranking(self, world: World, category: str) -> list[tuple[str, int]]:
        query = (
            "SELECT p.name, COUNT(r.id) FROM shop_products p JOIN shop_categories c ON c.id = p.category "
            "LEFT JOIN shop_reviews r ON r.product = p.id AND r.status = 'approved' "
            "WHERE p.enabled AND c.name = ? GROUP BY p.id ORDER BY 2 DESC, 1"
        )
        return [(row[0], row[1]) for row in world.rows(query, category)]

    def _leads(self, world: World, category: str) -> bool:
        first, second = self._ranking(world, category)[:2]
        return first[1] > second[1]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        names = [name for name, _ in self._ranking(world, params["category"])]
        return [says(names[0], others=names)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_category(page, params["department"], params["category"])
        found = steps.listed_products(page)
        while page.has("link", "Next"):
            yield page.click("link", "Next")
            found += steps.listed_products(page)
        yield page.stop(max(found, key=lambda product: product.reviews).name)


TEMPLATES = (OfferPrice(), ProductAttribute(), ExtremePrice(), BrandRange(), MostReviewed())
