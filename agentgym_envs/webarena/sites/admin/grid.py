"""Grids: tables with filters, sorting and pagination, generated from one description."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.admin.days import HINT, day_after, interval_label, parse_day
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.responses import TemplateResponse
from agentgym_envs.webarena.sites.shop.store import shop_paging

_RANGED = ("money", "number", "day")
_FORMATTERS: Mapping[str, Any] = {
    "money": money,
    "moment": clock.minute,
    "day": clock.day,
    "number": "{:,}".format,
    "interval": interval_label,
}
SIZES = (20, 50, 100, 200)
"""Numbers of rows that the grids of a large shop offer."""
Choices: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class GridColumn:
    """A column of the grid's query. `kind` is text, status, money, number, day, moment, picture or interval."""

    key: str
    label: str
    kind: str = "text"

    def format(self, row: sqlite3.Row | Mapping[str, Any]) -> str:
        """Return the text of this column's cell in a row."""
        value = row[self.key]
        return "" if value is None else str(_FORMATTERS.get(self.kind, str)(value))


@dataclass(frozen=True, slots=True)
class GridFilter:
    """A filter. `kind` is text (substring), choice (one of `choices`), or a range of money, numbers or days."""

    key: str
    label: str
    kind: str = "text"
    choices: Choices = ()


class FilterField(NamedTuple):
    """An input field of the filter form, with its value."""

    name: str
    label: str
    value: str
    hint: str
    choices: Choices


class ActiveFilter(NamedTuple):
    """A filter in use: its label, and the query string without it."""

    text: str
    without: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid.

    `source` is an SQL query without arguments that has a column `id`. `order` is the column of the default sort order.
    `link_column` is the column that identifies a row to the user; it links to `path` if there is one. `mass_actions` is
    the URL for actions on the selected rows, with the choices of actions.
    """

    title: str
    source: str
    columns: Sequence[GridColumn]
    filters: Sequence[GridFilter]
    order: str
    descending: bool = True
    path: str = ""
    link_column: str = "name"
    mass_actions: tuple[str, Choices] | None = None
    size: int = 15

    def show(
        self, context: RequestContext, *, only: str = "1", given: Sequence[Any] = (), **choices: Choices
    ) -> GridPage:
        """Return the page that a query string selects.

        `only` is an SQL condition with arguments `given`. `choices` are the choices of filters that depend on the
        database.
        """
        filters = _FilterQuery(context.query, self.filters, choices)
        where = " AND ".join([only, *filters.conditions])
        arguments = [*given, *filters.arguments]
        count = context.value(f"SELECT COUNT(*) FROM ({self.source}) WHERE {where}", *arguments)
        paging = shop_paging(context, "rows_per_page", count, self.size, SIZES)
        sort, descending = self._sorting(context.query)
        order = f"{sort} {'DESC' if descending else 'ASC'}, id {'DESC' if descending else 'ASC'}"
        query = f"SELECT * FROM ({self.source}) WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
        rows = context.rows(query, *arguments, paging.size, paging.skipped)
        return GridPage(self, rows, paging, sort, descending, filters.fields, filters.active, filters.errors)

    def page(self, context: RequestContext, template: str, *, heading: str = "", **values: Any) -> TemplateResponse:
        """Return a page with this grid alone."""
        return context.page(template, shown=self.show(context), heading=heading or self.title, **values)

    def _sorting(self, query: Fields) -> tuple[str, bool]:
        """Return the sort column and direction. Only column names are put into the SQL text."""
        sort = query.choice("sort", [column.key for column in self.columns])
        if not sort:
            return self.order, self.descending
        return sort, query.text("dir") == "desc"


@dataclass(frozen=True, slots=True)
class GridPage:
    """One page of a grid."""

    grid: Grid
    rows: list[sqlite3.Row]
    paging: Paging
    sort: str
    descending: bool
    fields: list[FilterField]
    active: list[ActiveFilter]
    errors: list[str]

    def sorting(self, query: Fields, column: GridColumn) -> str:
        """Return the query string that sorts by a column, or reverses the order if it is the sort column."""
        descending = self.sort == column.key and not self.descending
        return query.changed(sort=column.key, dir="desc" if descending else "asc", page=None)

    def sorted_as(self, column: GridColumn) -> str:
        """Return the value of aria-sort for the header of a column."""
        if self.sort != column.key:
            return "none"
        return "descending" if self.descending else "ascending"

    def cleared(self, query: Fields) -> str:
        """Return the query string without any filter."""
        return query.changed(**{field.name: None for field in self.fields}, page=None)

    def link(self, row: sqlite3.Row) -> str:
        """Return the URL of a row."""
        return self.grid.path.format(id=row["id"])


@dataclass(slots=True)
class _FilterQuery:
    """The filters of a query string as SQL. Invalid values are reported in `errors` and ignored."""

    query: Fields
    filters: Sequence[GridFilter]
    choices: Mapping[str, Choices]
    conditions: list[str] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    fields: list[FilterField] = field(default_factory=list)
    active: list[ActiveFilter] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for one in self.filters:
            if one.kind in _RANGED:
                self._end(one, "from")
                self._end(one, "to")
            elif one.kind == "choice":
                self._choice(one, self.choices.get(one.key, one.choices))
            else:
                self._text(one)

    def _text(self, one: GridFilter) -> None:
        value = self.query.text(one.key, most=200)
        self.fields.append(FilterField(one.key, one.label, value, "", ()))
        if value:
            self._condition(f"{one.key} LIKE ? ESCAPE '\\'", f"%{_escaped(value)}%")
            self._activate(one.key, f"{one.label}: {value}")

    def _choice(self, one: GridFilter, choices: Choices) -> None:
        value = self.query.choice(one.key, [key for key, _ in choices])
        self.fields.append(FilterField(one.key, one.label, value, "", [("", "Any"), *choices]))
        if value:
            self._condition(f"CAST({one.key} AS TEXT) = ?", value)
            self._activate(one.key, f"{one.label}: {dict(choices)[value]}")

    def _end(self, one: GridFilter, end: str) -> None:
        name, label = f"{one.key}_{end}", f"{one.label} {end}"
        text = self.query.text(name, most=40)
        self.fields.append(FilterField(name, label, text, HINT if one.kind == "day" else "", ()))
        if not text:
            return
        value = self._limit(one, name, end)
        if value is None:
            self.errors.append(f"“{text}” is not {_MEANT[one.kind]}, so {label} was left out.")
            return
        operator = ">=" if end == "from" else "<" if one.kind == "day" else "<="
        self._condition(f"{one.key} {operator} ?", value)
        self._activate(name, f"{label}: {text}")

    def _limit(self, one: GridFilter, name: str, end: str) -> str | int | None:
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

    def _activate(self, name: str, text: str) -> None:
        self.active.append(ActiveFilter(text, self.query.changed(**{name: None}, page=None)))


_MEANT = {"day": f"a day ({HINT})", "money": "an amount", "number": "a whole number"}


def _escaped(text: str) -> str:
    """Escape a text for LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
