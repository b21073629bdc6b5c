"""Validation of forms."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Sequence

from agentgym_envs.webarena.sites.admin.days import HINT, OptionalDay, parse_day
from agentgym_envs.webarena.sites.framework.context import RequestContext

_PERCENT = re.compile(r"(\d{1,3})(?:\.0{1,4})?\s?%?", re.ASCII)
_EMAIL = re.compile(r"[^\s@<>\"']{1,64}@[\w-]+(?:\.[\w-]+)+")


class CheckedForm:
    """A submitted form. Its methods add messages to `errors`; if there are any, no value may be used."""

    def __init__(self, context: RequestContext) -> None:
        self.fields = context.form
        self.errors: list[str] = []

    def text(self, name: str, label: str, *, most: int = 200, needed: bool = True) -> str:
        """Return a text."""
        value = self.fields.text(name)
        if needed and not value:
            self.errors.append(f"{label} is a required field.")
        if len(value) > most:
            self.errors.append(f"{label} may have at most {most} characters.")
        return value

    def amount(self, name: str, label: str, *, most: int = 10_000_000) -> int:
        """Return an amount of money in cents."""
        value = self.fields.money(name)
        if value is None or value > most:
            self.errors.append(f"{label} must be an amount such as 12.50.")
            return 0
        return value

    def amount_or_none(self, name: str, label: str) -> int | None:
        """Return an amount of money in cents; None if the field is empty."""
        return self.amount(name, label) if self.fields.text(name) else None

    def number(self, name: str, label: str, *, least: int = 0, most: int = 1_000_000) -> int:
        """Return a whole number within these bounds."""
        value = self.fields.number(name, least - 1, least=least, most=most)
        if value < least:
            self.errors.append(f"{label} must be a whole number from {least:,} to {most:,}.")
        return value

    def percent(self, name: str, label: str) -> int:
        """Return a whole percentage, typed as "5", "5%" or "5.0"."""
        match = _PERCENT.fullmatch(self.fields.text(name))
        value = int(match[1]) if match else 0
        if not 1 <= value <= 100:
            self.errors.append(f"{label} must be a whole number from 1 to 100.")
        return value

    def day(self, name: str, label: str) -> OptionalDay:
        """Return a day; None if the field is empty."""
        text = self.fields.text(name)
        value = parse_day(text)
        if text and value is None:
            self.errors.append(f"{label} must be a day such as {datetime.date(2026, 3, 16)} ({HINT}).")
        return value

    def choice(self, name: str, label: str, choices: Sequence[str]) -> str:
        """Return one of the choices."""
        value = self.fields.text(name)
        if value not in choices:
            self.errors.append(f"{label}: please choose one of the list.")
        return value

    def email(self, name: str, label: str) -> str:
        """Return an e-mail address."""
        value = self.text(name, label, most=120)
        if value and not _EMAIL.fullmatch(value):
            self.errors.append(f"{label} is not a valid e-mail address.")
        return value

    def flag(self, name: str) -> int:
        """Return 1 if a checkbox is on, otherwise 0."""
        return int(self.fields.is_checked(name))

    def refuse(self, why: str) -> None:
        """Add an error message."""
        self.errors.append(why)

    def as_sent(self, *names: str) -> dict[str, str]:
        """Return the fields as they were typed, to show them again."""
        return {name: self.fields.text(name) for name in names}


def slug_of(text: str) -> str:
    """Convert a text to a part of a URL: "Café & Bar" to "cafe-bar"."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80].strip("-")


def dollars(cents: int | None) -> str:
    """Format an amount for an input field: "12.50"; empty for None."""
    return "" if cents is None else f"{cents / 100:.2f}"


def choices(values: Sequence[str]) -> list[tuple[str, str]]:
    """Return (value, label) pairs for a select element; each value is its own label."""
    return [(value, value) for value in values]
