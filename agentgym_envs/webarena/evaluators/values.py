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
_CURRENCY = r"us\$|[$€£¥]|(?<![a-z])(?:usd|eur|gbp|jpy)(?=[\s\d])"
_QUANTITY = re.compile(
    rf"(?P<sign>(?<![\w.)])[-+](?=[$€£¥\d]))?(?:(?P<money>{_CURRENCY})\s?)?{_NOT_WITHIN_A_NUMBER}(?P<digits>{_DIGITS})"
    r"(?!\d|[.,:/-]\d)(?:\s?(?P<unit>km/h|[a-z]+|[%$€£¥](?!\d))(?![a-z]))?"
)
"""A sign touches its number: a dash with a space after it is punctuation."""
_JOINT = re.compile(r"[\s,]*(?:and )?")
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", Decimal(1))),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("time", Decimal(60))),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("time", Decimal(3600))),
    **dict.fromkeys(("day", "days"), ("time", Decimal(86400))),
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), ("length", Decimal(1))),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), ("length", Decimal(1000))),
    **dict.fromkeys(("mi", "mile", "miles"), ("length", Decimal("1609.344"))),
    **dict.fromkeys(("ft", "foot", "feet"), ("length", Decimal("0.3048"))),
    **dict.fromkeys(("km/h", "kmh", "kph"), ("speed", Decimal(1))),
    **dict.fromkeys(("mph",), ("speed", Decimal("1.609344"))),
    **dict.fromkeys(("%", "percent"), ("%", Decimal(1))),
    **dict.fromkeys(("$", "us$", "usd", "dollar", "dollars"), ("$", Decimal(1))),
    **dict.fromkeys(("cent", "cents"), ("$", Decimal("0.01"))),
    **{word: ("", Decimal(number)) for word, number in (("dozen", 12), ("hundred", 100), ("thousand", 1000))},
    **{word: ("", Decimal(number)) for word, number in (("million", 10**6), ("billion", 10**9))},
    **dict.fromkeys(("€", "eur", "euro", "euros"), ("€", Decimal(1))),
    **dict.fromkeys(("£", "gbp", "pounds"), ("£", Decimal(1))),
    **dict.fromkeys(("¥", "yen", "jpy"), ("¥", Decimal(1))),
}
_UNDERSTOOD = ("%", "$", "€", "£", "¥")  # a number without a unit matches these
_COMPOSITE = ("time", "length", "$")  # dimensions of "1 h 35 min" and "49 dollars and 99 cents"
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
_MONTH = r"(?P<month>[a-z]{3,9})\.?"
_DATES = [
    re.compile(rf"(?<![\d./-]){pattern}(?![\d/-]|\.\d)")
    for pattern in (
        r"(?P<year>\d{4})(?P<separator>[-/.])(?P<month>\d{1,2})(?P=separator)(?P<day>\d{1,2})",
        r"(?P<year>(?:19|20)\d{2})(?P<month>\d{2})(?P<day>\d{2})",
        r"(?P<month>\d{1,2})(?P<mark>[/-])(?P<day>\d{1,2})(?P=mark)(?P<year>\d{4}|(?<=/)\d{2})",
        r"(?P<day>\d{1,2})\. ?(?P<month>\d{1,2})\. ?(?P<year>\d{4})",
        rf"{_MONTH} {_ORDINAL},? (?P<year>\d{{4}})",
        rf"{_ORDINAL}\.?[ -](?:of )?{_MONTH},?[ -](?P<year>\d{{4}})",
        rf"(?P<year>\d{{4}}),?[ -]{_MONTH}[ -]{_ORDINAL}",
    )
]
_MONTH_NAME = "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + "|sept"
PART_OF_DATE = re.compile(
    rf"\b(?:{_MONTH_NAME})\.? \d{{1,4}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTH_NAME})\b"
)
"""A day and a month, or a month and a year."""
_TIMES = re.compile(
    r"(?<![\d:.,/])(?P<hour>\d{1,2})(?:[:](?P<minute>\d{2})(?::00)?)?(?: o'clock)?"
    r"(?: ?(?P<half>[ap])\.?m\b\.?| (?:in the |at )(?P<part>morning|afternoon|evening|night))?(?![\d:])"
    r"|(?P<word>noon|midday|midnight)\b"
)


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
    found = find_quantities(text)
    if len(found) != 1 or (text[: found[0].start] + text[found[0].end :]).strip(" .,") or _is_code(found[0].digits):
        return None
    return found[0].quantity


def quantities_in(text: str) -> Iterator[Quantity]:
    """Yield all quantities in a cleaned text; one with a unit is also yielded as a bare number."""
    for found in find_quantities(text):
        if found.quantity is not None or not found.touching:  # otherwise it is a word, such as "1st"
            yield Quantity(found.number)
        if found.quantity is not None and found.quantity.dimension:
            yield found.quantity


class Found(NamedTuple):
    """A number in a text: its span, its digits without sign, its value, the word after it, and what it means.

    `quantity` is None if the word is not a known unit. The parts of "1 h 35 min" are one quantity, and `number` is then
    its value. `touching` is True if the word begins at once after the digits.
    """

    start: int
    end: int
    digits: str
    number: Decimal
    unit: str
    quantity: Quantity | None
    touching: bool = False


def find_quantities(text: str) -> list[Found]:
    """Find all numbers in a cleaned text."""
    found: list[Found] = []
    for match in _QUANTITY.finditer(text):
        one = _found(match)
        joined = _joined(found[-1], one, text) if found else None
        if joined is None:
            found.append(one)
        else:
            found[-1] = joined
    return found


def _found(match: re.Match[str]) -> Found:
    number = Decimal(match["digits"].replace(",", ""))
    number = -number if match["sign"] == "-" else number
    known = _UNITS.get(match["money"] or match["unit"] or "")
    touching = match.start("unit") == match.end("digits")
    unknown = touching and match["unit"] not in _UNITS  # "$49k"
    quantity = Quantity(number * known[1], known[0]) if known and not unknown else None
    if match["money"] is None and match["unit"] is None:
        quantity = Quantity(number)
    end = match.end("unit") if match["unit"] in _UNITS else match.end("digits")
    return Found(match.start(), end, match["digits"], number, match["money"] or match["unit"] or "", quantity, touching)


def _joined(one: Found, other: Found, text: str) -> Found | None:
    """Join two adjacent quantities, the second in a smaller unit of the same dimension; None if they are not so."""
    if one.quantity is None or other.quantity is None or not _JOINT.fullmatch(text, one.end, other.start):
        return None
    dimension, factor = _UNITS.get(one.unit, ("", Decimal(0)))
    smaller, part = _UNITS.get("min" if dimension == "time" and other.unit == "m" else other.unit, ("", Decimal(0)))
    if dimension not in _COMPOSITE or smaller != dimension or part >= factor:
        return None
    value = one.quantity.value + other.number * part
    return one._replace(end=other.end, number=value, quantity=Quantity(value, dimension))


def unit_of(word: str) -> tuple[str, Decimal] | None:
    """Return the dimension of a unit and its size in the base unit; None if it is not one."""
    return _UNITS.get(word)


def read_date(text: str) -> datetime.date | None:
    """Parse a cleaned text as a date, with or without a weekday before it; None if it is anything else.

    Accepts 2023-01-05, 20230105, 1/5/2023 (the month first, as in the United States), 13/1/2023 (as there is no 13th
    month), 5.1.2023 (the day first), Jan 5, 2023 and 5 January 2023.
    """
    text = re.sub(r"^[a-z]{3,6}day,? (?:the )?", "", text)
    for pattern in _DATES:
        match = pattern.fullmatch(text)
        if match:
            return _date(match)
    return None


def dates_in(text: str) -> Iterator[datetime.date]:
    """Yield all dates in a cleaned text."""
    return (date for _, _, date in find_dates(text))


def find_dates(text: str) -> list[tuple[int, int, datetime.date]]:
    """Find all dates in a cleaned text: start, end, date."""
    matches = [match for pattern in _DATES for match in pattern.finditer(text)]
    return [(*match.span(), date) for match in matches if (date := _date(match)) is not None]


def find_times(text: str) -> list[tuple[int, int, int]]:
    """Find all times of day in a cleaned text: start, end, minutes from midnight; "6" alone is too vague."""
    return [(*match.span(), time) for match in _TIMES.finditer(text) if (time := _time(match)) is not None]


def read_time(text: str) -> int | None:
    """Parse a cleaned text as a time of day, in minutes from midnight; None if it is anything else."""
    match = _TIMES.fullmatch(text)
    return _time(match) if match else None


def _time(match: re.Match[str]) -> int | None:
    if match["word"]:
        return 0 if match["word"] == "midnight" else 720
    half = match["half"] or {None: None, "morning": "a"}.get(match["part"], "p")
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if hour > 24 or minute > 59 or (half is None and match["minute"] is None):
        return None
    if half is not None and hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour % 24 * 60 + minute


def _is_code(digits: str) -> bool:
    return re.match(r"0\d", digits) is not None


def _date(match: re.Match[str]) -> datetime.date | None:
    """The date of a match, or None; a number above 12 in the place of the month is the day."""
    month, day, year = match["month"], int(match["day"]), int(match["year"])
    number = int(month) if month.isdigit() else _month(month)
    mark = match.groupdict().get("mark")
    if mark and number > 12 and year > 99:
        number, day = day, number
    elif mark == "-" and day <= 12 and day != number:
        return None  # 5-6-2025 has both meanings
    try:
        return datetime.date(year + 2000 if year < 100 else year, number, day)
    except ValueError:
        return None


def _month(name: str) -> int:
    """The number of a month, 1 to 12; 0 for any other word."""
    return next((number for number, month in enumerate(_MONTHS, 1) if month.startswith(name)), 0)
