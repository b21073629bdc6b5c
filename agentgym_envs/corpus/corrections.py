"""Version 2 of the facts: version 1 without what is wrong or contradicted, as `data/corrections.json` lists it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

KEYS = {"countries": "iso", "cities": "id", "airports": "iata", "elements": "symbol"}
"""The column that names the rows of a table."""
PAGE = "page"
"""The field of a correction that removes a row's page."""
_AIRPORT_BITS = {"city": 1, "iata": 2, "icao": 4, "elevation": 8}
Tables = dict[str, Any]


class Correction(NamedTuple):
    """A difference between the versions: the new value of a field (None: no value), the rule, and what contradicts."""

    table: str
    key: str | int
    field: str
    now: Any
    rule: str
    evidence: Any


class Corrections(NamedTuple):
    """All differences, and the airports whose city a second source confirms."""

    rules: Mapping[str, str]
    rows: tuple[Correction, ...]
    confirmed: frozenset[str]


@lru_cache(maxsize=1)
def corrections() -> Corrections:
    """Return the corrections, read once per process."""
    from agentgym_envs.corpus.facts import raw

    found = json.loads(raw("corrections.json"))
    rows = tuple(Correction(*row) for row in found["rows"])
    return Corrections(found["rules"], rows, frozenset(found["confirmed_airport_cities"]))


def correct_pages(pages: Tables) -> Tables:
    """Return the tables of `pages.json.xz` with the corrections, and a column `shown` (0: the row has no page)."""
    from agentgym_envs.corpus.facts import world_facts

    keys = {table: columns[KEYS[table]] for table, columns in world_facts(1)._asdict().items()}
    return _correct(pages, {table: keys[table] for table in pages})


def correct_world(world: Tables) -> Tables:
    """Return the tables of `world.json.xz` with the corrections; dropped values are no longer asked for."""
    tables = {table: world[table] for table in KEYS}
    found = _correct(tables, {table: tables[table][key] for table, key in KEYS.items()})
    zones = found["cities"]["zone"]
    found["cities"]["zone"] = [-1 if zone is None else zone for zone in zones]
    _forget_countries(found["countries"])
    _forget_places(found)
    return {**world, **found}


def _correct(tables: Tables, keys: Mapping[str, Any]) -> Tables:
    found = {table: {name: list(column) for name, column in columns.items()} for table, columns in tables.items()}
    for table, index, row in _places(keys):
        if row.field == PAGE:
            found[table].setdefault("shown", [1] * len(keys[table]))[index] = 0
        elif row.field in found[table]:
            found[table][row.field][index] = row.now
    for table, columns in found.items():
        columns.setdefault("shown", [1] * len(keys[table]))
    return found


def _places(keys: Mapping[str, Any]) -> Iterator[tuple[str, int, Correction]]:
    """Yield each correction with the index of its row."""
    index = {table: {key: i for i, key in enumerate(column)} for table, column in keys.items()}
    for row in corrections().rows:
        if row.table in index:
            yield row.table, index[row.table][row.key], row


def _forget_countries(table: Tables) -> None:
    """Ask no country for a value that it no longer has, and name no capital that was dropped."""
    for index, asks in enumerate(table["ask"]):
        table["ask"][index] = [name for name in asks if table[name][index]]
        if not table["capital"][index]:
            table["capital_city"][index] = -1


def _forget_places(world: Tables) -> None:
    """Leave places without a page or a country out of questions, and values that are missing or unconfirmed."""
    cities, airports = world["cities"], world["airports"]
    rows = zip(cities["use"], cities["shown"], cities["population"], strict=True)
    cities["use"] = [use if shown and people else 0 for use, shown, people in rows]
    airports["use"] = [use if at >= 0 else 0 for use, at in zip(airports["use"], airports["country"], strict=True)]
    confirmed = corrections().confirmed
    for index, iata in enumerate(airports["iata"]):
        known = sum(bit for name, bit in _AIRPORT_BITS.items() if airports[name][index])
        airports["ask"][index] &= known if iata in confirmed else known & ~_AIRPORT_BITS["city"]
