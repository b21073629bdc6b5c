"""Helpers of the generators: collected rows, times on working days, and sentences."""

from __future__ import annotations

import datetime
import random
import re
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from agentgym_envs.webarena.sites.clock import NOW

Words = dict[str, str]
_DAY = datetime.timedelta(days=1)
_HOURS = (1, 1, 0, 0, 0, 0, 1, 3, 8, 12, 13, 12, 7, 10, 12, 12, 10, 8, 5, 5, 6, 6, 4, 2)
"""Relative activity by hour of the day."""
_EARLIER = tuple(sum(_HOURS[: hour + 1]) for hour in range(24))


class TableRows:
    """Rows of all tables, collected before they are written, so that they can still be changed."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def add(self, table: str, **values: Any) -> int:
        """Add a row to a table (named without its prefix); return its id. All rows of a table have the same columns."""
        rows = self.tables[table]
        rows.append(values)
        return len(rows)

    def row(self, table: str, key: int) -> dict[str, Any]:
        """Return the row with an id, to read or change it."""
        return self.tables[table][key - 1]

    def write(self, database: sqlite3.Connection) -> None:
        """Write all rows into empty tables."""
        for table, rows in self.tables.items():
            names = list(rows[0])
            values = ", ".join(f":{name}" for name in names)
            database.executemany(f"INSERT INTO code_{table} ({', '.join(names)}) VALUES ({values})", rows)


def working_moment(rng: random.Random, start: datetime.datetime, end: datetime.datetime) -> datetime.datetime:
    """Draw a time between two others, mostly in working hours on a weekday."""
    room = (end - start).total_seconds()
    for _ in range(6):
        moment = start + datetime.timedelta(seconds=rng.random() * room)
        if moment.weekday() > 4 and rng.random() < 0.7:
            continue
        hour = rng.choices(range(24), cum_weights=_EARLIER)[0]
        moment = moment.replace(hour=hour, minute=rng.randrange(60), second=rng.randrange(60), microsecond=0)
        if start < moment < end:
            return moment
    return (start + datetime.timedelta(seconds=int(rng.random() * room))).replace(microsecond=0)


def soon(rng: random.Random, moment: datetime.datetime, days: float) -> datetime.datetime:
    """Draw a later time, usually within `days` days and never in the future."""
    end = min(moment + _DAY * (0.1 + rng.expovariate(1 / days)), NOW - _DAY / 48)
    return working_moment(rng, moment, end) if end > moment else moment


def fill_in(template: str, words: Words) -> str:
    """Fill in a template and correct its articles."""
    text = template.format_map(words)
    return re.sub(r"\b([Aa]) (?=[aeio]\w)(?!one\b)", r"\1n ", text)


def slug(text: str) -> str:
    """Convert a text to a slug or branch name: "fix-order-of-tides"."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def shares(total: int, weights: Sequence[float], least: int) -> list[int]:
    """Divide `total` in proportion to weights, approximately; no share is below `least`."""
    whole = sum(weights)
    return [max(least, round(total * weight / whole)) for weight in weights]


def sha(rng: random.Random) -> str:
    """Return a random commit SHA."""
    return f"{rng.getrandbits(160):040x}"
