"""Helpers for word lists that are written as one string."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """Split a text at white space."""
    return tuple(text.split())


def lines(text: str) -> tuple[str, ...]:
    """Return the stripped, non-empty lines of a text."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())
