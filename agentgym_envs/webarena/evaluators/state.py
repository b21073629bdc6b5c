"""The state of a site's database: what queries of it must give, and that nothing changed but what had to.

A value that is expected of a column may be a regular expression (`re.compile`), which the whole text has to match, a
set of values, of which any will do, or a plain one: numbers are equal within rounding, texts but for white space.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict

Columns: TypeAlias = Mapping[str, Any]
_T = TypeVar("_T")
_U = TypeVar("_U")
_SHADOWS = ("data", "idx", "content", "docsize", "config", "node", "rowid", "parent")  # of full-text and R-tree tables


@dataclass(frozen=True, slots=True)
class QueryReturns:
    """A query of the database gives exactly these rows, in this order if `ordered`."""

    query: str
    expected: Sequence[Sequence[Any]]
    arguments: Sequence[Any] = ()
    ordered: bool = False

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """See `Evaluator`."""
        database = _given(episode.database)
        try:
            rows = database.execute(self.query, tuple(self.arguments)).fetchall()
        except sqlite3.Error as error:
            raise UsageError(f"the query {self.query!r} failed: {error}") from None
        if len(rows) == len(self.expected) and self._fits(rows):
            return Verdict(1.0)
        return Verdict(0.0, f"{self.query} gives {_listed(rows)}, not {_listed(self.expected)}")

    def _fits(self, rows: Sequence[Sequence[Any]]) -> bool:
        if self.ordered:
            return all(map(_same_row, self.expected, rows))
        return len(match_pairs(self.expected, rows, _same_row)) == len(rows)


@dataclass(frozen=True, slots=True)
class Added:
    """A row was added that holds these values; its other columns may hold anything."""

    table: str
    values: Columns
    count: int = 1


@dataclass(frozen=True, slots=True)
class Updated:
    """A row that held `where` before got these values; no other column of it changed."""

    table: str
    where: Columns
    values: Columns
    count: int = 1


@dataclass(frozen=True, slots=True)
class Removed:
    """A row that held `where` is gone."""

    table: str
    where: Columns
    count: int = 1


Expected: TypeAlias = Added | Updated | Removed


@dataclass(frozen=True, slots=True)
class OnlyChanged:
    """These changes were made to the database, each `count` times, and no others.

    `free` are tables ("sessions") and columns ("products.views") that may hold anything, and that no change is looked
    for in. Without arguments: nothing changed. A row is known by its primary key, or SQLite's row id.
    """

    expected: Sequence[Expected] = ()
    free: Collection[str] = field(default=())

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """See `Evaluator`."""
        before, after = _given(episode.before), _given(episode.database)
        self._check(_columns(before), _columns(after))
        changes = differences(before, after, self.free)
        wanted = [change for change in self.expected for _ in range(change.count)]
        pairs = match_pairs(wanted, changes, _fits)
        missing = [change for place, change in enumerate(wanted) if place not in pairs]
        others = [change for place, change in enumerate(changes) if place not in pairs.values()]
        if not missing and not others:
            return Verdict(1.0)
        return Verdict(0.0, _why(missing, others))

    def _check(self, *databases: Mapping[str, Sequence[str]]) -> None:
        """Raise UsageError for tables and columns that do not exist: a name misspelt must not pass for a change."""
        known = {table: set(columns) for database in databases for table, columns in database.items()}
        named = {*self.free}
        for change in self.expected:
            columns = {**getattr(change, "where", {}), **getattr(change, "values", {})}
            named |= {change.table, *(f"{change.table}.{column}" for column in columns)}
        for name in sorted(named):
            table, _, column = name.partition(".")
            if table not in known or (column and column not in known[table]):
                raise UsageError(f"the database has no {name!r}")


class Change(NamedTuple):
    """A row before and after, by columns; None where there was or is none. `columns` are those that differ."""

    table: str
    key: Any
    before: Columns | None
    after: Columns | None
    columns: frozenset[str] = frozenset()

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.table} got a row with {_told(self.after or {})}"
        if self.after is None:
            return f"{self.table} lost the row with {_told(self.before)}"
        told = (f"{name} from {self.before[name]!r} to {self.after[name]!r}" for name in sorted(self.columns))
        return f"{self.table} {self.key} changed {', '.join(told)}"


def differences(before: sqlite3.Connection, after: sqlite3.Connection, free: Collection[str] = ()) -> list[Change]:
    """All rows that differ between two states of a database, in the order of tables and keys.

    `free` are tables and columns ("table.column") to leave out. Reads both databases whole: two milliseconds for
    a thousand rows. What an index for full text keeps for itself is left out, since it follows from other tables.
    """
    tables = sorted((_columns(before).keys() | _columns(after).keys()) - set(free))
    return [change for table in tables for change in _table_differences(before, after, table, free)]


def match_pairs(ones: Sequence[_T], others: Sequence[_U], fits: Callable[[_T, _U], bool]) -> dict[int, int]:
    """As many pairs of a one and another that fits it as can be, none in two of them, by their places.

    A largest matching, by augmenting paths: what fits many never takes the place of what fits but one.
    """
    fitting = [[place for place, other in enumerate(others) if fits(one, other)] for one in ones]
    taken: dict[int, int] = {}

    def place_one(one: int, tried: set[int]) -> bool:
        for place in fitting[one]:
            if place not in tried:
                tried.add(place)
                if place not in taken or place_one(taken[place], tried):
                    taken[place] = one
                    return True
        return False

    for one in range(len(ones)):
        place_one(one, set())
    return {one: place for place, one in taken.items()}


def same(expected: Any, value: Any) -> bool:
    """Whether a value is what is expected of it; see the module."""
    if isinstance(expected, re.Pattern):
        return isinstance(value, str) and expected.fullmatch(value.strip()) is not None
    if isinstance(expected, set | frozenset):
        return any(same(one, value) for one in expected)
    if isinstance(expected, str) and isinstance(value, str):
        return expected.split() == value.split()
    if isinstance(expected, float) or (isinstance(value, float) and isinstance(expected, int)):
        return isinstance(value, int | float) and math.isclose(expected, value, rel_tol=1e-9, abs_tol=1e-9)
    return bool(expected == value)


def _given(database: sqlite3.Connection | None) -> sqlite3.Connection:
    if database is None:
        raise UsageError("this task is scored by its site's database, which the episode does not have")
    return database


def _columns(database: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """The tables of a database with their columns, without what SQLite and its virtual tables keep for themselves."""
    tables = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
    virtual = {name for name, sql in tables.items() if re.match(r"create\s+virtual", sql or "", re.IGNORECASE)}
    own = virtual | {f"{name}_{shadow}" for name in virtual for shadow in _SHADOWS}
    names = sorted(name for name in tables if name not in own and not name.startswith("sqlite_"))
    return {name: tuple(row[1] for row in _described(database, name)) for name in names}


def _described(database: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """(number, name, type, not null, default, place in the primary key) of each column."""
    return database.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()


def _table_differences(
    before: sqlite3.Connection, after: sqlite3.Connection, table: str, free: Collection[str]
) -> Iterator[Change]:
    ignored = {name.partition(".")[2] for name in free if name.partition(".")[0] == table}
    (old_names, old), (new_names, new) = _rows(before, table), _rows(after, table)
    if (old_names, old) == (new_names, new):  # most tables are as they were, and comparing costs less than hashing
        return
    lost = {key: dict(zip(old_names, row, strict=True)) for key, *row in set(old).difference(new)}
    gained = {key: dict(zip(new_names, row, strict=True)) for key, *row in set(new).difference(old)}
    for key in sorted(lost.keys() | gained.keys(), key=_sortable):
        change = _compare(table, key, lost.get(key), gained.get(key), ignored)
        if change is not None:
            yield change


def _rows(database: sqlite3.Connection, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of a table's columns, and its rows, each with its key put before; none if there is no such table."""
    columns = _described(database, table)
    if not columns:
        return [], []
    key = [column[1] for column in sorted(columns, key=lambda column: int(column[5])) if column[5]]
    names = [column[1] for column in columns]
    cursor = database.cursor()
    cursor.row_factory = None  # plain tuples, whatever the site has set
    wanted = ", ".join(map(_quoted, names))
    return names, cursor.execute(f"SELECT {_key(key)}, {wanted} FROM {_quoted(table)}").fetchall()


def _key(columns: Sequence[str]) -> str:
    """An expression for the key of a row: its only column, several put together as text, or SQLite's row id."""
    if len(columns) < 2:
        return _quoted(columns[0]) if columns else "rowid"
    return " || ', ' || ".join(f"quote({_quoted(column)})" for column in columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sortable(key: Any) -> tuple[str, Any]:
    return type(key).__name__, 0 if key is None else key


def _compare(table: str, key: Any, before: Columns | None, after: Columns | None, ignored: set[str]) -> Change | None:
    if before is None or after is None:
        return Change(table, key, before, after)
    names = before.keys() | after.keys()
    columns = frozenset(name for name in names if before.get(name) != after.get(name)) - ignored
    return Change(table, key, before, after, columns) if columns else None


def _fits(expected: Expected, change: Change) -> bool:
    """Whether a change is the one expected."""
    if expected.table != change.table:
        return False
    match expected:
        case Added(values=values):
            return change.before is None and change.after is not None and _holds(change.after, values)
        case Removed(where=where):
            return change.after is None and change.before is not None and _holds(change.before, where)
        case Updated(where=where, values=values):
            if change.before is None or change.after is None or not change.columns <= values.keys():
                return False
            return _holds(change.before, where) and _holds(change.after, values)


def _holds(row: Columns, values: Columns) -> bool:
    return all(name in row and same(value, row[name]) for name, value in values.items())


def _same_row(expected: Sequence[Any], row: Sequence[Any]) -> bool:
    return len(expected) == len(row) and all(map(same, expected, row))


def _why(missing: Sequence[Expected], others: Sequence[Change]) -> str:
    wanted = [f"{told}, {times} times" if times > 1 else told for told, times in Counter(map(_wish, missing)).items()]
    reasons = [f"missing: {wish}" for wish in wanted] + [f"not asked for: {change}" for change in others]
    more = f"; and {len(reasons) - 4} more" if len(reasons) > 4 else ""
    return "; ".join(reasons[:4]) + more


def _wish(expected: Expected) -> str:
    match expected:
        case Added(table, values):
            return f"a new row of {table} with {_told(values)}"
        case Removed(table, where):
            return f"the end of the row of {table} with {_told(where)}"
        case Updated(table, where, values):
            return f"{_told(values)} in the row of {table} that had {_told(where)}"


def _told(values: Columns) -> str:
    told = (f"{name} = {_value(value)}" for name, value in values.items())
    return _cut(", ".join(told)) or "any values"


def _value(value: Any) -> str:
    if isinstance(value, re.Pattern):
        return f"/{value.pattern}/"
    if isinstance(value, set | frozenset):
        return f"one of {', '.join(sorted(map(_value, value)))}"
    return repr(value)


def _listed(rows: Sequence[Sequence[Any]]) -> str:
    return _cut(", ".join(f"({', '.join(map(_value, row))})" for row in rows)) or "no rows"


def _cut(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:297]}..."
