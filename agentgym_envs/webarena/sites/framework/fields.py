"""What a query or a form says, by names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qsl, urlencode

MOST_FIELDS = 200
MOST_TEXT = 10_000
_LARGEST = 10**12  # far below what SQLite's integers hold
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class Fields:
    """The fields of a form or query, read with care: whatever a stranger sends, these give what they say."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self._pairs = [(name, _CONTROL.sub("", value)) for name, value in pairs[:MOST_FIELDS]]

    @classmethod
    def parse(cls, encoded: bytes) -> Fields:
        """Fields from what a URL or a form carries."""
        return cls(parse_qsl(encoded.decode("utf-8", "replace"), keep_blank_values=True, errors="replace"))

    def __contains__(self, name: str) -> bool:
        return any(name == other for other, _ in self._pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def text(self, name: str, default: str = "", *, most: int = MOST_TEXT) -> str:
        """The last value of that name, without white space around it, in at most `most` characters."""
        values = self.all(name)
        return values[-1].replace("\r\n", "\n").strip()[:most] if values else default

    def all(self, name: str) -> list[str]:
        """Every value of that name."""
        return [value for other, value in self._pairs if other == name]

    def number(self, name: str, default: int = 0, *, least: int = 0, most: int = _LARGEST) -> int:
        """A whole number in these bounds; the default for anything else."""
        value = _whole(self.text(name))
        return default if value is None or not least <= value <= most else value

    def numbers(self, name: str) -> list[int]:
        """Every whole number of that name, such as the rows of a table that were ticked."""
        found = map(_whole, self.all(name))
        return [value for value in found if value is not None and abs(value) <= _LARGEST]

    def money(self, name: str) -> int | None:
        """An amount such as "$1,249.50" in cents; None for anything else."""
        found = re.fullmatch(r"\$?\s?(\d{1,9}|\d{1,3}(?:,\d{3}){1,2})(?:\.(\d{1,2}))?", self.text(name), re.ASCII)
        if found is None:
            return None
        return 100 * int(found[1].replace(",", "")) + int((found[2] or "0").ljust(2, "0"))

    def ticked(self, name: str) -> bool:
        """Whether a checkbox was on."""
        return self.text(name) not in ("", "0", "off")

    def choice(self, name: str, choices: Sequence[str], default: str = "") -> str:
        """A value that is one of the choices; the default for anything else."""
        value = self.text(name)
        return value if value in choices else default

    def changed(self, **values: object) -> str:
        """The query with some fields replaced, or left away where the value is None: "?q=lamp&page=2"."""
        kept = [(name, value) for name, value in self._pairs if name not in values]
        added = [(name, str(value)) for name, value in values.items() if value is not None]
        return "?" + urlencode([*kept, *added])


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,15}", text.strip(), re.ASCII) else None
