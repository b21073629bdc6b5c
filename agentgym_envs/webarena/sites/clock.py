"""The sites' clock, which stands still: nothing in an episode depends on when it is played."""

from __future__ import annotations

import datetime
import random

NOW = datetime.datetime(2026, 3, 16, 10, 30)
"""A Monday."""
TODAY = NOW.date()
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""By ourselves: a program may have set another language."""


def stamp(moment: datetime.datetime = NOW) -> str:
    """A moment as databases hold it: "2026-03-16 10:30:00"."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def some_time_ago(rng: random.Random, *, least_days: float = 0.1, most_days: float) -> str:
    """A moment of the past, evenly drawn, as databases hold it."""
    return stamp(NOW - datetime.timedelta(seconds=int(86_400 * rng.uniform(least_days, most_days))))


def later(moment: str, rng: random.Random, *, most_days: float) -> str:
    """A moment between a stored one and now, at most so many days after it."""
    then = datetime.datetime.fromisoformat(moment)
    room = min(86_400 * most_days, (NOW - then).total_seconds() - 60)
    return stamp(then + datetime.timedelta(seconds=int(rng.uniform(0, max(room, 0)))))


def day(moment: str) -> str:
    """A stored moment as pages tell it: "Mar 16, 2026"."""
    then = datetime.datetime.fromisoformat(moment)
    return f"{_MONTHS[then.month - 1]} {then.day}, {then.year}"


def minute(moment: str) -> str:
    """A stored moment with its time of day: "Mar 16, 2026, 10:30 AM"."""
    then = datetime.datetime.fromisoformat(moment)
    return f"{day(moment)}, {then.hour % 12 or 12}:{then:%M} {'AM' if then.hour < 12 else 'PM'}"


def ago(moment: str) -> str:
    """How long ago a stored moment was, in its largest unit: "3 days ago"."""
    seconds = (NOW - datetime.datetime.fromisoformat(moment)).total_seconds()
    for unit, length in (("year", 31_536_000), ("month", 2_592_000), ("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count >= 1:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
