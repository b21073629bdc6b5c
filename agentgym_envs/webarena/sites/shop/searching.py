"""Product search: every word must occur in the name, SKU or category of a product, which includes the brand."""

from __future__ import annotations

import sqlite3

MOST_WORDS = 8
FOUND = "p.enabled = 1 AND c.enabled = 1"
"""SQL condition: the shop shows the product `p` of the category `c`."""


def words_of(text: str) -> list[str]:
    """Return the search terms without plural endings."""
    words = text.lower().replace(",", " ").split()[:MOST_WORDS]
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words]


def condition(text: str) -> tuple[str, list[str]]:
    """Return an SQL condition on products `p` in categories `c`, and its arguments."""
    wanted = words_of(text)
    one = "(p.name || ' ' || p.sku || ' ' || c.name) LIKE ? ESCAPE '\\'"
    return " AND ".join([FOUND, *[one] * len(wanted)]), [f"%{_escaped(word)}%" for word in wanted]


def count_found(database: sqlite3.Connection, text: str) -> int:
    """Return the number of search results."""
    where, arguments = condition(text)
    query = f"SELECT COUNT(*) FROM shop_products p JOIN shop_categories c ON c.id = p.category WHERE {where}"
    count: int = database.execute(query, arguments).fetchone()[0]
    return count


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
