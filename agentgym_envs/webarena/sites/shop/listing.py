"""Lists of products: filtered, sorted, page by page."""

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
"""Dollars from and to, in steps; 0 is no limit."""
SIZE = 12
_ATTRIBUTES = """(
    SELECT product, name, value FROM shop_attributes UNION ALL SELECT product, name, value FROM shop_options
)"""


class Choice(NamedTuple):
    """A value to filter by; `query` is the address of the list with it, or without it if it is `chosen`."""

    text: str
    query: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list, with how it may be narrowed down."""

    products: list[sqlite3.Row]
    paging: Paging
    sort: str
    filters: dict[str, list[Choice]] = field(default_factory=dict)
    active: list[tuple[str, Choice]] = field(default_factory=list)

    @property
    def sorts(self) -> list[tuple[str, str]]:
        """The orders to choose from."""
        return [(name, text) for name, (text, _) in SORTS.items()]


def listing(
    context: RequestContext, where: str, arguments: list[Any], *, sort: str = "position", attributes: bool = False
) -> Listing:
    """The products that fit, as the query's filters and order want them.

    `sort` is the order where the query names none; with `attributes`, filters by colour, material and so on are
    offered.
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
    active = [(name, Choice(text, _changed(context.query, name, None))) for name, text, _, _ in conditions]
    return Listing(products, paging, sort, filters, active)


def _names(context: RequestContext, where: str, arguments: list[Any]) -> list[str]:
    """The attributes that products of a list have."""
    products = f"SELECT p.id FROM {PRODUCTS} WHERE {FOUND} AND ({where})"
    query = f"SELECT DISTINCT name FROM {_ATTRIBUTES} WHERE product IN ({products}) ORDER BY name"
    return [row["name"] for row in context.rows(query, *arguments)]


def _conditions(query: Fields, names: list[str]) -> list[tuple[str, str, str, list[Any]]]:
    """The filters that a query asks for: (name, text, condition, its arguments)."""
    found: list[tuple[str, str, str, list[Any]]] = []
    for low, high in PRICES:
        if query.text("price") == f"{low}-{high or ''}":
            limits = [100 * low, 100 * high or 10**12]
            condition = "COALESCE(p.special_price, p.price) >= ? AND COALESCE(p.special_price, p.price) < ?"
            found.append(("Price", _price(low, high), condition, limits))
    if brand := query.text("brand", most=100):
        found.append(("Brand", brand, "p.brand = ?", [brand]))
    for name in names:
        if value := query.text(name, most=100):
            condition = f"p.id IN (SELECT product FROM {_ATTRIBUTES} WHERE name = ? AND value = ?)"
            found.append((name, value, condition, [name, value]))
    return found


def _filters(context: RequestContext, clause: str, values: list[Any], names: list[str]) -> dict[str, list[Choice]]:
    """What the products found can be narrowed down by, with how many would be left."""
    bands = ", ".join(
        f"SUM(final >= {100 * low} AND final < {100 * high or 10**12}) AS band{place}"
        for place, (low, high) in enumerate(PRICES)
    )
    found = f"SELECT p.id, p.brand, COALESCE(p.special_price, p.price) AS final FROM {PRODUCTS} WHERE {clause}"
    counts = context.one(f"SELECT {bands} FROM ({found})", *values)
    filters = {
        "Price": [
            _price_choice(context.query, *band, count) for band, count in zip(PRICES, counts, strict=True) if count
        ]
    }
    brands = context.rows(f"SELECT brand, COUNT(*) AS n FROM ({found}) GROUP BY brand ORDER BY brand", *values)
    filters["Brand"] = [
        Choice(row["brand"], _changed(context.query, "Brand", row["brand"]), row["n"]) for row in brands[:30]
    ]
    if names:
        query = f"SELECT name, value, COUNT(DISTINCT product) AS n FROM {_ATTRIBUTES}"
        within = f"WHERE product IN (SELECT id FROM ({found}))"
        for row in context.rows(f"{query} {within} GROUP BY name, value ORDER BY name, MIN(product), value", *values):
            choice = Choice(row["value"], _changed(context.query, row["name"], row["value"]), row["n"])
            filters.setdefault(row["name"], []).append(choice)
    return {name: choices for name, choices in filters.items() if len(choices) > 1}


def _price_choice(query: Fields, low: int, high: int, count: int) -> Choice:
    return Choice(_price(low, high), _changed(query, "Price", f"{low}-{high or ''}"), count)


def _price(low: int, high: int) -> str:
    if not low:
        return f"Under ${high}"
    return f"${low} to ${high - 0.01:.2f}" if high else f"${low} and above"


def _changed(query: Fields, name: str, value: str | None) -> str:
    """The address of the list with a filter, from its first page on."""
    field_name = name.lower() if name in ("Price", "Brand") else name
    return query.changed(**{field_name: value, "page": None})
