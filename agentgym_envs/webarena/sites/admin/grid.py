"""Grids: tables of things with filters, sorting and pages, all made of one description."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.admin.days import HINT, day_after, parse_day, told
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.responses import Page

_RANGED = ("money", "number", "day")
_TOLD: Mapping[str, Any] = {
    "money": money,
    "moment": clock.minute,
    "day": clock.day,
    "number": "{:,}".format,
    "interval": told,
}
Choices: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the grid's query: `kind` is text, status, money, number, day, moment, picture or interval."""

    key: str
    label: str
    kind: str = "text"

    def told(self, row: sqlite3.Row | Mapping[str, Any]) -> str:
        """What the cell of a row says."""
        value = row[self.key]
        return "" if value is None else str(_TOLD.get(self.kind, str)(value))


@dataclass(frozen=True, slots=True)
class Filter:
    """What can be searched for: a part of a text, one of `choices`, or money, numbers or days from one to another."""

    key: str
    label: str
    kind: str = "text"
    choices: Choices = ()


class Field(NamedTuple):
    """A field of the form of filters, with what it holds."""

    name: str
    label: str
    value: str
    hint: str
    choices: Choices


class Active(NamedTuple):
    """A filter that is on: what it says, and the query without it."""

    told: str
    without: str


@dataclass(frozen=True, slots=True)
class Grid:
    """`source` is a query without arguments, with a column `id`; `order` the column it is sorted by at first.

    `names` is the column that tells rows apart, and links to `path` if there is one; `mass` says where the rows that
    were ticked are sent, and with what to choose from.
    """

    title: str
    source: str
    columns: Sequence[Column]
    filters: Sequence[Filter]
    order: str
    falling: bool = True
    path: str = ""
    names: str = "name"
    mass: tuple[str, Choices] | None = None
    size: int = 15

    def show(self, visit: RequestContext, *, only: str = "1", given: Sequence[Any] = (), **choices: Choices) -> Shown:
        """The part that a query asks for, of the rows that `only` and its arguments let through.

        `choices` are those of filters that depend on the database.
        """
        asked = _Asked(visit.query, self.filters, choices)
        where = " AND ".join([only, *asked.conditions])
        arguments = [*given, *asked.arguments]
        count = visit.value(f"SELECT COUNT(*) FROM ({self.source}) WHERE {where}", *arguments)
        paging = Paging.of(visit.query, count, self.size)
        sort, falling = self._sorting(visit.query)
        order = f"{sort} {'DESC' if falling else 'ASC'}, id {'DESC' if falling else 'ASC'}"
        query = f"SELECT * FROM ({self.source}) WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
        rows = visit.rows(query, *arguments, self.size, paging.skipped)
        return Shown(self, rows, paging, sort, falling, asked.fields, asked.active, asked.wrong)

    def page(self, visit: RequestContext, template: str, *, heading: str = "", **values: Any) -> Page:
        """A page with this grid alone."""
        return visit.page(template, shown=self.show(visit), heading=heading or self.title, **values)

    def _sorting(self, query: Fields) -> tuple[str, bool]:
        """Only the names of columns get into the text of a query."""
        sort = query.choice("sort", [column.key for column in self.columns])
        if not sort:
            return self.order, self.falling
        return sort, query.text("dir") == "desc"


@dataclass(frozen=True, slots=True)
class Shown:
    """A page of a grid."""

    grid: Grid
    rows: list[sqlite3.Row]
    paging: Paging
    sort: str
    falling: bool
    fields: list[Field]
    active: list[Active]
    wrong: list[str]

    def sorting(self, query: Fields, column: Column) -> str:
        """The query that sorts by a column; the other way round if it is sorted by it already."""
        falling = self.sort == column.key and not self.falling
        return query.changed(sort=column.key, dir="desc" if falling else "asc", page=None)

    def sorted_as(self, column: Column) -> str:
        """The value of aria-sort for the head of a column."""
        if self.sort != column.key:
            return "none"
        return "descending" if self.falling else "ascending"

    def cleared(self, query: Fields) -> str:
        """The query without any filter."""
        return query.changed(**{field.name: None for field in self.fields}, page=None)

    def link(self, row: sqlite3.Row) -> str:
        """Where a row leads."""
        return self.grid.path.format(id=row["id"])


@dataclass(slots=True)
class _Asked:
    """What a query says of filters, as SQL; values that make no sense are told and left out."""

    query: Fields
    filters: Sequence[Filter]
    choices: Mapping[str, Choices]
    conditions: list[str] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    active: list[Active] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for one in self.filters:
            if one.kind in _RANGED:
                self._end(one, "from")
                self._end(one, "to")
            elif one.kind == "choice":
                self._choice(one, self.choices.get(one.key, one.choices))
            else:
                self._text(one)

    def _text(self, one: Filter) -> None:
        value = self.query.text(one.key, most=200)
        self.fields.append(Field(one.key, one.label, value, "", ()))
        if value:
            self._condition(f"{one.key} LIKE ? ESCAPE '\\'", f"%{_escaped(value)}%")
            self._activate(one.key, f"{one.label}: {value}")

    def _choice(self, one: Filter, choices: Choices) -> None:
        value = self.query.choice(one.key, [key for key, _ in choices])
        self.fields.append(Field(one.key, one.label, value, "", [("", "Any"), *choices]))
        if value:
            self._condition(f"CAST({one.key} AS TEXT) = ?", value)
            self._activate(one.key, f"{one.label}: {dict(choices)[value]}")

    def _end(self, one: Filter, end: str) -> None:
        name, label = f"{one.key}_{end}", f"{one.label} {end}"
        text = self.query.text(name, most=40)
        self.fields.append(Field(name, label, text, HINT if one.kind == "day" else "", ()))
        if not text:
            return
        value = self._limit(one, name, end)
        if value is None:
            self.wrong.append(f"“{text}” is not {_MEANT[one.kind]}, so {label} was left out.")
            return
        operator = ">=" if end == "from" else "<" if one.kind == "day" else "<="
        self._condition(f"{one.key} {operator} ?", value)
        self._activate(name, f"{label}: {text}")

    def _limit(self, one: Filter, name: str, end: str) -> str | int | None:
        if one.kind == "day":
            day = parse_day(self.query.text(name))
            return None if day is None else day.isoformat() if end == "from" else day_after(day)
        if one.kind == "money":
            return self.query.money(name)
        value = self.query.number(name, -1)
        return None if value < 0 else value

    def _condition(self, condition: str, value: Any) -> None:
        self.conditions.append(condition)
        self.arguments.append(value)

    def _activate(self, name: str, told: str) -> None:
        self.active.append(Active(told, self.query.changed(**{name: None}, page=None)))


_MEANT = {"day": f"a day ({HINT})", "money": "an amount", "number": "a whole number"}


def _escaped(text: str) -> str:
    """A text as LIKE's pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
