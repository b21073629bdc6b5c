"""Finding products by words: each must be in the name, the brand, the number or the category of a product."""

from __future__ import annotations

import sqlite3

MOST_WORDS = 8
FOUND = "p.enabled = 1 AND c.enabled = 1"
"""What a product `p` in a category `c` has to be for the shop to show it."""


def words_of(text: str) -> list[str]:
    """The words to look for, without the ending of a plural."""
    found = text.lower().replace(",", " ").split()[:MOST_WORDS]
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found]


def condition(text: str) -> tuple[str, list[str]]:
    """A condition on products `p` in categories `c` for what was searched for, and its arguments."""
    wanted = words_of(text)
    one = "(p.name || ' ' || p.sku || ' ' || c.name) LIKE ? ESCAPE '\\'"
    return " AND ".join([FOUND, *[one] * len(wanted)]), [f"%{_escaped(word)}%" for word in wanted]


def count_found(database: sqlite3.Connection, text: str) -> int:
    """How many products a search finds."""
    where, arguments = condition(text)
    query = f"SELECT COUNT(*) FROM shop_products p JOIN shop_categories c ON c.id = p.category WHERE {where}"
    count: int = database.execute(query, arguments).fetchone()[0]
    return count


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
