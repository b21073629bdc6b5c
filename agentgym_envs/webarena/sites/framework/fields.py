"""The fields of a query string or a form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qsl, urlencode

MOST_FIELDS = 200
MOST_TEXT = 10_000
_LARGEST = 10**12  # far below what SQLite's integers hold
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class Fields:
    """The fields of a query string or a form. Every method accepts arbitrary input and returns a safe value."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self._pairs = [(name, _CONTROL.sub("", value)) for name, value in pairs[:MOST_FIELDS]]

    @classmethod
    def parse(cls, encoded: bytes) -> Fields:
        """Parse the bytes of a query string or of a URL-encoded form."""
        return cls(parse_qsl(encoded.decode("utf-8", "replace"), keep_blank_values=True, errors="replace"))

    def __contains__(self, name: str) -> bool:
        return any(name == other for other, _ in self._pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def text(self, name: str, default: str = "", *, most: int = MOST_TEXT) -> str:
        """Return the last value of a field, stripped and truncated to `most` characters."""
        values = self.all(name)
        return values[-1].replace("\r\n", "\n").strip()[:most] if values else default

    def all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return [value for other, value in self._pairs if other == name]

    def number(self, name: str, default: int = 0, *, least: int = 0, most: int = _LARGEST) -> int:
        """Return a whole number within these bounds, or the default."""
        value = _whole(self.text(name))
        return default if value is None or not least <= value <= most else value

    def numbers(self, name: str) -> list[int]:
        """Return every whole number of a field, such as the ids of the checked rows of a table."""
        numbers = map(_whole, self.all(name))
        return [value for value in numbers if value is not None and abs(value) <= _LARGEST]

    def money(self, name: str) -> int | None:
        """Return an amount such as "$1,249.50" in cents; None for anything else."""
        match = re.fullmatch(r"\$?\s?(\d{1,9}|\d{1,3}(?:,\d{3}){1,2})(?:\.(\d{1,2}))?", self.text(name), re.ASCII)
        if match is None:
            return None
        return 100 * int(match[1].replace(",", "")) + int((match[2] or "0").ljust(2, "0"))

    def is_checked(self, name: str) -> bool:
        """Return True if a checkbox is on."""
        return self.text(name) not in ("", "0", "off")

    def choice(self, name: str, choices: Sequence[str], default: str = "") -> str:
        """Return the value if it is one of the choices, otherwise the default."""
        value = self.text(name)
        return value if value in choices else default

    def changed(self, **values: object) -> str:
        """Return the query string with some fields replaced, or removed if None: "?q=lamp&page=2"."""
        kept = [(name, value) for name, value in self._pairs if name not in values]
        added = [(name, str(value)) for name, value in values.items() if value is not None]
        return "?" + urlencode([*kept, *added])


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,15}", text.strip(), re.ASCII) else None
