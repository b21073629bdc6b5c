"""Reports over a period: by day, month or year, or over the whole period."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgym_envs.webarena.sites.admin.days import HINT, PERIOD_PREFIXES, PERIODS, day_after, first_of_month, parse_day
from agentgym_envs.webarena.sites.admin.grid import Choices, GridColumn
from agentgym_envs.webarena.sites.admin.order_rules import STATUS_CHOICES
from agentgym_envs.webarena.sites.clock import TODAY
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response

SIZE = 20
ORDER_STATUSES: Choices = (("", "Any but canceled"), ("any", "Any"), *STATUS_CHOICES)


@dataclass(frozen=True, slots=True)
class SalesReport:
    """A report on orders.

    `source` is an SQL query of orders `o`. In it, "{interval}" is replaced by the day, month or year of an order and
    "{where}" by the conditions of the form. `sums` are the columns with a total. The column `link_column` links to
    `path`, if there is one, with the query's column `id`.
    """

    title: str
    source: str
    columns: Sequence[GridColumn]
    sums: Sequence[str] = ()
    periods: bool = True
    path: str = ""
    link_column: str = "name"

    def page(self, context: RequestContext) -> Response:
        """Return the report. A URL with days in another format redirects to the canonical URL."""
        if typed := _typed_otherwise(context.query):
            return Redirect(context.path + context.query.changed(**typed))
        filters = ReportQuery(context.query, self.periods)
        query = self.source.format(
            interval=f"substr(o.moment, 1, {PERIOD_PREFIXES[filters.period]})", where=filters.where
        )
        rows = context.rows(query, *filters.arguments)
        paging = Paging.of(context.query, len(rows), SIZE)
        shown = rows[paging.skipped : paging.skipped + SIZE]
        choices: dict[str, Any] = {"periods": PERIODS, "order_statuses": ORDER_STATUSES}
        values: dict[str, Any] = {
            "report": self,
            "filters": filters,
            "rows": shown,
            "sums": self._sums(rows),
            "paging": paging,
            "hint": HINT,
        }
        return context.page("report.html", **values, **choices)

    def _sums(self, rows: Sequence[sqlite3.Row]) -> dict[str, str]:
        """Return the formatted totals by column."""
        summed = {key: sum(row[key] for row in rows) for key in self.sums}
        return {column.key: column.format(summed) for column in self.columns if column.key in summed}


def _typed_otherwise(query: Fields) -> dict[str, str]:
    """Return the days of a form that are not in ISO format, converted to it."""
    days = {name: parse_day(query.text(name, most=40)) for name in ("from", "to")}
    return {name: f"{day}" for name, day in days.items() if day and query.text(name, most=40) != f"{day}"}


@dataclass(slots=True)
class ReportQuery:
    """The form of a report as SQL. Invalid days are reported in `errors` and ignored."""

    query: Fields
    periods: bool
    period: str = "month"
    conditions: list[str] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    start: str = ""
    end: str = ""
    status: str = ""

    def __post_init__(self) -> None:
        if self.periods:
            self.period = self.query.choice("period", [key for key, _ in PERIODS], "month")
        self.start = self.query.text("from", first_of_month(11).isoformat(), most=40)
        self.end = self.query.text("to", TODAY.isoformat(), most=40)
        self.status = self.query.choice("status", [key for key, _ in ORDER_STATUSES])
        self._limit(self.start, "From", "o.moment >= ?")
        self._limit(self.end, "To", "o.moment < ?")
        if self.status != "any":
            self.conditions.append("o.status = ?" if self.status else "o.status <> ?")
            self.arguments.append(self.status or "canceled")

    @property
    def where(self) -> str:
        """All conditions, joined by AND."""
        return " AND ".join(["1", *self.conditions])

    def _limit(self, text: str, label: str, condition: str) -> None:
        day = parse_day(text)
        if day is None:
            if text:
                self.errors.append(f"{label}: “{text}” is not a day ({HINT}), so it was left out.")
            return
        self.conditions.append(condition)
        self.arguments.append(day.isoformat() if label == "From" else day_after(day))
