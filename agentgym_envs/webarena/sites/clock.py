"""The fixed clock of the sites. No result of an episode depends on when the episode is played."""

from __future__ import annotations

import datetime
import random

NOW = datetime.datetime(2026, 3, 16, 10, 30)
"""The current time on every site. It is a Monday."""
TODAY = NOW.date()
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""A fixed list, since strftime depends on the locale of the process."""


def stamp(moment: datetime.datetime = NOW) -> str:
    """Format a time as databases store it: "2026-03-16 10:30:00"."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def some_time_ago(rng: random.Random, *, least_days: float = 0.1, most_days: float) -> str:
    """Return a uniformly distributed past time, as databases store it."""
    return stamp(NOW - datetime.timedelta(seconds=int(86_400 * rng.uniform(least_days, most_days))))


def later(moment: str, rng: random.Random, *, most_days: float) -> str:
    """Return a time between a stored time and now, at most `most_days` after it."""
    then = datetime.datetime.fromisoformat(moment)
    room = min(86_400 * most_days, (NOW - then).total_seconds() - 60)
    return stamp(then + datetime.timedelta(seconds=int(rng.uniform(0, max(room, 0)))))


def day(moment: str) -> str:
    """Format the day of a stored time for a page: "Mar 16, 2026"."""
    then = datetime.datetime.fromisoformat(moment)
    return f"{_MONTHS[then.month - 1]} {then.day}, {then.year}"


def minute(moment: str) -> str:
    """Format a stored time to the minute: "Mar 16, 2026, 10:30 AM"."""
    then = datetime.datetime.fromisoformat(moment)
    return f"{day(moment)}, {then.hour % 12 or 12}:{then:%M} {'AM' if then.hour < 12 else 'PM'}"


def ago(moment: str) -> str:
    """Format the age of a stored time in its largest unit: "3 days ago"."""
    seconds = (NOW - datetime.datetime.fromisoformat(moment)).total_seconds()
    for unit, length in (("year", 31_536_000), ("month", 2_592_000), ("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count >= 1:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
