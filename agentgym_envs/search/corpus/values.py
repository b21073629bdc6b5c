"""The written forms of values: the one that pages use, and all that are accepted as answers."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

_LENGTHS = ("peak_m", "area", "coast", "border", "roads", "rail")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_LETTERS = str.maketrans("øØłıđ", "oOlid")
UNITS = {
    "peak_m": ("m", "metres", "meters"),
    "area": ("sq km", "square kilometres", "square kilometers", "square km", "km2", "km²"),
    "coast": ("km", "kilometres", "kilometers"),
    "border": ("km", "kilometres", "kilometers"),
    "roads": ("km", "kilometres", "kilometers"),
    "rail": ("km", "kilometres", "kilometers"),
    "population": ("people", "inhabitants"),
    "life": ("years",),
    "elevation": ("feet", "ft"),
    "weight": ("u", "amu"),
    "": (),
}
"""Units of quantities; pages use the first one."""


def quantity(value: float) -> str:
    """Format a number with commas between thousands."""
    return f"{value:,}"


def date(value: Sequence[Any]) -> str:
    """Format a day and a month, with the year if there is one: "5 July 1962"."""
    year = f" {value[2]}" if len(value) > 2 and isinstance(value[2], int) else ""
    return f"{value[0]} {MONTHS[value[1] - 1]}{year}"


def written(attribute: str, names: Sequence[str]) -> str:
    """Format names for a page: the canonical one, followed by alternatives in brackets."""
    others = names[2:3] if attribute == "currency" else _others(names)[: 1 if attribute == "anthem" else 2]
    name = f'"{names[0]}"' if attribute == "anthem" else names[0]
    return f"{name} ({', '.join(others)})" if others else name


def _others(names: Sequence[str]) -> list[str]:
    """Further names that are not part of the first name when written without accents."""
    return [name for name in names[1:] if _plain(name) not in _plain(names[0])]


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.translate(_LETTERS))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def accepted(attribute: str, value: Any) -> list[str]:
    """Return the accepted answers, the canonical one first."""
    if attribute in ("independence", "holiday"):
        return _dates(value)
    if attribute == "phone":
        digits = value[0].lstrip("+")
        return _distinct([value[0], digits, digits.replace("-", " "), f"+{digits.replace('-', ' ')}"])
    if attribute == "tld":
        return [value[0], value[0].lstrip("."), value[0].upper()]
    if isinstance(value, list):
        return _distinct([*(n for name in value for n in _spellings(name, attribute)), written(attribute, value)])
    if isinstance(value, str):
        return [value]
    return quantities(value, UNITS.get(attribute, ()), _roundings(attribute, value))


def _roundings(attribute: str, value: float) -> list[float]:
    """Round a length or a weight to fewer decimals: a weight keeps three digits, a length at least its whole part."""
    decimals = len(str(value).partition(".")[2]) if isinstance(value, float) else 0
    if attribute not in (*_LENGTHS, "weight"):
        return []
    minimum = max(0, 3 - len(str(int(value)))) if attribute == "weight" else 0
    exact = Decimal(str(value))  # halves round up, as people do
    rounded = (exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) for digits in range(minimum, decimals))
    return [float(number) if number.as_tuple().exponent else int(number) for number in rounded]


def quantities(value: float, units: Sequence[str] = (), rounded: Sequence[float] = ()) -> list[str]:
    """Return a number and its roundings, with and without commas, and with and without a unit."""
    bare = [text for number in (value, *rounded) for text in (quantity(number), str(number))]
    return _distinct([*bare, *(f"{number} {unit}" for unit in units for number in bare)])


def _dates(value: Sequence[Any]) -> list[str]:
    day, month, *rest = value
    name, th = MONTHS[month - 1], f"{day}{ordinal_suffix(day)}"
    year = rest[0] if rest and isinstance(rest[0], int) else None
    if year is None:
        return [
            f"{day} {name}",
            f"{name} {day}",
            f"{th} {name}",
            f"{th} of {name}",
            f"{name} {th}",
            f"the {th} of {name}",
        ]
    return [
        f"{day} {name} {year}",
        f"{name} {day}, {year}",
        f"{th} {name} {year}",
        f"{th} of {name} {year}",
        f"{th} of {name}, {year}",
        f"{name} {th}, {year}",
        f"{day} {name}, {year}",
        f"{year}-{month:02}-{day:02}",
    ]


def ordinal_suffix(number: int) -> str:
    """Return the suffix of an ordinal: "st", "nd", "rd" or "th"."""
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _spellings(name: str, attribute: str) -> list[str]:
    if attribute == "capital":
        return [name, name.removesuffix(" City")]
    return [name, f"the {name}"] if attribute == "currency" else [name]


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))
