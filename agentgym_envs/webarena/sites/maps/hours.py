"""Times of day: when people are awake, and whether a place is open."""

from __future__ import annotations

import datetime
import random
import re

from agentgym_envs.webarena.sites.clock import NOW, some_time_ago, stamp

_DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ALWAYS = "open 24 hours"


def waking_hour(rng: random.Random, *, most_days: float) -> str:
    """A moment of the past at which few people are asleep, as databases hold it."""
    moment = datetime.datetime.fromisoformat(some_time_ago(rng, least_days=0.5, most_days=most_days))
    if moment.hour < 7:
        moment += datetime.timedelta(hours=rng.randint(7, 10))
    return stamp(min(moment, NOW - datetime.timedelta(minutes=rng.randint(20, 90))))


def days(hours: str) -> list[tuple[str, str]]:
    """Opening hours such as "Mo-Fr 09:00-18:00; Sa 09:00-13:00" by the days of the week, told in words."""
    if hours == "24/7":
        return [("Every day", _ALWAYS)]
    spans: list[list[str]] = [[] for _ in _NAMES]
    for part in hours.split(";"):
        which, _, span = part.strip().partition(" ")
        for place in _places(which):
            spans[place] = [*spans[place], span] if _is_second(spans[place], span) else [span]
    return [(name, ", ".join(told).replace("-", "–") or "closed") for name, told in zip(_NAMES, spans, strict=True)]


def is_open(hours: str) -> bool:
    """Whether opening hours include this very moment."""
    if hours == "24/7":
        return True
    now, told = f"{NOW:%H:%M}", days(hours)[NOW.weekday()][1]
    return any(first <= now < last for first, last in re.findall(r"(\d\d:\d\d)–(\d\d:\d\d)", told))


def is_valid(hours: str) -> bool:
    """Whether a text is opening hours of the form that `days` reads."""
    day = f"(?:{'|'.join(_DAYS)})"
    rule = rf"{day}(?:-{day})?(?:,{day}(?:-{day})?)* ([01]\d|2[0-4]):[0-5]\d-([01]\d|2[0-4]):[0-5]\d"
    return hours == "24/7" or re.fullmatch(rf"{rule}(?:; {rule}){{0,6}}", hours, re.ASCII) is not None


def _places(which: str) -> list[int]:
    """The days that "Mo-We,Fr" names, by their places in the week; "Fr-Mo" goes over the weekend."""
    found = []
    for part in which.split(","):
        first, _, last = part.partition("-")
        start = _DAYS.index(first)
        count = (_DAYS.index(last or first) - start) % 7 + 1
        found += [(start + step) % 7 for step in range(count)]
    return found


def _is_second(spans: list[str], span: str) -> bool:
    """Whether a span comes after those of the day, as an afternoon does, and does not replace them."""
    return bool(spans) and span[:5] >= spans[-1][-5:]
