"""Questions about products, and changes to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NOT_ACHIEVABLE, NotAchievable, Says, says
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, ENOUGH, AdminTemplate
from agentgym_envs.webarena.tasks.cms.steps import SELECT_ALL
from agentgym_envs.webarena.tasks.instances import choose, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, given, type_text
from agentgym_envs.webarena.tasks.template import Params

_REGULARLY_PRICED = "SELECT * FROM shop_products WHERE enabled AND special_price IS NULL ORDER BY id"


def _different_stock(world: World, rng: Random) -> list[Params]:
    rows = queries.sample_some(world.rows("SELECT name, stock FROM shop_products ORDER BY id"), rng, 200)
    return queries.one_per_answer((row["stock"], {"product": row["name"]}) for row in rows)


stock_left = AdminTemplate(
    "cms-stock-left",
    "information",
    "easy",
    intents=(
        "How many units of {product} are left in stock?",
        "What quantity of {product} do we have in stock?",
        "Check the stock of {product}: how many pieces are there?",
    ),
    instances=choose(_different_stock, sample=ENOUGH),
    expected=lambda world, product: says(queries.product_value(world, "stock", product)),
    solution=[do(steps.open_product, "{product}"), answer(lambda page: steps.field_value(page, "Quantity"))],
)


def _low_stock_instances(world: World, rng: Random) -> Iterator[Params]:
    """Categories in which two to four products are at or below a stock level."""
    names = world.rows("SELECT id, name FROM shop_categories WHERE parent IS NOT NULL ORDER BY id")
    for row in names:
        query = "SELECT stock FROM shop_products WHERE category = ? ORDER BY stock"
        stocks = [one[0] for one in world.rows(query, row["id"])]
        count = rng.choice((2, 2, 3))
        if len(stocks) > count and stocks[count] - stocks[count - 1] > 1:
            yield {"category": row["name"], "most": stocks[count - 1] + (stocks[count] - stocks[count - 1]) // 2}


def _low_stock_expected(world: World, category: str, most: int) -> Says:
    query = """SELECT p.name, p.stock FROM shop_products p JOIN shop_categories k ON k.id = p.category
        WHERE k.name = ? AND k.parent IS NOT NULL ORDER BY p.id"""
    rows = world.rows(query, category)
    low = [row["name"] for row in rows if row["stock"] <= most]
    return says(*low, others=[row["name"] for row in rows if row["name"] not in low])


low_stock = AdminTemplate(
    "cms-low-stock",
    "information",
    "medium",
    intents=(
        'Which products in the category "{category}" have at most {most} units in stock? Name all of them.',
        'List the names of all products of the category "{category}" of which there are {most} or fewer left.',
        'In "{category}", which products should we reorder because no more than {most} units are in stock?',
    ),
    instances=_low_stock_instances,
    expected=_low_stock_expected,
    solution=[
        do(steps.open_from_menu, "Catalog", "Products"),
        do(steps.filter_grid, {"Quantity to": "{most}"}, Category="{category}"),
        answer(lambda page: "; ".join(row["Name"] for row in page.table())),
    ],
)


def _product_margin_instances(world: World, rng: Random) -> list[Params]:
    """Products without a special price."""
    chosen = queries.sample_some(world.rows(_REGULARLY_PRICED), rng)
    return queries.one_per_answer((row["price"] - row["cost"], {"product": row["name"]}) for row in chosen)


def _margin(page: PageReader) -> str:
    price, cost = (queries.cents(steps.field_value(page, label)) for label in ("Price", "Cost"))
    return money(price - cost)


product_margin = AdminTemplate(
    "cms-margin",
    "information",
    "easy",
    intents=(
        "What is the difference between the price and the cost of {product}?",
        "How much do we earn on one {product}, that is, its price less its cost?",
        "Compute the margin in dollars (price minus cost) of the product with the name {product}.",
    ),
    instances=_product_margin_instances,
    expected=lambda world, product: says(money(queries.product_value(world, "price - cost", product))),
    solution=[do(steps.open_product, "{product}"), answer(_margin)],
)

open_product_page = AdminTemplate(
    "cms-open-product",
    "navigation",
    "easy",
    intents=(
        "Open the page to edit the product with the SKU {sku}.",
        "Show me the edit page of the product whose SKU is {sku}.",
        "Go to where I can change the product {sku} (that is its SKU).",
    ),
    instances=rows("SELECT sku FROM shop_products ORDER BY id", sample=ENOUGH),
    expected=lambda world, sku: EndsOn(
        f"{ADMIN}/products/{world.value('SELECT id FROM shop_products WHERE sku = ?', sku)}"
    ),
    solution=[type_text("Search", "{sku}", enter=True), click("link", re.compile(".+"), after="Products")],
)


def _set_price_instances(world: World, rng: Random) -> Iterator[Params]:
    for row in queries.sample_some(world.rows(_REGULARLY_PRICED), rng):
        price = row["price"] // 100 * 100 + rng.choice((-200, -100, 100, 200, 300, 500)) + 45
        if price > 200 and price != row["price"]:
            yield {"product": row["name"], "price": queries.dollars(price)}


set_price = AdminTemplate(
    "cms-set-price",
    "change",
    "medium",
    intents=(
        "Set the price of {product} to ${price}.",
        "From now on, {product} costs ${price}. Change its price.",
        "Change the regular price of {product} to ${price}.",
    ),
    instances=_set_price_instances,
    expected=lambda product, price: Updated("shop_products", {"name": product}, {"price": queries.cents(price)}),
    solution=[do(steps.open_product, "{product}"), type_text("Price", "{price}"), click("button", "Save")],
)


def _reduce_price_instances(world: World, rng: Random) -> Iterator[Params]:
    """Percentages that give a new price in whole cents."""
    for row in queries.sample_some(world.rows(_REGULARLY_PRICED), rng, 200):
        parts = [percent for percent in (5, 10, 15, 20, 25, 30, 40, 50) if row["price"] * percent % 100 == 0]
        if parts:
            yield {"product": row["name"], "percent": rng.choice(parts)}


def _reduced(page: PageReader, percent: int) -> str:
    return queries.dollars(queries.cents(steps.field_value(page, "Price")) * (100 - percent) // 100)


reduce_price = AdminTemplate(
    "cms-cut-price",
    "change",
    "medium",
    intents=(
        "Reduce the price of {product} by {percent}%.",
        "Make {product} {percent}% cheaper by changing its regular price.",
        "{product} sells badly. Lower its price by {percent} percent.",
    ),
    instances=_reduce_price_instances,
    expected=lambda world, product, percent: Updated(
        "shop_products",
        {"name": product},
        {"price": queries.product_value(world, "price", product) * (100 - percent) // 100},
    ),
    solution=[do(steps.open_product, "{product}"), type_text("Price", given(_reduced)), click("button", "Save")],
)

end_sale = AdminTemplate(
    "cms-end-sale",
    "change",
    "medium",
    intents=(
        "End the sale of {product}: it must have no special price any more.",
        "Remove the special price of {product}.",
        "{product} is to be sold at its regular price again. Clear its special price.",
    ),
    instances=rows(
        "SELECT name AS product FROM shop_products WHERE special_price IS NOT NULL ORDER BY id", sample=ENOUGH
    ),
    expected=lambda product: Updated("shop_products", {"name": product}, {"special_price": None}),
    solution=[do(steps.open_product, "{product}"), type_text("Special Price", ""), click("button", "Save")],
)

take_delivery = AdminTemplate(
    "cms-take-delivery",
    "change",
    "medium",
    intents=(
        "{count} more units of {product} have arrived. Add them to its quantity in stock.",
        "We got a delivery of {count} pieces of {product}. Increase its stock by that many.",
        "Raise the stock of {product} by {count}.",
    ),
    instances=rows(
        "SELECT name AS product FROM shop_products WHERE stock < 60 ORDER BY id",
        sample=ENOUGH,
        count=(12, 24, 30, 36, 48, 60, 75),
    ),
    expected=lambda world, count, product: Updated(
        "shop_products", {"name": product}, {"stock": queries.product_value(world, "stock", product) + count}
    ),
    solution=[
        do(steps.open_product, "{product}"),
        type_text("Quantity", given(lambda page, count: str(int(steps.field_value(page, "Quantity")) + count))),
        click("button", "Save"),
    ],
)

disable_brand = AdminTemplate(
    "cms-disable-brand",
    "change",
    "medium",
    intents=(
        "We no longer work with {brand}. Disable all of its products.",
        "Disable every product of the brand {brand}.",
        "Take all {brand} products off the shop by disabling them.",
    ),
    instances=rows(
        "SELECT brand FROM shop_products GROUP BY brand HAVING COUNT(*) BETWEEN 2 AND 10 AND SUM(enabled) > 1"
    ),
    expected=lambda world, brand: Updated(
        "shop_products",
        {"brand": brand, "enabled": 1},
        {"enabled": 0},
        world.value("SELECT COUNT(*) FROM shop_products WHERE brand = ? AND enabled", brand),
    ),
    solution=[
        do(steps.open_from_menu, "Catalog", "Products"),
        do(steps.filter_grid, {"Brand": "{brand}"}),
        do(steps.apply_to_rows, "Disable", [SELECT_ALL]),
    ],
)

_NAMES = ("Harbour", "Meadow", "Juniper", "Copper", "Lantern", "Pebble", "Thicket", "Aurora")


def _add_product_instances(world: World, rng: Random) -> Iterator[Params]:
    query = """SELECT k.name AS category, p.brand FROM shop_products p JOIN shop_categories k ON k.id = p.category
        GROUP BY k.id ORDER BY k.id"""
    for category, brand in queries.sample_some(map(tuple, world.rows(query)), rng, 40):
        thing = category.partition(" & ")[0].removesuffix("s")
        yield {
            "product": f"{brand} {rng.choice(_NAMES)} {thing}",
            "sku": f"NW-{rng.randint(1000, 9999)}",
            "category": category,
            "brand": brand,
            "price": f"{rng.randint(8, 120)}.{rng.choice(('00', '50', '90', '95'))}",
            "stock": rng.randint(5, 150),
        }


def _product_added(world: World, product: str, sku: str, category: str, brand: str, price: str, stock: int) -> Added:
    query = "SELECT id FROM shop_categories WHERE name = ? AND parent IS NOT NULL"
    values = {"name": product, "sku": sku, "brand": brand, "stock": stock}
    values |= {"category": world.value(query, category), "price": queries.cents(price)}
    return Added("shop_products", {**values, "enabled": 1, "special_price": None})


_PRODUCT_FORM = {
    "Product Name": "{product}",
    "SKU": "{sku}",
    "Price": "{price}",
    "Quantity": "{stock}",
    "Brand": "{brand}",
}

add_product = AdminTemplate(
    "cms-add-product",
    "change",
    "hard",
    intents=(
        'Add a new product "{product}" with the SKU {sku} to the category "{category}": brand {brand}, price ${price}, '
        "{stock} units in stock, enabled.",
        'Create a product called "{product}" (SKU {sku}, brand {brand}) in "{category}". Its price is ${price}, and we '
        "have {stock} of them. It is to be enabled.",
        'Enter a new product: name "{product}", SKU {sku}, brand {brand}, category "{category}", price ${price}, '
        "quantity {stock}. Enable it.",
    ),
    instances=_add_product_instances,
    expected=_product_added,
    solution=[
        do(steps.open_from_menu, "Catalog", "Products"),
        click("link", "Add Product"),
        do(steps.fill_in, _PRODUCT_FORM),
        choose_option("Category", "{category}"),
        click("button", "Save"),
    ],
)

supplier_phone = AdminTemplate(
    "cms-supplier",
    "information",
    "easy",
    intents=(
        "What is the telephone number of the supplier of {product}?",
        "Which phone number does our supplier of {product} have?",
        "I want to call whoever supplies us with {product}. What is their number?",
    ),
    instances=rows("SELECT name AS product FROM shop_products ORDER BY id", sample=ENOUGH),
    expected=NotAchievable,
    solution=[
        do(steps.open_product, "{product}"),
        answer(lambda page: "See above" if any("upplier" in text for text in page.texts()) else NOT_ACHIEVABLE),
    ],
    mistake=[
        do(steps.open_from_menu, "Stores", "Settings"),
        answer(lambda page: steps.field_value(page, "Store Phone Number")),
    ],
)


def _product_material_instances(world: World, rng: Random) -> list[Params]:
    """Products of different materials."""
    query = """SELECT p.name, a.value FROM shop_attributes a JOIN shop_products p ON p.id = a.product
        WHERE a.name = 'Material' ORDER BY p.id"""
    rows = queries.sample_some(world.rows(query), rng, 200)
    chosen = [(row["value"], {"product": row["name"]}) for row in rows if row["value"] not in row["name"]]
    return queries.one_per_answer(chosen)


def _product_material_expected(world: World, product: str) -> Says:
    query = """SELECT a.value FROM shop_attributes a JOIN shop_products p ON p.id = a.product
        WHERE a.name = 'Material' AND p.name = ?"""
    material = world.value(query, product)
    others = world.rows("SELECT DISTINCT value FROM shop_attributes WHERE name = 'Material' ORDER BY value")
    return says(material, others=[row[0] for row in others if row[0] not in f"{material} {product}"])


product_material = AdminTemplate(
    "cms-material",
    "information",
    "easy",
    intents=(
        "Which material is entered for {product}?",
        "What is {product} made of, by its attribute Material?",
        "Look up the material of {product} in the catalog.",
    ),
    instances=_product_material_instances,
    expected=_product_material_expected,
    solution=[do(steps.open_product, "{product}"), answer(lambda page: steps.field_value(page, "Material"))],
)

_COLOURS = ("Amber", "Mint", "Lilac", "Turquoise", "Plum", "Silver", "Lemon", "Scarlet")


def _add_options_instances(world: World, rng: Random) -> Iterator[Params]:
    """Products with a colour option that lacks these two."""
    query = """SELECT p.name, group_concat(o.value) AS colours FROM shop_options o
        JOIN shop_products p ON p.id = o.product WHERE o.name = 'Colour' GROUP BY p.id ORDER BY p.id"""
    for row in queries.sample_some(world.rows(query), rng):
        one, other = rng.sample([colour for colour in _COLOURS if colour not in row["colours"]], 2)
        yield {"product": row["name"], "one": one, "other": other}


def _options_added(world: World, product: str, one: str, other: str) -> list[Expected]:
    number = queries.product_value(world, "id", product)
    rows = [{"product": number, "name": "Colour", "value": value, "extra": 0} for value in (one, other)]
    return [Added("shop_options", row) for row in rows]


def _add_colour(page: PageReader, colour: str) -> Iterator[str]:
    yield from steps.fill_in(page, {"Option": "Colour", "Option Value": colour})
    yield page.click("button", "Add Option")


add_options = AdminTemplate(
    "cms-add-options",
    "change",
    "hard",
    intents=(
        "Offer {product} in two more colours: add {one} and {other} as values of its option Colour, at no extra price.",
        'Add two values to the option "Colour" of {product}: {one} and {other}, both without an extra price.',
        "Customers must be able to choose {product} in the colours {one} and {other}, too, for the same price. Add "
        "these values of the option Colour.",
    ),
    instances=_add_options_instances,
    expected=_options_added,
    solution=[do(steps.open_product, "{product}"), do(_add_colour, "{one}"), do(_add_colour, "{other}")],
)


def _set_two_prices_instances(world: World, rng: Random) -> Iterator[Params]:
    chosen = queries.sample_some(world.rows(_REGULARLY_PRICED), rng, 80)
    for row, other in zip(chosen[::2], chosen[1::2], strict=True):
        price, second = (queries.dollars(one["price"] + 100 * rng.randint(1, 6) + 7) for one in (row, other))
        yield {"product": row["name"], "price": price, "other": other["name"], "second": second}


def _price_updated(product: str, price: str) -> Updated:
    return Updated("shop_products", {"name": product}, {"price": queries.cents(price)})


def _set_price(page: PageReader, product: str, price: str) -> Iterator[str]:
    yield from steps.open_product(page, product)
    yield from set_price_here(page, price)


def set_price_here(page: PageReader, price: str) -> Iterator[str]:
    """Change the price of the product on the page."""
    yield page.type("Price", price)
    yield page.click("button", "Save")


set_two_prices = AdminTemplate(
    "cms-set-two-prices",
    "change",
    "hard",
    intents=(
        "Set the price of {product} to ${price}, and that of {other} to ${second}.",
        "Change two prices: {product} costs ${price} from now on, and {other} ${second}.",
        "{product} is to cost ${price}, and {other} is to cost ${second}. Change both regular prices.",
    ),
    instances=_set_two_prices_instances,
    expected=lambda product, price, other, second: [_price_updated(product, price), _price_updated(other, second)],
    solution=[do(_set_price, "{product}", "{price}"), do(_set_price, "{other}", "{second}")],
    mistake=[do(_set_price, "{product}", "{price}")],
)
