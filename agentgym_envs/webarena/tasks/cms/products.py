"""Questions about products, and changes to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable, says
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, AdminTemplate, cents, dollars, one_per_answer, sample_some
from agentgym_envs.webarena.tasks.cms.steps import (
    SELECT_ALL,
    apply_to_rows,
    field_value,
    fill_in,
    filter_grid,
    open_from_menu,
    open_product,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_REGULARLY_PRICED = "SELECT * FROM shop_products WHERE enabled AND special_price IS NULL ORDER BY id"


class StockLeft(AdminTemplate):
    """Name the stock of a product."""

    name, kind, difficulty = "cms-stock-left", "information", "easy"
    intents = (
        "How many units of {product} are left in stock?",
        "What quantity of {product} do we have in stock?",
        "Check the stock of {product}: how many pieces are there?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products with different stock."""
        rows = sample_some(world.rows("SELECT name, stock FROM shop_products ORDER BY id"), rng, 200)
        return sample_some(one_per_answer((row["stock"], {"product": row["name"]}) for row in rows), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(world.value("SELECT stock FROM shop_products WHERE name = ?", params["product"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        yield page.stop(field_value(page, "Quantity"))


class LowStock(AdminTemplate):
    """Name the products of a category with low stock."""

    name, kind, difficulty = "cms-low-stock", "information", "medium"
    intents = (
        'Which products in the category "{category}" have at most {most} units in stock? Name all of them.',
        'List the names of all products of the category "{category}" of which there are {most} or fewer left.',
        'In "{category}", which products should we reorder because no more than {most} units are in stock?',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Categories in which two to four products are at or below a stock level."""
        names = world.rows("SELECT id, name FROM shop_categories WHERE parent IS NOT NULL ORDER BY id")
        for row in names:
            query = "SELECT stock FROM shop_products WHERE category = ? ORDER BY stock"
            stocks = [one[0] for one in world.rows(query, row["id"])]
            count = rng.choice((2, 2, 3))
            if len(stocks) > count and stocks[count] - stocks[count - 1] > 1:
                yield {"category": row["name"], "most": stocks[count - 1] + (stocks[count] - stocks[count - 1]) // 2}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT p.name, p.stock FROM shop_products p JOIN shop_categories k ON k.id = p.category
            WHERE k.name = ? AND k.parent IS NOT NULL ORDER BY p.id"""
        rows = world.rows(query, params["category"])
        low = [row["name"] for row in rows if row["stock"] <= params["most"]]
        return [says(*low, others=[row["name"] for row in rows if row["name"] not in low])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Catalog", "Products")
        yield from filter_grid(page, {"Quantity to": params["most"]}, Category=params["category"])
        yield page.stop("; ".join(row["Name"] for row in page.table()))


class ProductMargin(AdminTemplate):
    """Name the difference between the price and the cost of a product."""

    name, kind, difficulty = "cms-margin", "information", "easy"
    intents = (
        "What is the difference between the price and the cost of {product}?",
        "How much do we earn on one {product}, that is, its price less its cost?",
        "Compute the margin in dollars (price minus cost) of the product with the name {product}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products without a special price."""
        chosen = sample_some(world.rows(_REGULARLY_PRICED), rng)
        return one_per_answer((row["price"] - row["cost"], {"product": row["name"]}) for row in chosen)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(money(world.value("SELECT price - cost FROM shop_products WHERE name = ?", params["product"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        price, cost = (cents(field_value(page, label)) for label in ("Price", "Cost"))
        yield page.stop(money(price - cost))


class OpenProduct(AdminTemplate):
    """Open a product for editing."""

    name, kind, difficulty = "cms-open-product", "navigation", "easy"
    intents = (
        "Open the page to edit the product with the SKU {sku}.",
        "Show me the edit page of the product whose SKU is {sku}.",
        "Go to where I can change the product {sku} (that is its SKU).",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return sample_some(map(dict, world.rows("SELECT sku FROM shop_products ORDER BY id")), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{ADMIN}/products/{world.value('SELECT id FROM shop_products WHERE sku = ?', params['sku'])}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.type("Search", params["sku"], enter=True)
        yield page.click("link", re.compile(".+"), after="Products")
        yield page.stop()


class SetPrice(AdminTemplate):
    """Set a product's price."""

    name, kind, difficulty = "cms-set-price", "change", "medium"
    intents = (
        "Set the price of {product} to ${price}.",
        "From now on, {product} costs ${price}. Change its price.",
        "Change the regular price of {product} to ${price}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for row in sample_some(world.rows(_REGULARLY_PRICED), rng):
            price = row["price"] // 100 * 100 + rng.choice((-200, -100, 100, 200, 300, 500)) + 45
            if price > 200 and price != row["price"]:
                yield {"product": row["name"], "price": dollars(price)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Updated("shop_products", {"name": params["product"]}, {"price": cents(params["price"])}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        yield page.type("Price", params["price"])
        yield page.click("button", "Save")
        yield page.stop()


class ReducePrice(AdminTemplate):
    """Reduce a product's price by a percentage."""

    name, kind, difficulty = "cms-cut-price", "change", "medium"
    intents = (
        "Reduce the price of {product} by {percent}%.",
        "Make {product} {percent}% cheaper by changing its regular price.",
        "{product} sells badly. Lower its price by {percent} percent.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Percentages that give a new price in whole cents."""
        for row in sample_some(world.rows(_REGULARLY_PRICED), rng, 200):
            parts = [percent for percent in (5, 10, 15, 20, 25, 30, 40, 50) if row["price"] * percent % 100 == 0]
            if parts:
                yield {"product": row["name"], "percent": rng.choice(parts)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        price = world.value("SELECT price FROM shop_products WHERE name = ?", params["product"])
        new = price * (100 - params["percent"]) // 100
        return [changed(Updated("shop_products", {"name": params["product"]}, {"price": new}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        price = cents(field_value(page, "Price"))
        yield page.type("Price", dollars(price * (100 - params["percent"]) // 100))
        yield page.click("button", "Save")
        yield page.stop()


class EndSale(AdminTemplate):
    """Remove a product's special price."""

    name, kind, difficulty = "cms-end-sale", "change", "medium"
    intents = (
        "End the sale of {product}: it must have no special price any more.",
        "Remove the special price of {product}.",
        "{product} is to be sold at its regular price again. Clear its special price.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT name AS product FROM shop_products WHERE special_price IS NOT NULL ORDER BY id"
        return sample_some(map(dict, world.rows(query)), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Updated("shop_products", {"name": params["product"]}, {"special_price": None}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        yield page.type("Special Price", "")
        yield page.click("button", "Save")
        yield page.stop()


class TakeDelivery(AdminTemplate):
    """Add a delivery to a product's stock."""

    name, kind, difficulty = "cms-take-delivery", "change", "medium"
    intents = (
        "{count} more units of {product} have arrived. Add them to its quantity in stock.",
        "We got a delivery of {count} pieces of {product}. Increase its stock by that many.",
        "Raise the stock of {product} by {count}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows("SELECT name FROM shop_products WHERE stock < 60 ORDER BY id")
        return [
            {"product": row["name"], "count": rng.choice((12, 24, 30, 36, 48, 60, 75))}
            for row in sample_some(rows, rng)
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        stock = world.value("SELECT stock FROM shop_products WHERE name = ?", params["product"])
        return [changed(Updated("shop_products", {"name": params["product"]}, {"stock": stock + params["count"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        stock = int(field_value(page, "Quantity"))
        yield page.type("Quantity", str(stock + params["count"]))
        yield page.click("button", "Save")
        yield page.stop()


class DisableBrand(AdminTemplate):
    """Disable all products of a brand."""

    name, kind, difficulty = "cms-disable-brand", "change", "medium"
    intents = (
        "We no longer work with {brand}. Disable all of its products.",
        "Disable every product of the brand {brand}.",
        "Take all {brand} products off the shop by disabling them.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Brands whose products fit on one page of the grid."""
        query = """SELECT brand FROM shop_products GROUP BY brand
            HAVING COUNT(*) BETWEEN 2 AND 10 AND SUM(enabled) > 1 ORDER BY brand"""
        return list(map(dict, world.rows(query)))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        count = world.value("SELECT COUNT(*) FROM shop_products WHERE brand = ? AND enabled", params["brand"])
        where = {"brand": params["brand"], "enabled": 1}
        return [changed(Updated("shop_products", where, {"enabled": 0}, count))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Catalog", "Products")
        yield from filter_grid(page, {"Brand": params["brand"]})
        yield from apply_to_rows(page, "Disable", [SELECT_ALL])
        yield page.stop()


class AddProduct(AdminTemplate):
    """Create a product."""

    name, kind, difficulty = "cms-add-product", "change", "hard"
    intents = (
        'Add a new product "{product}" with the SKU {sku} to the category "{category}": brand {brand}, price ${price}, '
        "{stock} units in stock, enabled.",
        'Create a product called "{product}" (SKU {sku}, brand {brand}) in "{category}". Its price is ${price}, and we '
        "have {stock} of them. It is to be enabled.",
        'Enter a new product: name "{product}", SKU {sku}, brand {brand}, category "{category}", price ${price}, '
        "quantity {stock}. Enable it.",
    )
    _NAMES = ("Harbour", "Meadow", "Juniper", "Copper", "Lantern", "Pebble", "Thicket", "Aurora")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = """SELECT k.name AS category, p.brand FROM shop_products p JOIN shop_categories k ON k.id = p.category
            GROUP BY k.id ORDER BY k.id"""
        for category, brand in sample_some(map(tuple, world.rows(query)), rng, 40):
            thing = category.partition(" & ")[0].removesuffix("s")
            yield {
                "product": f"{brand} {rng.choice(self._NAMES)} {thing}",
                "sku": f"NW-{rng.randint(1000, 9999)}",
                "category": category,
                "brand": brand,
                "price": f"{rng.randint(8, 120)}.{rng.choice(('00', '50', '90', '95'))}",
                "stock": rng.randint(5, 150),
            }

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT id FROM shop_categories WHERE name = ? AND parent IS NOT NULL"
        values = {"name": params["product"], "sku": params["sku"], "brand": params["brand"], "stock": params["stock"]}
        values |= {"category": world.value(query, params["category"]), "price": cents(params["price"])}
        return [changed(Added("shop_products", {**values, "enabled": 1, "special_price": None}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Catalog", "Products")
        yield page.click("link", "Add Product")
        labels = {"Product Name": "product", "SKU": "sku", "Price": "price", "Quantity": "stock", "Brand": "brand"}
        yield from fill_in(page, {label: params[key] for label, key in labels.items()})
        yield page.choose("Category", params["category"])
        yield page.click("button", "Save")
        yield page.stop()


class SupplierPhone(AdminTemplate):
    """Name a supplier's phone number, which is not recorded."""

    name, kind, difficulty = "cms-supplier", "information", "easy"
    intents = (
        "What is the telephone number of the supplier of {product}?",
        "Which phone number does our supplier of {product} have?",
        "I want to call whoever supplies us with {product}. What is their number?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return sample_some(map(dict, world.rows("SELECT name AS product FROM shop_products ORDER BY id")), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        yield page.stop("See above") if any("upplier" in text for text in page.texts()) else page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the shop's own number."""
        yield from open_from_menu(page, "Stores", "Settings")
        yield page.stop(field_value(page, "Store Phone Number"))


class ProductMaterial(AdminTemplate):
    """Name the material of a product."""

    name, kind, difficulty = "cms-material", "information", "easy"
    intents = (
        "Which material is entered for {product}?",
        "What is {product} made of, by its attribute Material?",
        "Look up the material of {product} in the catalog.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products of different materials."""
        query = """SELECT p.name, a.value FROM shop_attributes a JOIN shop_products p ON p.id = a.product
            WHERE a.name = 'Material' ORDER BY p.id"""
        rows = sample_some(world.rows(query), rng, 200)
        chosen = [(row["value"], {"product": row["name"]}) for row in rows if row["value"] not in row["name"]]
        return one_per_answer(chosen)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT a.value FROM shop_attributes a JOIN shop_products p ON p.id = a.product
            WHERE a.name = 'Material' AND p.name = ?"""
        material = world.value(query, params["product"])
        others = world.rows("SELECT DISTINCT value FROM shop_attributes WHERE name = 'Material' ORDER BY value")
        return [says(material, others=[row[0] for row in others if row[0] not in f"{material} {params['product']}"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        yield page.stop(field_value(page, "Material"))


class AddOptions(AdminTemplate):
    """Add two colours to a product."""

    name, kind, difficulty = "cms-add-options", "change", "hard"
    intents = (
        "Offer {product} in two more colours: add {one} and {other} as values of its option Colour, at no extra price.",
        'Add two values to the option "Colour" of {product}: {one} and {other}, both without an extra price.',
        "Customers must be able to choose {product} in the colours {one} and {other}, too, for the same price. Add "
        "these values of the option Colour.",
    )
    _COLOURS = ("Amber", "Mint", "Lilac", "Turquoise", "Plum", "Silver", "Lemon", "Scarlet")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products with a colour option that lacks these two."""
        query = """SELECT p.name, group_concat(o.value) AS colours FROM shop_options o
            JOIN shop_products p ON p.id = o.product WHERE o.name = 'Colour' GROUP BY p.id ORDER BY p.id"""
        for row in sample_some(world.rows(query), rng):
            one, other = rng.sample([colour for colour in self._COLOURS if colour not in row["colours"]], 2)
            yield {"product": row["name"], "one": one, "other": other}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """Two new rows, in any order."""
        product = world.value("SELECT id FROM shop_products WHERE name = ?", params["product"])
        rows = [{"product": product, "name": "Colour", "value": params[key], "extra": 0} for key in ("one", "other")]
        return [changed(*(Added("shop_options", row) for row in rows))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_product(page, params["product"])
        for key in ("one", "other"):
            yield from fill_in(page, {"Option": "Colour", "Option Value": params[key]})
            yield page.click("button", "Add Option")
        yield page.stop()


class SetTwoPrices(AdminTemplate):
    """Set the prices of two products."""

    name, kind, difficulty = "cms-set-two-prices", "change", "hard"
    intents = (
        "Set the price of {product} to ${price}, and that of {other} to ${second}.",
        "Change two prices: {product} costs ${price} from now on, and {other} ${second}.",
        "{product} is to cost ${price}, and {other} is to cost ${second}. Change both regular prices.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        chosen = sample_some(world.rows(_REGULARLY_PRICED), rng, 80)
        for row, other in zip(chosen[::2], chosen[1::2], strict=True):
            price, second = (dollars(one["price"] + 100 * rng.randint(1, 6) + 7) for one in (row, other))
            yield {"product": row["name"], "price": price, "other": other["name"], "second": second}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        pairs = ((params["product"], params["price"]), (params["other"], params["second"]))
        return [changed(*(Updated("shop_products", {"name": name}, {"price": cents(price)}) for name, price in pairs))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        for name, price in ((params["product"], params["price"]), (params["other"], params["second"])):
            yield from open_product(page, name)
            yield page.type("Price", price)
            yield page.click("button", "Save")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Set only the first price."""
        yield from open_product(page, params["product"])
        yield page.type("Price", params["price"])
        yield page.click("button", "Save")
        yield page.stop()


TEMPLATES = (
    StockLeft(),
    LowStock(),
    ProductMargin(),
    OpenProduct(),
    SetPrice(),
    ReducePrice(),
    EndSale(),
    TakeDelivery(),
    DisableBrand(),
    AddProduct(),
    SupplierPhone(),
    ProductMaterial(),
    AddOptions(),
    SetTwoPrices(),
)
