"""Questions about the shop's catalogue: prices and properties of products."""

from __future__ import annotations

import re
from functools import lru_cache

from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import answer, choose_option, do
from agentgym_envs.webarena.tasks.template import Params

offer_price = ShopTemplate(
    "shopping-offer-price",
    "information",
    "easy",
    intents=(
        "How much does the {product} cost at the moment?",
        "What is the {product} sold for right now, before tax and shipping?",
        "Tell me the current price of the {product}.",
    ),
    instances=rows("SELECT name AS product FROM shop_products WHERE enabled AND special_price > 0"),
    expected=lambda world, product: says(
        money(world.value("SELECT special_price FROM shop_products WHERE name = ?", product))
    ),
    solution=[do(steps.open_product, "{product}"), answer(steps.price)],
    mistake=answer(steps.old_price),
)


def _product_attribute_instances(world: World) -> list[Params]:
    """Attributes with a textual value that is not part of another value."""
    rows = world.rows(
        "SELECT p.name AS product, a.name AS attribute, a.value FROM shop_attributes a "
        "JOIN shop_products p ON p.id = a.product WHERE p.enabled AND LENGTH(a.value) > 3"
    )
    kept = [row for row in rows if not re.search(r"\d", row["value"]) and _is_whole(world, row["value"])]
    return [{"product": row["product"], "attribute": row["attribute"]} for row in kept]


def _product_attribute_expected(world: World, attribute: str, product: str) -> Says:
    named = queries.product_id(world, product), attribute
    value = world.value("SELECT value FROM shop_attributes WHERE product = ? AND name = ?", *named)
    query = "SELECT DISTINCT value FROM shop_attributes WHERE (product = ? OR name = ?) AND LENGTH(value) > 3"
    intent = f"{product} {attribute}".lower()
    return says(value, others=[row[0] for row in world.rows(query, *named) if row[0].lower() not in intent])


@lru_cache(maxsize=4096)
def _is_whole(world: World, value: str) -> bool:
    return len(world.rows("SELECT DISTINCT value FROM shop_attributes WHERE value LIKE ?", f"%{value}%")) == 1


product_attribute = ShopTemplate(
    "shopping-attribute",
    "information",
    "easy",
    intents=(
        'What does the shop give as "{attribute}" for the {product}?',
        'Look up the {product}: what is listed under "{attribute}"?',
        'Under the details of the {product}, what does it say for "{attribute}"?',
    ),
    instances=_product_attribute_instances,
    expected=_product_attribute_expected,
    solution=[do(steps.open_product, "{product}"), answer(lambda page, attribute: steps.detail(page, attribute))],
    mistake=answer(lambda page: steps.detail(page, "SKU")),
)


def _extreme_name(world: World, category: str, extreme: str) -> Says:
    names = queries.by_price(world, category)
    wanted = names[0] if extreme == "cheapest" else names[-1]
    return says(wanted, others=names)


extreme_price = ShopTemplate(
    "shopping-extreme-price",
    "information",
    "easy",
    intents=(
        'What is the {extreme} product in the category "{category}" of {department}?',
        'I am looking at {department}, "{category}". Which product there is the {extreme}?',
        "Name the {extreme} product that the shop has under {department} > {category}.",
    ),
    instances=lambda world: [
        {**row, "extreme": extreme} for row in queries.categories(world) for extreme in ("cheapest", "most expensive")
    ],
    expected=_extreme_name,
    solution=[
        do(steps.open_category, "{department}", "{category}"),
        choose_option("Sort By", steps.PRICE_TO_EXTREME),
        answer(lambda page: steps.listed_products(page)[0].name),
    ],
)


def _brand_range_expected(world: World, brand: str) -> Says:
    query = f"SELECT {queries.SOLD} FROM shop_products p WHERE enabled AND brand = ? ORDER BY 1"
    prices = [money(row[0]) for row in world.rows(query, brand)]
    return says(prices[0], prices[-1], others=prices)


def _both_prices(page: PageReader, brand: str) -> Steps[str]:
    yield from steps.search(page, brand)
    yield page.choose("Sort By", steps.PRICE_UP)
    low = steps.listed_products(page)[0].price
    yield page.choose("Sort By", steps.PRICE_DOWN)
    return f"{low} to {steps.listed_products(page)[0].price}"


brand_range = ShopTemplate(
    "shopping-brand-range",
    "information",
    "medium",
    intents=(
        "What is the price range of products from {brand} in the shop?",
        "From what price up to what price does the shop sell things by {brand}?",
        "Give me the lowest and the highest price of all {brand} products.",
    ),
    instances=rows("SELECT brand FROM shop_products WHERE enabled GROUP BY brand HAVING COUNT(*) >= 4"),
    expected=_brand_range_expected,
    solution=_both_prices,
)


def _most_reviewed_expected(world: World, category: str) -> Says:
    names = [name for name, _ in _ranking(world, category)]
    return says(names[0], others=names)


def _compare_reviews(page: PageReader, department: str, category: str) -> Steps[str]:
    yield from steps.open_category(page, department, category)
    return (yield from most_reviewed_here(page))


def most_reviewed_here(page: PageReader) -> Steps[str]:
    """Read the product with the most reviews off the list on the page and its later pages."""
    yield from steps.show_few(page)
    found = steps.listed_products(page)
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        found += steps.listed_products(page)
    return max(found, key=lambda product: product.reviews).name


def _ranking(world: World, category: str) -> list[tuple[str, int]]:
    query = (
        "SELECT p.name, COUNT(r.id) FROM shop_products p JOIN shop_categories c ON c.id = p.category "
        "LEFT JOIN shop_reviews r ON r.product = p.id AND r.status = 'approved' "
        "WHERE p.enabled AND c.name = ? GROUP BY p.id ORDER BY 2 DESC, 1"
    )
    return [(row[0], row[1]) for row in world.rows(query, category)]


def _leads(world: World, category: str) -> bool:
    first, second = _ranking(world, category)[:2]
    return first[1] > second[1]


most_reviewed = ShopTemplate(
    "shopping-most-reviewed",
    "information",
    "medium",
    intents=(
        'Which product in "{category}" ({department}) has the most customer reviews?',
        "Under {department} > {category}: what has been reviewed most often?",
        'Find the product of the category "{category}" in {department} that has got more reviews than any other there.',
    ),
    instances=lambda world: [row for row in queries.categories(world) if _leads(world, row["category"])],
    expected=_most_reviewed_expected,
    solution=_compare_reviews,
)
