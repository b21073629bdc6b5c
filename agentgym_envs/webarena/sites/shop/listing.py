"""Product lists with filters, sorting and pagination."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.shop.searching import FOUND
from agentgym_envs.webarena.sites.shop.store import CARD, PRODUCTS

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
    count = context.value(f"SELECT COUNT(*) FROM {PRODUCTS} WHERE {clause}", *values)
    paging = Paging.of(context.query, count, SIZE)
    sort = context.query.choice("sort", tuple(SORTS), sort)
    order = f"ORDER BY {SORTS[sort][1]}, p.id LIMIT {SIZE} OFFSET {paging.skipped}"
    products = context.rows(f"SELECT {CARD} FROM {PRODUCTS} WHERE {clause} {order}", *values)
    chosen = {name for name, *_ in conditions}
    filters = {name: rows for name, rows in _filters(context, clause, values, names).items() if name not in chosen}
    active = [(name, FilterChoice(text, _changed(context.query, name, None))) for name, text, _, _ in conditions]
    return ProductListing(products, paging, sort, filters, active)


def _names(context: RequestContext, where: str, arguments: list[Any]) -> list[str]:
    """Return the names of the attributes of the listed products."""
    products = f"SELECT p.id FROM {PRODUCTS} WHERE {FOUND} AND ({where})"
    query = f"SELECT DISTINCT name FROM {_ATTRIBUTES} WHERE product IN ({products}) ORDER BY name"
    return [row["name"] for row in context.rows(query, *arguments)]


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


def _filters(
    context: RequestContext, clause: str, values: list[Any], names: list[str]
) -> dict[str, list[FilterChoice]]:
    """Return further filters, with the number of products that each would leave."""
    bands = ", ".join(
        f"SUM(final >= {100 * low} AND final < {100 * high or 10**12}) AS band{index}"
        for index, (low, high) in enumerate(PRICES)
    )
    matches = f"SELECT p.id, p.brand, COALESCE(p.special_price, p.price) AS final FROM {PRODUCTS} WHERE {clause}"
    counts = context.one(f"SELECT {bands} FROM ({matches})", *values)
    filters = {
        "Price": [
            _price_choice(context.query, *band, count) for band, count in zip(PRICES, counts, strict=True) if count
        ]
    }
    brands = context.rows(f"SELECT brand, COUNT(*) AS n FROM ({matches}) GROUP BY brand ORDER BY brand", *values)
    filters["Brand"] = [
        FilterChoice(row["brand"], _changed(context.query, "Brand", row["brand"]), row["n"]) for row in brands[:30]
    ]
    if names:
        query = f"SELECT name, value, COUNT(DISTINCT product) AS n FROM {_ATTRIBUTES}"
        within = f"WHERE product IN (SELECT id FROM ({matches}))"
        for row in context.rows(f"{query} {within} GROUP BY name, value ORDER BY name, MIN(product), value", *values):
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
