"""Rows of a section: where their values are in its JSON, and the figures made from both."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

Better = Literal["less", "more"]
Path = tuple[str | int, ...]


class Row(NamedTuple):
    """One figure and its path in a section's JSON.

    `at` and `peer` are paths; if such a path contains "median", the repeats are at the same path with "samples"
    instead. `target` is a target for the value or, with `of_ratio`, for the speedup over `by`. Values are multiplied
    by `scale`. Without `compared` no speedup is computed.
    """

    name: str
    unit: str
    at: Path
    better: Better = "less"
    peer: Path = ()
    by: str = ""
    target: float | None = None
    of_ratio: bool = False
    compared: bool = True
    scale: float = 1.0


class Figure(NamedTuple):
    """A row with its values. `speedup` is baseline / ours (ours / baseline for rates): above 1 ours is better."""

    row: Row
    ours: float
    samples: tuple[float, ...] = ()
    peer: float | None = None
    speedup: float | None = None
    speedup_samples: tuple[float, ...] = ()

    @property
    def met(self) -> bool | None:
        """True if the target is met; None without a target."""
        target, value = self.row.target, self.speedup if self.row.of_ratio else self.ours
        if target is None or value is None:
            return None
        return value >= target if self.row.of_ratio or self.row.better == "more" else value <= target


def find(result: Any, path: Path) -> Any:
    """The value at a path, or None."""
    for part in path:
        if isinstance(result, Mapping):
            result = result.get(part)
        elif isinstance(result, Sequence) and isinstance(part, int) and -len(result) <= part < len(result):
            result = result[part]
        else:
            return None
    return result


def repeats(result: Any, path: Path) -> tuple[float, ...]:
    """The samples of a median."""
    if "median" not in path:
        return ()
    found = find(result, tuple("samples" if part == "median" else part for part in path))
    return tuple(found) if isinstance(found, Sequence) else ()


def figure(result: Any, row: Row) -> Figure | None:
    """The figure of a row. None if its value is missing, or its baseline is and the row has no target."""
    ours = find(result, row.at)
    peer = find(result, row.peer) if row.peer else None
    if ours is None or (row.peer and peer is None and row.target is None):
        return None
    samples, others = repeats(result, row.at), repeats(result, row.peer) if row.peer else ()
    pairs = tuple(_speedup(row, mine, theirs) for mine, theirs in zip(samples, others, strict=False))
    paired = len(samples) == len(others) and len(pairs) > 0
    if not row.compared:
        return Figure(row, row.scale * ours, tuple(samples), None if peer is None else row.scale * peer)
    quotient = None if peer is None else _speedup(row, ours, peer)
    speedup = statistics.median(pairs) if paired else quotient
    scaled = tuple(row.scale * value for value in samples)
    theirs = None if peer is None else row.scale * peer
    return Figure(row, row.scale * ours, scaled, theirs, speedup, pairs if paired else ())


def figures(result: Any, rows: Sequence[Row]) -> list[Figure]:
    """The figures whose values are present."""
    return [found for row in rows if (found := figure(result, row)) is not None]


def _speedup(row: Row, ours: float, theirs: float) -> float:
    above, below = (theirs, ours) if row.better == "less" else (ours, theirs)
    return above / below if below else float("inf")
