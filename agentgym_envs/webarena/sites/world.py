"""A world: the state of all sites at the start of an episode, as the image of one SQLite database."""

from __future__ import annotations

import hashlib
import random
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from agentgym_envs.webarena.evaluators.state import differences
from agentgym_envs.webarena.sites.country import Country, make_country
from agentgym_envs.webarena.sites.people import Person, make_people

SEEDED_SITES = ("maps", "shop", "forum", "code")
"""Sites with tables of their own (`schema.sql`) and seed data (`seed_data.fill`), in the order of seeding.
The administration uses the tables of the shop."""
_FRAMEWORK_SCHEMA = """
CREATE TABLE web_messages (id INTEGER PRIMARY KEY, site TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE web_logins (token TEXT PRIMARY KEY, site TEXT NOT NULL, account INTEGER NOT NULL);
"""
UNSCORED_TABLES = ("web_messages", "web_logins")
"""Tables of the web framework. Changes in them do not count when an episode is scored."""


@dataclass(frozen=True, slots=True)
class SeedInputs:
    """The inputs of a site's generator: the country, its people and a random generator for this site alone."""

    country: Country
    people: tuple[Person, ...]
    rng: random.Random
    large: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """The state at the start of an episode.

    A large world has ten times as many products as an ordinary one, and more orders, customers and reviews. `image` is
    SQLite's serialized database. `database` has the same content and must only be read.
    """

    seed: int
    image: bytes = field(repr=False)
    database: sqlite3.Connection = field(compare=False, repr=False)
    large: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of all rows. It does not depend on the version of SQLite."""
        empty = sqlite3.connect(":memory:")
        rows = ((c.table, c.key, sorted((c.after or {}).items())) for c in differences(empty, self.database))
        return hashlib.sha256("\n".join(map(repr, rows)).encode()).hexdigest()

    def rows(self, query: str, *arguments: Any) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        return self.database.execute(query, arguments).fetchall()

    def value(self, query: str, *arguments: Any) -> Any:
        """Return the first column of the first row of a query, None if there is no row."""
        row = self.database.execute(query, arguments).fetchone()
        return None if row is None else row[0]


_locks: dict[tuple[int, bool], threading.Lock] = {}


def world(seed: int, large: bool = False) -> World:
    """Return the world of a seed. The first call of a process generates it, which takes a second, or several."""
    with _locks.setdefault((seed, large), threading.Lock()):  # threads that need the same one wait for it
        return _generated(seed, large)


@lru_cache(maxsize=16)
def _generated(seed: int, large: bool) -> World:
    database = connect()
    database.executescript(_FRAMEWORK_SCHEMA)
    country = make_country(random.Random(f"country/{seed}"))
    people = make_people(random.Random(f"people/{seed}"), country)
    for site in SEEDED_SITES:
        folder = files(f"{__package__}.{site}")
        database.executescript(folder.joinpath("schema.sql").read_text(encoding="utf-8"))
        database.execute("BEGIN")
        _seed_function(site)(database, SeedInputs(country, people, random.Random(f"{site}/{seed}"), large))
        database.execute("COMMIT")
        if large and (indices := folder.joinpath("large.sql")).is_file():
            database.executescript(indices.read_text(encoding="utf-8"))
    database.execute("VACUUM")
    image = database.serialize()
    database.close()
    return World(seed, image, open_image(image), large)


def connect() -> sqlite3.Connection:
    """Open an empty database in memory. Any thread may use it, one at a time."""
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.row_factory = sqlite3.Row
    return database


def open_image(image: bytes) -> sqlite3.Connection:
    """Open a new database with the content of an image."""
    database = connect()
    database.deserialize(image)
    return database


def _seed_function(site: str) -> Callable[[sqlite3.Connection, SeedInputs], None]:
    fill: Callable[[sqlite3.Connection, SeedInputs], None] = import_module(f"{__package__}.{site}.seed_data").fill
    return fill
