"""Lists of words, as the generators of worlds are written."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """The words of a text, by its white space."""
    return tuple(text.split())


def lines(text: str) -> tuple[str, ...]:
    """The lines of a text that are not empty, without the space around them."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())
