"""Product lists with filters, sorting and pagination."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.shop.searching import FOUND
from agentgym_envs.webarena.sites.shop.store import CARD, PRODUCTS, RATED, shop_paging

SORTS = {
    "position": ("Position", "p.id"),
    "name": ("Product Name", "p.name COLLATE NOCASE"),
    "price-asc": ("Price: Low to High", "final"),
    "price-desc": ("Price: High to Low", "final DESC"),
    "rating": ("Rating: High to Low", "rating DESC, reviews DESC"),
    "newest": ("Newest First", "p.created DESC"),
}
PRICES = ((0, 10), (10, 25), (25, 50), (50, 100), (100, 200), (200, 0))
"""Price ranges in dollars; an upper limit of 0 means none."""
SIZE = 12
SIZES = (12, 24, 36, 48)
"""Numbers of products that the lists of a large shop offer."""
_FOUND = "p.id, p.brand, COALESCE(p.special_price, p.price) AS final"
_ATTRIBUTES = """(
    SELECT product, name, value FROM shop_attributes UNION ALL SELECT product, name, value FROM shop_options
)"""


class FilterChoice(NamedTuple):
    """A filter value. `query` is the query string that adds the filter, or removes it if it is active."""

    text: str
    query: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class ProductListing:
    """A page of a product list, with its filters."""

    products: list[sqlite3.Row]
    paging: Paging
    sort: str
    filters: dict[str, list[FilterChoice]] = field(default_factory=dict)
    active: list[tuple[str, FilterChoice]] = field(default_factory=list)

    @property
    def sorts(self) -> list[tuple[str, str]]:
        """Sort orders, with their labels."""
        return [(name, text) for name, (text, _) in SORTS.items()]


def listing(
    context: RequestContext, where: str, arguments: list[Any], *, sort: str = "position", attributes: bool = False
) -> ProductListing:
    """Return the products that match `where` and the filters of the query string.

    `sort` is the default order. With `attributes`, the list offers filters by attributes such as colour and material.
    """
    names = _names(context, where, arguments) if attributes else []
    conditions = _conditions(context.query, names)
    clause = " AND ".join([FOUND, f"({where})", *(text for _, _, text, _ in conditions)])
    values = [*arguments, *(value for _, _, _, some in conditions for value in some)]
    sort = context.query.choice("sort", tuple(SORTS), sort)
    rated = f", {RATED}" if sort == "rating" else ""  # it takes two queries per product
    order = f"ORDER BY {SORTS[sort][1]}, p.id"
    found = context.rows(f"SELECT {_FOUND}{rated} FROM {PRODUCTS} WHERE {clause} {order}", *values)
    paging = shop_paging(context, "products_per_page", len(found), SIZE, SIZES)
    products = _cards(context, found[paging.skipped : paging.skipped + paging.size])
    chosen = {name for name, *_ in conditions}
    filters = {name: rows for name, rows in _filters(context, found, names).items() if name not in chosen}
    active = [(name, FilterChoice(text, _changed(context.query, name, None))) for name, text, _, _ in conditions]
    return ProductListing(products, paging, sort, filters, active)


def _cards(context: RequestContext, found: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return the columns of product lists for some products, in their order."""
    rows = context.rows(f"SELECT {CARD} FROM {PRODUCTS} WHERE p.id IN ({_listed(found)})")
    by_id = {row["id"]: row for row in rows}
    return [by_id[row["id"]] for row in found]


def _listed(found: list[sqlite3.Row]) -> str:
    """Return the ids of products as a list in SQL."""
    return ", ".join(str(row["id"]) for row in found)


def _names(context: RequestContext, where: str, arguments: list[Any]) -> list[str]:
    """Return the names of the attributes of the listed products."""
    found = context.rows(f"SELECT p.id FROM {PRODUCTS} WHERE {FOUND} AND ({where})", *arguments)
    query = f"SELECT DISTINCT name FROM {_ATTRIBUTES} WHERE product IN ({_listed(found)}) ORDER BY name"
    return [row["name"] for row in context.rows(query)]


def _conditions(query: Fields, names: list[str]) -> list[tuple[str, str, str, list[Any]]]:
    """Return the filters of the query string as (name, label, condition, arguments)."""
    filters: list[tuple[str, str, str, list[Any]]] = []
    for low, high in PRICES:
        if query.text("price") == f"{low}-{high or ''}":
            limits = [100 * low, 100 * high or 10**12]
            condition = "COALESCE(p.special_price, p.price) >= ? AND COALESCE(p.special_price, p.price) < ?"
            filters.append(("Price", _price(low, high), condition, limits))
    if brand := query.text("brand", most=100):
        filters.append(("Brand", brand, "p.brand = ?", [brand]))
    for name in names:
        if value := query.text(name, most=100):
            condition = f"p.id IN (SELECT product FROM {_ATTRIBUTES} WHERE name = ? AND value = ?)"
            filters.append((name, value, condition, [name, value]))
    return filters


def _filters(context: RequestContext, found: list[sqlite3.Row], names: list[str]) -> dict[str, list[FilterChoice]]:
    """Return further filters, with the number of products that each would leave."""
    prices = sorted(row["final"] for row in found)
    counts = (bisect_left(prices, 100 * high or 10**12) - bisect_left(prices, 100 * low) for low, high in PRICES)
    filters = {
        "Price": [
            _price_choice(context.query, *band, count) for band, count in zip(PRICES, counts, strict=True) if count
        ]
    }
    brands = sorted(Counter(row["brand"] for row in found).items())
    filters["Brand"] = [
        FilterChoice(brand, _changed(context.query, "Brand", brand), count) for brand, count in brands[:30]
    ]
    if names:
        query = f"SELECT name, value, COUNT(DISTINCT product) AS n FROM {_ATTRIBUTES}"
        within = f"WHERE product IN ({_listed(found)})"
        for row in context.rows(f"{query} {within} GROUP BY name, value ORDER BY name, MIN(product), value"):
            choice = FilterChoice(row["value"], _changed(context.query, row["name"], row["value"]), row["n"])
            filters.setdefault(row["name"], []).append(choice)
    return {name: choices for name, choices in filters.items() if len(choices) > 1}


def _price_choice(query: Fields, low: int, high: int, count: int) -> FilterChoice:
    return FilterChoice(_price(low, high), _changed(query, "Price", f"{low}-{high or ''}"), count)


def _price(low: int, high: int) -> str:
    if not low:
        return f"Under ${high}"
    return f"${low} to ${high - 0.01:.2f}" if high else f"${low} and above"


def _changed(query: Fields, name: str, value: str | None) -> str:
    """Return the query string of the first page with this filter."""
    field_name = name.lower() if name in ("Price", "Brand") else name
    return query.changed(**{field_name: value, "page": None})
