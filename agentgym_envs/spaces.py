"""The space of observations and actions: Unicode text up to a length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np

_SAMPLE_ALPHABET = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789 ,.:\n é漢🙂"))


class Utf8Text(gym.Space[str]):
    """All strings of at most `max_length` characters that can be encoded as UTF-8.

    Gymnasium's `Text` has a fixed alphabet (alphanumeric by default, without space and newline) and checks membership
    character by character. This space allows all of Unicode, and its check takes nanoseconds for ASCII.
    """

    def __init__(self, max_length: int, seed: int | np.random.Generator | None = None) -> None:
        """`max_length` is counted in Unicode code points and must be positive."""
        if max_length < 1:
            raise ValueError(f"Utf8Text needs max_length >= 1, got {max_length}")
        self.max_length = int(max_length)
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no flat numeric form."""
        return False

    def contains(self, x: Any) -> bool:
        """True for a string that is short enough and has no lone surrogates."""
        return isinstance(x, str) and len(x) <= self.max_length and (x.isascii() or _encodable(x))

    def sample(self, mask: None = None, probability: None = None) -> str:
        """A random text of up to 64 characters, for smoke tests."""
        if mask is not None or probability is not None:
            raise ValueError("Utf8Text.sample takes neither a mask nor a probability")
        length = self.np_random.integers(1, min(64, self.max_length) + 1)
        return "".join(self.np_random.choice(_SAMPLE_ALPHABET, size=length))

    def to_jsonable(self, sample_n: Iterable[str]) -> list[str]:
        """Return the strings, which are valid JSON values."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """Return the strings."""
        return [str(text) for text in sample_n]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Utf8Text) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((Utf8Text, self.max_length))

    def __repr__(self) -> str:
        return f"Utf8Text({self.max_length})"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
