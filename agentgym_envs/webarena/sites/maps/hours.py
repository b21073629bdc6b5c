"""Times of day and opening hours."""

from __future__ import annotations

import datetime
import random
import re

from agentgym_envs.webarena.sites.clock import NOW, some_time_ago, stamp

_DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ALWAYS = "open 24 hours"


def waking_hour(rng: random.Random, *, most_days: float) -> str:
    """Draw a past time in the daytime, as databases store it."""
    moment = datetime.datetime.fromisoformat(some_time_ago(rng, least_days=0.5, most_days=most_days))
    if moment.hour < 7:
        moment += datetime.timedelta(hours=rng.randint(7, 10))
    return stamp(min(moment, NOW - datetime.timedelta(minutes=rng.randint(20, 90))))


def days(hours: str) -> list[tuple[str, str]]:
    """Convert opening hours such as "Mo-Fr 09:00-18:00; Sa 09:00-13:00" to (day, times) for display."""
    if hours == "24/7":
        return [("Every day", _ALWAYS)]
    spans: list[list[str]] = [[] for _ in _NAMES]
    for part in hours.split(";"):
        which, _, span = part.strip().partition(" ")
        for weekday in _weekdays(which):
            spans[weekday] = [*spans[weekday], span] if _is_second(spans[weekday], span) else [span]
    return [(name, ", ".join(times).replace("-", "–") or "closed") for name, times in zip(_NAMES, spans, strict=True)]


def is_open(hours: str) -> bool:
    """Return True if the opening hours include the current time."""
    if hours == "24/7":
        return True
    now, text = f"{NOW:%H:%M}", days(hours)[NOW.weekday()][1]
    return any(first <= now < last for first, last in re.findall(r"(\d\d:\d\d)–(\d\d:\d\d)", text))


def is_valid(hours: str) -> bool:
    """Return True if `days` can read a text as opening hours."""
    day = f"(?:{'|'.join(_DAYS)})"
    rule = rf"{day}(?:-{day})?(?:,{day}(?:-{day})?)* ([01]\d|2[0-4]):[0-5]\d-([01]\d|2[0-4]):[0-5]\d"
    return hours == "24/7" or re.fullmatch(rf"{rule}(?:; {rule}){{0,6}}", hours, re.ASCII) is not None


def _weekdays(which: str) -> list[int]:
    """Return the indices of the weekdays in "Mo-We,Fr"; "Fr-Mo" includes the weekend."""
    indices = []
    for part in which.split(","):
        first, _, last = part.partition("-")
        start = _DAYS.index(first)
        count = (_DAYS.index(last or first) - start) % 7 + 1
        indices += [(start + step) % 7 for step in range(count)]
    return indices


def _is_second(spans: list[str], span: str) -> bool:
    """Return True if a time span follows those of the same day, such as the afternoon, and does not replace them."""
    return bool(spans) and span[:5] >= spans[-1][-5:]
