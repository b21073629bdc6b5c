"""Parsing of days, and the periods of reports and charts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from agentgym_envs.webarena.sites.clock import TODAY

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII)
_SPELLED = re.compile(r"([A-Za-z]{3})[a-z]* (\d{1,2}), (\d{4})", re.ASCII)
HINT = "YYYY-MM-DD"
PERIODS: Sequence[tuple[str, str]] = (("day", "Day"), ("month", "Month"), ("year", "Year"))
PERIOD_PREFIXES = {"day": 10, "month": 7, "year": 4}
"""Number of leading characters of a stored time that identify its day, month or year."""
OptionalDay: TypeAlias = "datetime.date | None"


def parse_day(text: str) -> OptionalDay:
    """Parse a day such as "2026-03-16", "3/16/2026" or "Mar 16, 2026"; None for any other text."""
    if match := _ISO.fullmatch(text):
        year, month, day = map(int, match.groups())
    elif match := _SLASHED.fullmatch(text):
        month, day, year = map(int, match.groups())
    elif (match := _SPELLED.fullmatch(text)) and match[1].lower() in _MONTHS:
        month, day, year = _MONTHS.index(match[1].lower()) + 1, int(match[2]), int(match[3])
    else:
        return None
    try:
        return datetime.date(year, month, day) if 1900 <= year <= 2200 else None
    except ValueError:
        return None


def day_after(day: datetime.date) -> str:
    """Return the next day, as databases store it."""
    return (day + datetime.timedelta(days=1)).isoformat()


def interval_label(interval: str) -> str:
    """Format an interval of a report: "2026-03-16" as "Mar 16, 2026", "2026-03" as "Mar 2026"."""
    year, *rest = interval.split("-")
    if not rest:
        return year
    month = _MONTHS[int(rest[0]) - 1].capitalize()
    return f"{month} {int(rest[1])}, {year}" if len(rest) > 1 else f"{month} {year}"


def first_of_month(back: int) -> datetime.date:
    """Return the first day of the month that is `back` months ago."""
    months = TODAY.year * 12 + TODAY.month - 1 - back
    return datetime.date(months // 12, months % 12 + 1, 1)


RANGES: dict[str, tuple[str, Callable[[], list[str]], int]] = {
    "24h": ("Last 24 Hours", lambda: _hours(24), 13),
    "7d": ("Last 7 Days", lambda: _days(7), 10),
    "1m": ("Current Month", lambda: _days(TODAY.day), 10),
    "1y": ("Last 12 Months", lambda: [first_of_month(n).isoformat()[:7] for n in range(11, -1, -1)], 7),
}
"""Time ranges of the dashboard's chart: label, start of every bar, and the length of the time prefix of a bar."""


def _hours(count: int) -> list[str]:
    now = datetime.datetime.combine(TODAY, datetime.time(10))
    return [f"{now - datetime.timedelta(hours=n):%Y-%m-%d %H}" for n in range(count - 1, -1, -1)]


def _days(count: int) -> list[str]:
    return [(TODAY - datetime.timedelta(days=n)).isoformat() for n in range(count - 1, -1, -1)]
