"""`Rows`: which tokens each row of the cache holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_BLOCK = 64
_WORTH = 8
"""The min number of common tokens for which a copy of the beginning of another row is worth its cost."""


class Rows:
    """The tokens of every row, whether it is in use, and when it was last used.

    It decides where a sequence goes: to the row that holds its beginning, to a copy of one, or to an empty row.
    """

    def __init__(self) -> None:
        self.tokens = np.zeros((0, 0), np.int64)
        self.length = np.zeros(0, np.int64)
        self.busy = np.zeros(0, bool)
        self._used_at = np.zeros(0, np.int64)
        self._clock = 0

    def __len__(self) -> int:
        return len(self.length)

    @property
    def width(self) -> int:
        """The number of tokens that a row may hold."""
        return self.tokens.shape[1]

    def best_match(self, ids: Sequence[int]) -> tuple[int, int]:
        """The row with the longest common prefix with `ids`, and its length; a row that `ids` continues comes first.

        The prefix is shorter than `ids`, since at least one token must be read for its logits.
        """
        wanted = np.asarray(ids[:-1], np.int64)
        rows, common = np.flatnonzero(self.length > 0), 0
        while len(rows):
            block = wanted[common : min(common + _BLOCK, self.width)]
            if not len(block):
                break
            held = self.tokens[rows, common : common + len(block)]
            alike = _common(held == block, self.length[rows] - common)
            rows = rows[alike == alike.max()]
            common += int(alike.max())
            if alike.max() < len(block):
                break
        if not common:
            return -1, 0
        continued = rows[~self.busy[rows] & (self.length[rows] == common)]
        return int((continued if len(continued) else rows)[0]), common

    def is_continued(self, row: int, common: int) -> bool:
        """True if the row is idle and ends where the common prefix ends, so that it can be extended in place."""
        return row >= 0 and not bool(self.busy[row]) and int(self.length[row]) == common

    def is_worth_a_copy(self, common: int) -> bool:
        """True if copying this number of tokens is cheaper than reading them."""
        return common >= _WORTH

    def idle(self, but: int = -1) -> int:
        """An empty row, or else the idle one that was not used for the longest time; `but` only if it is the last."""
        rows = np.flatnonzero(~self.busy)
        rows = rows[rows != but] if len(rows) > 1 else rows
        empty = rows[self.length[rows] == 0]
        return int(empty[0] if len(empty) else rows[np.argmin(self._used_at[rows])])

    def take(self, row: int, ids: Sequence[int]) -> None:
        """Mark a row as busy and as holding `ids`."""
        self._clock += 1
        self.busy[row], self._used_at[row] = True, self._clock
        self.set(row, ids)

    def set(self, row: int, ids: Sequence[int]) -> None:
        """Record that a row holds `ids`."""
        self.tokens[row, : len(ids)] = ids
        self.length[row] = len(ids)

    def append(self, row: int, token: int) -> None:
        """Record that a row holds one more token."""
        self.tokens[row, self.length[row]] = token
        self.length[row] += 1

    def swap(self, one: np.ndarray, other: np.ndarray) -> None:
        """Exchange rows."""
        both, crossed = np.concatenate([one, other]), np.concatenate([other, one])
        for array in (self.tokens, self.length, self.busy, self._used_at):
            array[both] = array[crossed]

    def kept_by_use(self, count: int) -> np.ndarray:
        """The `count` rows to keep in a smaller table, in ascending order: busy ones, then the last used."""
        order = np.lexsort((-self._used_at, ~self.busy))
        kept: np.ndarray = np.sort(order[:count])
        return kept

    def resize(self, kept: np.ndarray, rows: int, width: int) -> None:
        """Make a table of `rows` x `width` that begins with the rows `kept`. A row that does not fit is emptied."""
        tokens = np.zeros((rows, width), np.int64)
        common = min(width, self.width)
        tokens[: len(kept), :common] = self.tokens[kept, :common]
        self.length[self.length > width] = 0
        self.length, self.busy, self._used_at = (
            np.pad(array[kept], (0, rows - len(kept))) for array in (self.length, self.busy, self._used_at)
        )
        self.tokens = tokens

    def drop(self) -> None:
        """Forget all rows."""
        self.resize(np.zeros(0, np.int64), 0, 0)


def _common(equal: np.ndarray, length: np.ndarray) -> np.ndarray:
    """The number of leading True per row (n, m), at most `length` (n,)."""
    leading = np.where(equal.all(1), equal.shape[1], equal.argmin(1))
    common: np.ndarray = np.minimum(leading, length)
    return common
