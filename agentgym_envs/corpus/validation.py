"""Patterns and ranges of the facts: one row per attribute.

`scripts/make_search_corpus.py` drops values that fail, and a test checks the answers of questions by the same rows.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from typing import Any, NamedTuple


class Validator(NamedTuple):
    """A rule for one attribute.

    Attributes:
        table: the table of the attribute: countries, cities, airports or elements.
        field: its column.
        rule: the rule as a sentence, for the report.
        valid: returns true for a valid value. It never gets a missing one.
    """

    table: str
    field: str
    rule: str
    valid: Callable[[Any], bool]


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _first_matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and bool(value) and _matches(pattern)(value[0])


def _within(least: float, most: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def is_date(value: Any) -> bool:
    """Return true for a day and a month, with a year from 500 to 2015 if the third item is a number."""
    if not isinstance(value, list) or len(value) < 2:
        return False
    day, month, *rest = value
    year = rest[0] if rest and isinstance(rest[0], int) else 2000
    return 1 <= month <= 12 and 500 <= year <= 2015 and 1 <= day <= monthrange(year, month)[1]


def is_cas_number(value: Any) -> bool:
    """Return true for a CAS registry number with the right check digit.

    Source: https://www.cas.org/support/documentation/chemical-substances/checkdig
    """
    if not _matches(r"\d{2,7}-\d{2}-\d")(value):
        return False
    *digits, last = (int(digit) for digit in value if digit.isdigit())
    return sum(place * digit for place, digit in enumerate(reversed(digits), 1)) % 10 == last


_NAME = r"[^\W\d_].*[^\W_].*|[^\W\d_]+"
_ZONE = r"[A-Z][A-Za-z_]+(/[A-Z][A-Za-z_-]+){1,2}"
VALIDATORS: tuple[Validator, ...] = (
    Validator("countries", "iso", "two letters", _matches("[A-Z]{2}")),
    Validator("countries", "capital", "a name", _first_matches(_NAME)),
    Validator("countries", "peak", "a name", _first_matches(_NAME)),
    Validator("countries", "anthem", "a title", _first_matches(_NAME)),
    Validator("countries", "currency", "a name", _first_matches(_NAME)),
    Validator("countries", "tld", "a dot and two letters", _first_matches(r"\.[a-z]{2}")),
    Validator("countries", "phone", "a plus and 1 to 3 digits, then up to 4", _first_matches(r"\+\d{1,3}(-\d{1,4})?")),
    Validator("countries", "independence", "a date of the calendar, until 2015", is_date),
    Validator("countries", "holiday", "a day of the calendar", is_date),
    Validator("countries", "peak_m", "1 to 8,850 m", _within(1, 8_850)),
    Validator("countries", "area", "0.4 to 17,100,000 sq km", _within(0.4, 17_100_000)),
    Validator("countries", "population", "40 to 1,400,000,000", _within(40, 1_400_000_000)),
    Validator("countries", "life", "49 to 90 years", _within(49, 90)),
    Validator("countries", "coast", "0 to 202,080 km", _within(0, 202_080)),
    Validator("countries", "border", "0 to 22,500 km", _within(0, 22_500)),
    Validator("countries", "roads", "6 to 6,600,000 km", _within(6, 6_600_000)),
    Validator("countries", "rail", "0.5 to 294,000 km", _within(0.5, 294_000)),
    Validator("cities", "name", "begins with a letter, a digit or an apostrophe", _matches(r"['’‘ʻ]?[^\W_].*")),
    Validator("cities", "population", "0 (unknown) or up to 26,000,000", _within(0, 26_000_000)),
    Validator("cities", "latitude", "-90 to 90 degrees", _within(-90, 90)),
    Validator("cities", "longitude", "-180 to 180 degrees", _within(-180, 180)),
    Validator("cities", "zone", "the name of a time zone", _matches(_ZONE)),
    Validator("airports", "iata", "three letters", _matches("[A-Z]{3}")),
    Validator("airports", "icao", "four letters", _matches("[A-Z]{4}")),
    Validator("airports", "city", "begins with a letter or a digit", _matches(r"[^\W_].*")),
    Validator("airports", "elevation", "-1,300 to 14,500 feet", _within(-1_300, 14_500)),
    Validator("airports", "zone", "the name of a time zone", _matches(_ZONE)),
    Validator("elements", "symbol", "one or two letters", _matches("[A-Z][a-z]?")),
    Validator("elements", "cas", "a CAS number with its check digit", is_cas_number),
    Validator("elements", "weight", "1 to 295", _within(1, 295)),
    Validator("elements", "year", "1600 to 2020", _within(1600, 2020)),
)  # fmt: skip
"""The rules, by table and attribute. They hold for single values; the script also compares sources."""


def find_validators(table: str, field: str) -> list[Validator]:
    """Return the rules of an attribute."""
    return [row for row in VALIDATORS if (row.table, row.field) == (table, field)]
