"""Evaluators of a database's state: expected query results, and expected changes with no others.

The expected value of a column may be a regular expression (`re.compile`) that must match the whole text, a set of
allowed values, or a plain value. Numbers are compared within rounding, texts without regard to white space.
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
_SHADOWS = (
    "data",
    "idx",
    "content",
    "docsize",
    "config",
    "node",
    "rowid",
    "parent",
)  # internal tables of full-text and R-tree indices


@dataclass(frozen=True, slots=True)
class QueryReturns:
    """A query returns exactly these rows, in this order if `ordered`."""

    query: str
    expected: Sequence[Sequence[Any]]
    arguments: Sequence[Any] = ()
    ordered: bool = False

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        database = _require(episode.database)
        try:
            rows = database.execute(self.query, tuple(self.arguments)).fetchall()
        except sqlite3.Error as error:
            raise UsageError(f"the query {self.query!r} failed: {error}") from None
        if len(rows) == len(self.expected) and self._matches(rows):
            return Verdict(1.0)
        return Verdict(0.0, f"{self.query} gives {_listed(rows)}, not {_listed(self.expected)}")

    def _matches(self, rows: Sequence[Sequence[Any]]) -> bool:
        if self.ordered:
            return all(map(_same_row, self.expected, rows))
        return len(match_pairs(self.expected, rows, _same_row)) == len(rows)


@dataclass(frozen=True, slots=True)
class Added:
    """A row with these values was added; its other columns may have any value."""

    table: str
    values: Columns
    count: int = 1


@dataclass(frozen=True, slots=True)
class Updated:
    """A row that had the values `where` now has these values; none of its other columns changed."""

    table: str
    where: Columns
    values: Columns
    count: int = 1


@dataclass(frozen=True, slots=True)
class Removed:
    """A row that had the values `where` was removed."""

    table: str
    where: Columns
    count: int = 1


Expected: TypeAlias = Added | Updated | Removed


@dataclass(frozen=True, slots=True)
class OnlyChanged:
    """The database has these changes, each `count` times, and no others. Without arguments: nothing changed.

    A row is identified by its primary key, or by SQLite's row id.

    Attributes:
        expected: the changes.
        free: tables ("sessions") and columns ("products.views") to ignore.
    """

    expected: Sequence[Expected] = ()
    free: Collection[str] = field(default=())

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        before, after = _require(episode.before), _require(episode.database)
        self._check(_columns(before), _columns(after))
        changes = differences(before, after, self.free)
        wanted = [change for change in self.expected for _ in range(change.count)]
        pairs = match_pairs(wanted, changes, _is_change)
        missing = [change for index, change in enumerate(wanted) if index not in pairs]
        others = [change for index, change in enumerate(changes) if index not in pairs.values()]
        if not missing and not others:
            return Verdict(1.0)
        return Verdict(0.0, _why(missing, others))

    def _check(self, *databases: Mapping[str, Sequence[str]]) -> None:
        """Raise UsageError for unknown tables and columns: a misspelt name must not look like a missing change."""
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
    """A row before and after, by column name; None if it did not or does not exist. `columns` are those that differ."""

    table: str
    key: Any
    before: Columns | None
    after: Columns | None
    columns: frozenset[str] = frozenset()

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.table} got a row with {_assignments(self.after or {})}"
        if self.after is None:
            return f"{self.table} lost the row with {_assignments(self.before)}"
        changes = (f"{name} from {self.before[name]!r} to {self.after[name]!r}" for name in sorted(self.columns))
        return f"{self.table} {self.key} changed {', '.join(changes)}"


def differences(before: sqlite3.Connection, after: sqlite3.Connection, free: Collection[str] = ()) -> list[Change]:
    """All rows that differ between two states of a database, ordered by table and key.

    `free` are tables and columns ("table.column") to ignore. Reads both databases completely, which takes two
    milliseconds per thousand rows, unless it is the same one. The internal tables of full-text indices are ignored, as
    they follow from others.
    """
    if before is after:
        return []
    tables = sorted((_columns(before).keys() | _columns(after).keys()) - set(free))
    return [change for table in tables for change in _table_differences(before, after, table, free)]


def match_pairs(lefts: Sequence[_T], rights: Sequence[_U], fits: Callable[[_T, _U], bool]) -> dict[int, int]:
    """A maximum matching of two sequences, as a mapping of left indices to right indices.

    Augmenting paths guarantee that an item with many partners does not block an item with only one.
    """
    partners = [[index for index, right in enumerate(rights) if fits(left, right)] for left in lefts]
    matched: dict[int, int] = {}  # right index -> left index

    def match(left: int, visited: set[int]) -> bool:
        for right in partners[left]:
            if right not in visited:
                visited.add(right)
                if right not in matched or match(matched[right], visited):
                    matched[right] = left
                    return True
        return False

    for left in range(len(lefts)):
        match(left, set())
    return {left: right for right, left in matched.items()}


def same(expected: Any, value: Any) -> bool:
    """Compare a value with the expected one, by the rules in this module's docstring."""
    if isinstance(expected, re.Pattern):
        return isinstance(value, str) and expected.fullmatch(value.strip()) is not None
    if isinstance(expected, set | frozenset):
        return any(same(one, value) for one in expected)
    if isinstance(expected, str) and isinstance(value, str):
        return expected.split() == value.split()
    if isinstance(expected, float) or (isinstance(value, float) and isinstance(expected, int)):
        return isinstance(value, int | float) and math.isclose(expected, value, rel_tol=1e-9, abs_tol=1e-9)
    return bool(expected == value)


def _require(database: sqlite3.Connection | None) -> sqlite3.Connection:
    if database is None:
        raise UsageError("this task is scored by its site's database, which the episode does not have")
    return database


def _columns(database: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """The tables of a database with their columns, without the internal tables of SQLite and its virtual tables."""
    tables = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
    virtual = {name for name, sql in tables.items() if re.match(r"create\s+virtual", sql or "", re.IGNORECASE)}
    internal = virtual | {f"{name}_{shadow}" for name in virtual for shadow in _SHADOWS}
    names = sorted(name for name in tables if name not in internal and not name.startswith("sqlite_"))
    return {name: tuple(row[1] for row in _described(database, name)) for name in names}


def _described(database: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """(number, name, type, not null, default, position in the primary key) of each column."""
    return database.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()


def _table_differences(
    before: sqlite3.Connection, after: sqlite3.Connection, table: str, free: Collection[str]
) -> Iterator[Change]:
    ignored = {name.partition(".")[2] for name in free if name.partition(".")[0] == table}
    (old_names, old), (new_names, new) = _rows(before, table), _rows(after, table)
    if (old_names, old) == (new_names, new):  # most tables are unchanged, and comparing is faster than hashing
        return
    lost = {key: dict(zip(old_names, row, strict=True)) for key, *row in set(old).difference(new)}
    gained = {key: dict(zip(new_names, row, strict=True)) for key, *row in set(new).difference(old)}
    for key in sorted(lost.keys() | gained.keys(), key=_sortable):
        change = _compare(table, key, lost.get(key), gained.get(key), ignored)
        if change is not None:
            yield change


def _rows(database: sqlite3.Connection, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of a table's columns, and its rows, each with its key first; empty if the table does not exist."""
    columns = _described(database, table)
    if not columns:
        return [], []
    key = [column[1] for column in sorted(columns, key=lambda column: int(column[5])) if column[5]]
    names = [column[1] for column in columns]
    cursor = database.cursor()
    cursor.row_factory = None  # plain tuples, whatever row factory the site has set
    wanted = ", ".join(map(_quoted, names))
    return names, cursor.execute(f"SELECT {_key(key)}, {wanted} FROM {_quoted(table)}").fetchall()


def _key(columns: Sequence[str]) -> str:
    """An SQL expression for the key of a row: its only column, several joined as text, or SQLite's row id."""
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


def _is_change(expected: Expected, change: Change) -> bool:
    """Return True if a change is the expected one."""
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
    counts = Counter(map(_describe, missing)).items()
    wanted = [f"{change}, {times} times" if times > 1 else change for change, times in counts]
    reasons = [f"missing: {change}" for change in wanted] + [f"not asked for: {change}" for change in others]
    more = f"; and {len(reasons) - 4} more" if len(reasons) > 4 else ""
    return "; ".join(reasons[:4]) + more


def _describe(expected: Expected) -> str:
    match expected:
        case Added(table, values):
            return f"a new row of {table} with {_assignments(values)}"
        case Removed(table, where):
            return f"the end of the row of {table} with {_assignments(where)}"
        case Updated(table, where, values):
            return f"{_assignments(values)} in the row of {table} that had {_assignments(where)}"


def _assignments(values: Columns) -> str:
    pairs = (f"{name} = {_value(value)}" for name, value in values.items())
    return _truncated(", ".join(pairs)) or "any values"


def _value(value: Any) -> str:
    if isinstance(value, re.Pattern):
        return f"/{value.pattern}/"
    if isinstance(value, set | frozenset):
        return f"one of {', '.join(sorted(map(_value, value)))}"
    return repr(value)


def _listed(rows: Sequence[Sequence[Any]]) -> str:
    return _truncated(", ".join(f"({', '.join(map(_value, row))})" for row in rows)) or "no rows"


def _truncated(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:297]}..."
