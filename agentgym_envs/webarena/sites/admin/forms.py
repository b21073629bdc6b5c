"""Forms: what they say, and what is wrong with it."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Sequence

from agentgym_envs.webarena.sites.admin.days import HINT, Limit, parse_day
from agentgym_envs.webarena.sites.framework.context import RequestContext

_PERCENT = re.compile(r"(\d{1,3})(?:\.0{1,4})?\s?%?", re.ASCII)
_EMAIL = re.compile(r"[^\s@<>\"']{1,64}@[\w-]+(?:\.[\w-]+)+")


class Checked:
    """A form that was sent. What is wrong is kept in `wrong`, to be told above the form; then no value counts."""

    def __init__(self, visit: RequestContext) -> None:
        self.form = visit.form
        self.wrong: list[str] = []

    def text(self, name: str, label: str, *, most: int = 200, needed: bool = True) -> str:
        """A text."""
        value = self.form.text(name)
        if needed and not value:
            self.wrong.append(f"{label} is a required field.")
        if len(value) > most:
            self.wrong.append(f"{label} may have at most {most} characters.")
        return value

    def amount(self, name: str, label: str, *, most: int = 10_000_000) -> int:
        """An amount of money, in cents."""
        value = self.form.money(name)
        if value is None or value > most:
            self.wrong.append(f"{label} must be an amount such as 12.50.")
            return 0
        return value

    def amount_or_none(self, name: str, label: str) -> int | None:
        """An amount of money, None for an empty field."""
        return self.amount(name, label) if self.form.text(name) else None

    def number(self, name: str, label: str, *, least: int = 0, most: int = 1_000_000) -> int:
        """A whole number in these bounds."""
        value = self.form.number(name, least - 1, least=least, most=most)
        if value < least:
            self.wrong.append(f"{label} must be a whole number from {least:,} to {most:,}.")
        return value

    def percent(self, name: str, label: str) -> int:
        """A whole percentage, however it is typed: "5", "5%" or "5.0"."""
        found = _PERCENT.fullmatch(self.form.text(name))
        value = int(found[1]) if found else 0
        if not 1 <= value <= 100:
            self.wrong.append(f"{label} must be a whole number from 1 to 100.")
        return value

    def day(self, name: str, label: str) -> Limit:
        """A day, None for an empty field."""
        text = self.form.text(name)
        value = parse_day(text)
        if text and value is None:
            self.wrong.append(f"{label} must be a day such as {datetime.date(2026, 3, 16)} ({HINT}).")
        return value

    def choice(self, name: str, label: str, choices: Sequence[str]) -> str:
        """One of the choices."""
        value = self.form.text(name)
        if value not in choices:
            self.wrong.append(f"{label}: please choose one of the list.")
        return value

    def email(self, name: str, label: str) -> str:
        """An address for e-mail."""
        value = self.text(name, label, most=120)
        if value and not _EMAIL.fullmatch(value):
            self.wrong.append(f"{label} is not a valid e-mail address.")
        return value

    def ticked(self, name: str) -> int:
        """1 or 0."""
        return int(self.form.ticked(name))

    def refuse(self, why: str) -> None:
        """Tell something else that is wrong."""
        self.wrong.append(why)

    def as_sent(self, *names: str) -> dict[str, str]:
        """The fields as they were typed, to be shown again."""
        return {name: self.form.text(name) for name in names}


def slug_of(text: str) -> str:
    """A text as a part of an address: "Café & Bar" as "cafe-bar"."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80].strip("-")


def dollars(cents: int | None) -> str:
    """An amount as a field holds it: "12.50"; empty for None."""
    return "" if cents is None else f"{cents / 100:.2f}"


def choices(values: Sequence[str]) -> list[tuple[str, str]]:
    """Values that are told as they are, for a list to choose from."""
    return [(value, value) for value in values]
