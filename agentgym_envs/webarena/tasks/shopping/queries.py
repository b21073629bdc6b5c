"""Database queries for tasks in the shop: carts, orders, prices, and the changes that tasks require."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Removed, Updated
from agentgym_envs.webarena.sites.clock import TODAY
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.shop.money import discount_of
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.template import Params, Template

ME = 1
"""The id of the agent's customer account."""
SOLD = "COALESCE(p.special_price, p.price)"
"""SQL: the current price of a product `p`."""
PLAIN = "NOT EXISTS (SELECT 1 FROM shop_options o WHERE o.product = p.id)"
"""SQL: a product `p` has no options."""
CART = f"(SELECT id FROM shop_carts WHERE customer = {ME})"
ADDABLE = f"p.enabled AND p.stock > 5 AND p.id NOT IN (SELECT product FROM shop_cart_lines WHERE cart = {CART})"
"""SQL: a product `p` is available, and not in the cart yet."""
ADDABLE_PRODUCTS = f"SELECT name AS product FROM shop_products p WHERE {ADDABLE} AND {PLAIN} ORDER BY id"
"""SQL: the products without options that are not in the cart."""
_HAS_FEATURE = (
    "(EXISTS (SELECT 1 FROM shop_attributes f WHERE f.product = p.id AND f.name = ?2 AND f.value = ?3) OR EXISTS "
    "(SELECT 1 FROM shop_options f WHERE f.product = p.id AND f.name = ?2 AND f.value = ?3) OR "
    "(?2 = 'Brand' AND p.brand = ?3))"
)
ShopTemplate = partial(Template, "shopping", ("shop",))
"""A task in the shop."""
_FEATURES = (
    "(SELECT product, name, value FROM shop_attributes UNION SELECT product, name, value FROM shop_options "
    "UNION SELECT id, 'Brand', brand FROM shop_products)"
)


def product_id(world: World, name: str) -> int:
    """Return the id of a product."""
    found: int = world.value("SELECT id FROM shop_products WHERE name = ?", name)
    return found


def product_url(world: World, product: str) -> str:
    """Return the URL of a product."""
    return f"{ORIGINS['shop']}/product/{world.value('SELECT slug FROM shop_products WHERE name = ?', product)}"


def order_url(number: str) -> str:
    """Return the URL of one of the customer's orders."""
    return f"{ORIGINS['shop']}/account/orders/{number}"


def categories(world: World) -> list[dict[str, Any]]:
    """Return all categories of the second level, each with its department."""
    query = (
        "SELECT d.name AS department, c.name AS category FROM shop_categories c JOIN shop_categories d "
        "ON d.id = c.parent WHERE c.enabled AND d.enabled ORDER BY c.id"
    )
    return [dict(row) for row in world.rows(query)]


def category_url(world: World, category: str) -> str:
    """Return the URL of a category."""
    slug = world.value("SELECT slug FROM shop_categories WHERE name = ? AND parent IS NOT NULL", category)
    return f"{ORIGINS['shop']}/category/{slug}"


def by_price(world: World, category: str) -> list[str]:
    """Return the names of a category's products, the cheapest first; prices are unique."""
    query = (
        "SELECT p.name FROM shop_products p JOIN shop_categories c ON c.id = p.category "
        f"WHERE p.enabled AND c.name = ? ORDER BY {SOLD}"
    )
    return [row["name"] for row in world.rows(query, category)]


def brands(world: World) -> dict[str, list[tuple[int, str]]]:
    """Return the products of each brand as (price, slug), the cheapest first."""
    found: dict[str, list[tuple[int, str]]] = {}
    for row in world.rows(f"SELECT p.brand, {SOLD} AS sold, p.slug FROM shop_products p WHERE p.enabled ORDER BY 2, 3"):
        found.setdefault(row["brand"], []).append((row["sold"], row["slug"]))
    return found


def filters(world: World) -> list[dict[str, Any]]:
    """Return the filters that some products of a category pass, but not all."""
    query = (
        "SELECT d.name AS department, c.name AS category, f.name AS attribute, f.value FROM shop_categories c "
        "JOIN shop_categories d ON d.id = c.parent JOIN shop_products p ON p.category = c.id AND p.enabled "
        f"JOIN {_FEATURES} f ON f.product = p.id GROUP BY c.id, f.name, f.value "
        "HAVING COUNT(*) BETWEEN 2 AND "
        "(SELECT COUNT(*) - 1 FROM shop_products o WHERE o.category = c.id AND o.enabled) "
        "ORDER BY c.id, f.name, f.value"
    )
    return [dict(row) for row in world.rows(query)]


def count_filtered(world: World, params: Mapping[str, Any]) -> int:
    """Count the products of a category with an attribute."""
    return len(_filtered(world, params))


def cheapest_filtered(world: World, params: Mapping[str, Any]) -> int:
    """Return the id of a category's cheapest product with an attribute."""
    return _filtered(world, params)[0]


def _filtered(world: World, params: Mapping[str, Any]) -> list[int]:
    query = (
        "SELECT p.id FROM shop_products p JOIN shop_categories c ON c.id = p.category AND c.name = ?1 "
        f"WHERE p.enabled AND {_HAS_FEATURE} ORDER BY {SOLD}"
    )
    return [row["id"] for row in world.rows(query, params["category"], params["attribute"], params["value"])]


def shown_status(stored: str) -> str:
    """Return an order's status as pages write it."""
    return stored.capitalize()


def orders(world: World, time: str = "") -> list[sqlite3.Row]:
    """Return the customer's orders, newest first, or those of a year or month."""
    rows = world.rows("SELECT * FROM shop_orders WHERE customer = ? ORDER BY moment DESC", ME)
    return [row for row in rows if time in ("", row["moment"][:4], month(row["moment"]))]


def order_periods(world: World) -> list[str]:
    """Return the years and months with orders by the customer."""
    moments = [row["moment"] for row in orders(world)]
    return list(dict.fromkeys([*(moment[:4] for moment in moments), *map(month, moments)]))


def month(moment: str) -> str:
    """Return the month of a stored time: "March 2026"."""
    return f"{datetime.datetime.fromisoformat(moment):%B %Y}"


def order_lines(world: World, number: str) -> list[dict[str, Any]]:
    """Return the lines of an order, with the current stock and price of each product."""
    query = (
        f"SELECT l.product, l.name, l.options, l.quantity, p.stock, p.enabled, {SOLD} AS sold FROM shop_order_lines l "
        "JOIN shop_orders o ON o.id = l.order_id JOIN shop_products p ON p.id = l.product WHERE o.number = ?"
    )
    return [_priced(world, row) for row in world.rows(query, number)]


def order_lines_paid(world: World, order: sqlite3.Row) -> list[sqlite3.Row]:
    """Return the names of an order's products with what was paid for each in `cents`; none if it was canceled."""
    query = "SELECT name, price * quantity AS cents FROM shop_order_lines WHERE order_id = ? ORDER BY id"
    return [] if order["status"] == "canceled" else world.rows(query, order["id"])


def options(text: str) -> dict[str, str]:
    """Return chosen options ("Colour: Blue, Size: M") by their names in lower case."""
    pairs = (part.partition(": ") for part in text.split(", "))
    return {name.lower(): value for name, _, value in pairs}


def some_options(world: World, rng: random.Random, product: str) -> str:
    """Choose a random value for each option of a product: "Colour: Blue, Size: M"."""
    rows = world.rows("SELECT name, value FROM shop_options WHERE product = ? ORDER BY id", product_id(world, product))
    names = dict.fromkeys(row["name"] for row in rows)
    picks = {name: rng.choice([row["value"] for row in rows if row["name"] == name]) for name in names}
    return ", ".join(f"{name}: {value}" for name, value in picks.items())


def subtotal(world: World) -> int:
    """Return the subtotal of the cart at the start."""
    return sum(line["price"] * line["quantity"] for line in cart_lines(world))


def in_cart(world: World, product: str, options: str = "", quantity: int = 1) -> Added:
    """Return the new cart line for a quantity of a product."""
    values = {"product": product_id(world, product), "options": options, "quantity": quantity}
    return Added("shop_cart_lines", {"cart": world.value(f"SELECT {CART}"), **values})


def cart_lines(world: World) -> list[dict[str, Any]]:
    """Return the lines of the customer's cart with their unit prices."""
    rows = world.rows(
        f"SELECT l.product, l.options, l.quantity, p.name, p.stock, {SOLD} AS sold FROM shop_cart_lines l "
        f"JOIN shop_products p ON p.id = l.product WHERE l.cart = {CART} ORDER BY l.id"
    )
    return [_priced(world, row) for row in rows]


def _priced(world: World, line: sqlite3.Row) -> dict[str, Any]:
    """Return a line with its unit price, which includes the surcharges of the chosen options."""
    rows = world.rows("SELECT name, value, extra FROM shop_options WHERE product = ?", line["product"])
    chosen = options(line["options"])
    extra = sum(int(row["extra"]) for row in rows if chosen.get(row["name"].lower()) == row["value"])
    return {**dict(line), "price": line["sold"] + extra}


def uncompared_pairs(world: World) -> list[dict[str, str]]:
    """Return pairs of products of a category that are not on the comparison list."""
    rows = world.rows(
        "SELECT name, category FROM shop_products WHERE enabled AND id NOT IN (SELECT product FROM shop_compares) "
        "ORDER BY category, id"
    )
    pairs = ((a, b) for a, b in pairwise(rows) if a["category"] == b["category"])
    return [{"one": a["name"], "other": b["name"]} for a, b in pairs]


def compared(world: World, *products: str) -> list[Added]:
    """Return the new rows of these products in the comparison list."""
    return [Added("shop_compares", {"customer": ME, "product": product_id(world, name)}) for name in products]


def rules(world: World, subtotal: int) -> list[dict[str, Any]]:
    """Return the price rules that give a discount on a cart of this subtotal today, with or without a coupon."""
    rows = world.rows(
        "SELECT * FROM shop_rules WHERE active AND customer_group IN ('', (SELECT customer_group FROM shop_customers "
        "WHERE id = ?)) AND COALESCE(starts, '') <= ? AND COALESCE(ends, '9999') >= ? ORDER BY id",
        ME,
        TODAY.isoformat(),
        TODAY.isoformat(),
    )
    return [row for row in map(dict, rows) if discount_of(row, subtotal)]


def discount(world: World, subtotal: int, coupon: str = "") -> int:
    """Return the sum of all discounts, with or without a coupon."""
    return sum(discount_of(row, subtotal) for row in rules(world, subtotal) if row["coupon"] in ("", coupon))


def order_changes(world: World, lines: Sequence[Any], params: Params, new: int = 0) -> Iterator[Expected]:
    """Yield the changes that an order of these lines makes.

    The last `new` lines were not in the cart at the start of the episode.
    """
    subtotal = sum(line["price"] * line["quantity"] for line in lines)
    values = {"customer": ME, "status": "pending", "coupon": "", "discount": discount(world, subtotal)}
    values |= {"shipping_method": params["shipping"], "payment_method": params["payment"]}
    yield Added("shop_orders", {**values, "subtotal": subtotal})
    for rule in rules(world, subtotal):
        if not rule["coupon"]:
            yield Updated("shop_rules", {"id": rule["id"]}, {"used": rule["used"] + 1})
    address = "SELECT name, street, town, region, zip, phone FROM shop_addresses a WHERE customer = ? AND"
    billing = world.rows(f"{address} id = (SELECT address FROM shop_customers c WHERE c.id = a.customer)", ME)
    shipping = world.rows(f"{address} street = ?", ME, params["street"])
    yield Added("shop_order_addresses", {**dict(shipping[0]), "kind": "shipping"})
    yield Added("shop_order_addresses", {**dict(billing[0]), "kind": "billing"})
    for number, line in enumerate(lines, 1):
        wanted = {name: line[name] for name in ("product", "options", "price", "quantity")}
        yield Added("shop_order_lines", wanted)
        stock = world.value("SELECT stock FROM shop_products WHERE id = ?", line["product"])
        yield Updated("shop_products", {"id": line["product"]}, {"stock": stock - line["quantity"]})
        if number <= len(lines) - new:
            yield Removed("shop_cart_lines", {"product": line["product"], "options": line["options"]})


def review_added(product: int, params: Params) -> Added:
    """Return the new review of a product by the customer."""
    values = {
        "nickname": params["nickname"],
        "rating": params["stars"],
        "title": params["title"],
        "text": params["text"],
    }
    return Added("shop_reviews", {"product": product, "customer": ME, **values})
