"""How values are written: as a page tells them, and all the ways in which an answer may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
UNITS = {
    "peak_m": ("m", "metres", "meters"),
    "area": ("sq km", "square kilometres", "square kilometers", "km2", "km²"),
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
"""The units of quantities, the one that pages use first."""


def quantity(value: float) -> str:
    """A number with commas between thousands."""
    return f"{value:,}"


def date(value: Sequence[Any]) -> str:
    """A day and a month, with the year if there is one: "5 July 1962"."""
    year = f" {value[2]}" if len(value) > 2 and isinstance(value[2], int) else ""
    return f"{value[0]} {MONTHS[value[1] - 1]}{year}"


def accepted(attribute: str, value: Any) -> list[str]:
    """What counts as the answer, the canonical one first."""
    if attribute in ("independence", "holiday"):
        return _dates(value)
    if attribute == "phone":
        digits = value[0].lstrip("+")
        return _distinct([value[0], digits, f"00{digits}", digits.replace("-", " "), f"+{digits.replace('-', ' ')}"])
    if attribute == "tld":
        return [value[0], value[0].lstrip("."), value[0].upper()]
    if isinstance(value, list):
        return _distinct([name for given in value for name in _spellings(given, attribute)])
    return [str(value)] if isinstance(value, str) else quantities(value, UNITS.get(attribute, ()))


def quantities(value: float, units: Sequence[str] = ()) -> list[str]:
    """A number with and without commas, bare and with a unit."""
    bare = [quantity(value), str(value)]
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
    """What follows the digits of an ordinal: "st", "nd", "rd" or "th"."""
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _spellings(name: str, attribute: str) -> list[str]:
    if attribute == "capital":
        return (
            [name, name.removesuffix(" City"), f"City of {name}"]
            if name.endswith(" City")
            else [name, f"City of {name}"]
        )
    return [name, f"the {name}"] if attribute == "currency" else [name]


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))
