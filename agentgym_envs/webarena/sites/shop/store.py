"""Values that all pages of the shop need, and queries that several pages share."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound
from agentgym_envs.webarena.sites.shop.searching import FOUND

_IN_FOOT = "about-us", "customer-service", "shipping", "returns", "privacy"
_SHOWN = "r.product = p.id AND r.status = 'approved'"
RATED = f"""
    (SELECT COUNT(*) FROM shop_reviews r WHERE {_SHOWN}) AS reviews,
    COALESCE((SELECT ROUND(AVG(r.rating), 1) FROM shop_reviews r WHERE {_SHOWN}), 0) AS rating
"""
"""Columns with the reviews of a product `p`."""
CARD = f"""
    p.id, p.sku, p.name, p.slug, p.brand, p.price, p.special_price, p.stock, p.summary, c.slug AS shelf,
    COALESCE(p.special_price, p.price) AS final, {RATED},
    EXISTS (SELECT 1 FROM shop_options o WHERE o.product = p.id) AS has_options
"""
"""Columns of a product `p` in a category `c` that product lists show."""
PRODUCTS = "shop_products p JOIN shop_categories c ON c.id = p.category"


def settings(context: RequestContext) -> dict[str, str]:
    """Return the settings of the shop by name."""
    return {row["name"]: row["value"] for row in context.rows("SELECT name, value FROM shop_settings")}


def layout(context: RequestContext) -> Mapping[str, Any]:
    """Return the values for the layout of every page."""
    customer = context.row("SELECT * FROM shop_customers WHERE id = ?", context.account)
    count = context.value(
        "SELECT SUM(l.quantity) FROM shop_cart_lines l JOIN shop_carts t ON t.id = l.cart WHERE t.customer = ?",
        context.account,
    )
    pages = context.rows(
        "SELECT url_key, title FROM shop_pages WHERE enabled = 1 AND url_key <> 'no-route' ORDER BY id"
    )
    compared = context.value("SELECT COUNT(*) FROM shop_compares WHERE customer = ?", context.account)
    return {
        "store": settings(context),
        "menu": menu(context),
        "in_foot": [row for row in pages if row["url_key"] in _IN_FOOT],
        "other_pages": [row for row in pages if row["url_key"] not in _IN_FOOT],
        "customer": customer,
        "cart_count": count or 0,
        "compared": compared,
    }


def menu(context: RequestContext) -> list[tuple[sqlite3.Row, list[sqlite3.Row]]]:
    """Return the departments with their shelves."""
    rows = context.rows("SELECT * FROM shop_categories WHERE enabled = 1 ORDER BY position, id")
    below: dict[int, list[sqlite3.Row]] = {}
    for row in rows:
        below.setdefault(row["parent"] or 0, []).append(row)
    return [(row, below.get(row["id"], [])) for row in below.get(0, [])]


def cards(context: RequestContext, where: str, *arguments: Any) -> list[sqlite3.Row]:
    """Return visible products with the columns of product lists. `where` may end with ORDER BY and LIMIT."""
    return context.rows(f"SELECT {CARD} FROM {PRODUCTS} WHERE {FOUND} AND {where}", *arguments)


def shown_product(context: RequestContext, number: int) -> sqlite3.Row:
    """Return the product that a form names. Raises NotFound if the shop does not show it."""
    rows = cards(context, "p.id = ?", number)
    if not rows:
        raise NotFound("This product is no longer sold here.")
    return rows[0]


def customer_of(context: RequestContext) -> sqlite3.Row:
    """Return the signed-in customer. Raises LoginRequired."""
    return context.one("SELECT * FROM shop_customers WHERE id = ?", context.require_login())


def options_of(context: RequestContext, product: int) -> dict[str, list[sqlite3.Row]]:
    """Return the option values of a product by option name."""
    options: dict[str, list[sqlite3.Row]] = {}
    for row in context.rows("SELECT * FROM shop_options WHERE product = ? ORDER BY id", product):
        options.setdefault(row["name"], []).append(row)
    return {name: sorted(rows, key=lambda row: (row["position"], row["id"])) for name, rows in options.items()}


def account(database: sqlite3.Connection, name: str) -> int:
    """Return the id of the customer with this e-mail address, or with this name before "@mail.test"; 0 if not found."""
    query = "SELECT id FROM shop_customers WHERE lower(email) IN (lower(?), lower(?) || '@mail.test')"
    row = database.execute(query, (name, name)).fetchone()
    return int(row[0]) if row else 0


def shop_paging(context: RequestContext, setting: str, count: int, size: int, sizes: Sequence[int]) -> Paging:
    """Return the page of a list. A large shop has a setting for its size, and lets the user choose one of `sizes`."""
    default = context.value("SELECT value FROM shop_settings WHERE name = ?", setting)
    return Paging.of(context.query, count, int(default or size), sizes if default else ())
