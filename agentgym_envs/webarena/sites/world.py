"""A world: everything the five sites know at the beginning of an episode, as the image of one SQLite database."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from agentgym_envs.webarena.evaluators.state import differences
from agentgym_envs.webarena.sites.country import Country, make_country
from agentgym_envs.webarena.sites.people import Person, make_people

FILLED = ("maps", "shop", "forum", "code")
"""Sites with tables (`schema.sql`) and data (`seed_data.fill`), in the order in which they are filled.
The administration works on the shop's."""
_OWN = """
CREATE TABLE web_messages (id INTEGER PRIMARY KEY, site TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE web_logins (token TEXT PRIMARY KEY, site TEXT NOT NULL, account INTEGER NOT NULL);
"""
FREE = ("web_messages", "web_logins")
"""Tables of the sites' machinery, in which no change counts."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """What a site's generator is given: who there is and where, and chance of its own."""

    country: Country
    people: tuple[Person, ...]
    rng: random.Random


@dataclass(frozen=True, slots=True)
class World:
    """`image` is the database as SQLite serialises it; `database` holds the same, to be read only."""

    seed: int
    image: bytes
    database: sqlite3.Connection = field(compare=False, repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of all rows, whatever the version of SQLite that wrote them."""
        empty = sqlite3.connect(":memory:")
        rows = ((c.table, c.key, sorted((c.after or {}).items())) for c in differences(empty, self.database))
        return hashlib.sha256("\n".join(map(repr, rows)).encode()).hexdigest()

    def rows(self, query: str, *arguments: Any) -> list[sqlite3.Row]:
        """What a query gives."""
        return self.database.execute(query, arguments).fetchall()

    def value(self, query: str, *arguments: Any) -> Any:
        """The first column of the first row that a query gives; None if it gives none."""
        row = self.database.execute(query, arguments).fetchone()
        return None if row is None else row[0]


@lru_cache(maxsize=16)
def world(seed: int) -> World:
    """The world of a seed, made once a process; in about a second."""
    database = connect()
    database.executescript(_OWN)
    country = make_country(random.Random(f"country/{seed}"))
    people = make_people(random.Random(f"people/{seed}"), country)
    for site in FILLED:
        database.executescript(files(f"{__package__}.{site}").joinpath("schema.sql").read_text(encoding="utf-8"))
        database.execute("BEGIN")
        _filler(site)(database, Seeds(country, people, random.Random(f"{site}/{seed}")))
        database.execute("COMMIT")
    database.execute("VACUUM")
    image = database.serialize()
    database.close()
    return World(seed, image, opened(image))


def connect() -> sqlite3.Connection:
    """An empty database in memory, which any thread may use, one at a time."""
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.row_factory = sqlite3.Row
    return database


def opened(image: bytes) -> sqlite3.Connection:
    """A database of its own that holds an image."""
    database = connect()
    database.deserialize(image)
    return database


def _filler(site: str) -> Callable[[sqlite3.Connection, Seeds], None]:
    found: Callable[[sqlite3.Connection, Seeds], None] = import_module(f"{__package__}.{site}.seed_data").fill
    return found
