"""Bulk inserts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any


def insert(database: sqlite3.Connection, table: str, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows. All rows must have the same columns."""
    listed = list(rows)
    if listed:
        names = list(listed[0])
        statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        database.executemany(statement, [tuple(row.values()) for row in listed])
