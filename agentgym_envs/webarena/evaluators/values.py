"""Values in texts, independent of notation: numbers with units, and dates."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

_PLAIN = str.maketrans("‘’‚‛“”„‟′″‐‑‒–—―−", "''''\"\"\"\"'\"-------", "\u00ad\u200b\u2060\ufeff")
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_NOT_WITHIN_A_NUMBER = r"(?<![\w.])(?<!\d[,:/-])"
_QUANTITY = re.compile(
    rf"(?P<sign>(?<![\w.)])[-+])?(?P<money>[$€£¥])?\s?{_NOT_WITHIN_A_NUMBER}(?P<digits>{_DIGITS})"
    r"(?!\d|[.,:/-]\d)(?:\s?(?P<unit>[a-z]+|[%$€£¥])(?![a-z]))?"
)
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", Decimal(1))),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("time", Decimal(60))),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("time", Decimal(3600))),
    **dict.fromkeys(("day", "days"), ("time", Decimal(86400))),
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), ("length", Decimal(1))),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), ("length", Decimal(1000))),
    **dict.fromkeys(("mi", "mile", "miles"), ("length", Decimal("1609.344"))),
    **dict.fromkeys(("ft", "foot", "feet"), ("length", Decimal("0.3048"))),
    **dict.fromkeys(("%", "percent"), ("%", Decimal(1))),
    **dict.fromkeys(("$", "usd", "dollar", "dollars"), ("$", Decimal(1))),
    **dict.fromkeys(("€", "eur", "euro", "euros"), ("€", Decimal(1))),
    **dict.fromkeys(("£", "gbp", "pounds"), ("£", Decimal(1))),
    **dict.fromkeys(("¥", "yen", "jpy"), ("¥", Decimal(1))),
}
_UNDERSTOOD = ("%", "$", "€", "£", "¥")  # a number without a unit matches these
_ORDINAL = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DATES = [
    re.compile(rf"(?<![\d./-]){pattern}(?![\d/-]|\.\d)")
    for pattern in (
        r"(?P<year>\d{4})(?P<separator>[-/.])(?P<month>\d{1,2})(?P=separator)(?P<day>\d{1,2})",
        r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4}|\d{2})",
        rf"(?P<month>[a-z]{{3,9}})\.? {_ORDINAL},? (?P<year>\d{{4}})",
        rf"{_ORDINAL} (?:of )?(?P<month>[a-z]{{3,9}})\.?,? (?P<year>\d{{4}})",
    )
]


class Quantity(NamedTuple):
    """A number in the base unit of its dimension, such as seconds; `dimension` is "" for a bare number."""

    value: Decimal
    dimension: str = ""

    def same(self, other: Quantity) -> bool:
        """Return True if both are equal; a bare number also equals an amount of money or a percentage."""
        dimensions = {self.dimension, other.dimension}
        understood = "" in dimensions and dimensions & set(_UNDERSTOOD)
        return self.value == other.value and (len(dimensions) == 1 or bool(understood))


def clean(text: str) -> str:
    """Normalize a text: lower case, without surrounding spaces and quotation marks.

    Runs of white space become one space, and typographic characters become plain ones. `clean(clean(t)) == clean(t)`.
    """
    text = unicodedata.normalize("NFKC", text).translate(_PLAIN)
    text = unicodedata.normalize("NFKC", text.casefold())
    text = " ".join(text.split())
    while len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1].strip()
    return text


def same_value(one: str, other: str) -> bool:
    """Return True if two texts are equal as texts, as quantities, or as dates."""
    one, other = clean(one), clean(other)
    if _without_stop(one) == _without_stop(other):
        return True
    quantities = read_quantity(one), read_quantity(other)
    if quantities[0] is not None and quantities[1] is not None:
        return quantities[0].same(quantities[1])
    dates = read_date(one), read_date(other)
    return dates[0] is not None and dates[0] == dates[1]


def _without_stop(text: str) -> str:
    return text[:-1] if len(text) > 1 and text[-1] == "." else text


def read_quantity(text: str) -> Quantity | None:
    """Parse a cleaned text as a quantity, such as "$1,200.50" or "1h 35min"; None if it is anything else.

    Digits with a leading zero are a code, not a number, such as "06516".
    """
    found = list(_QUANTITY.finditer(text))
    if not found or _QUANTITY.sub("", text).strip(" .,") or any(_is_code(match) for match in found):
        return None
    parts = [_quantity(match) for match in found]
    dimensions = {part.dimension for part in parts if part is not None}
    if None in parts or len(dimensions) > 1 or (len(parts) > 1 and not dimensions <= {"time", "length"}):
        return None
    return Quantity(sum((part.value for part in parts if part), Decimal(0)), dimensions.pop())


def quantities_in(text: str) -> Iterator[Quantity]:
    """Yield all quantities in a cleaned text; one with a unit is also yielded as a bare number."""
    for match in _QUANTITY.finditer(text):
        quantity = _quantity(match)
        if quantity is not None or match.end("digits") != match.start("unit"):  # otherwise it is a word, such as "1st"
            yield Quantity(_number(match))
        if quantity is not None and quantity.dimension:
            yield quantity


def read_date(text: str) -> datetime.date | None:
    """Parse a cleaned text as a date, with or without a weekday before it; None if it is anything else.

    Accepts 2023-01-05, 1/5/2023 (the month first, as in the United States), Jan 5, 2023 and 5 January 2023.
    """
    text = re.sub(r"^[a-z]{3,6}day,? ", "", text)
    for pattern in _DATES:
        match = pattern.fullmatch(text)
        if match:
            return _date(match)
    return None


def dates_in(text: str) -> Iterator[datetime.date]:
    """Yield all dates in a cleaned text."""
    for pattern in _DATES:
        for match in pattern.finditer(text):
            date = _date(match)
            if date is not None:
                yield date


def _is_code(match: re.Match[str]) -> bool:
    return re.match(r"0\d", match["digits"]) is not None


def _number(match: re.Match[str]) -> Decimal:
    number = Decimal(match["digits"].replace(",", ""))
    return -number if match["sign"] == "-" else number


def _quantity(match: re.Match[str]) -> Quantity | None:
    """The quantity of a match; None if its unit is unknown."""
    unit = match["money"] or match["unit"]
    if unit is None:
        return Quantity(_number(match))
    if unit not in _UNITS:
        return None
    dimension, factor = _UNITS[unit]
    return Quantity(_number(match) * factor, dimension)


def _date(match: re.Match[str]) -> datetime.date | None:
    month, year = match["month"], int(match["year"])
    number = int(month) if month.isdigit() else _month(month)
    try:
        return datetime.date(year + 2000 if year < 100 else year, number, int(match["day"]))
    except ValueError:
        return None


def _month(name: str) -> int:
    """The number of a month, 1 to 12; 0 for any other word."""
    return next((number for number, month in enumerate(_MONTHS, 1) if month.startswith(name)), 0)
