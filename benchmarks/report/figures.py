"""What a chapter says: its rows, where they stand in its JSON, and the figures that come of both."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

Better = Literal["less", "more"]
Path = tuple[str | int, ...]


class Row(NamedTuple):
    """One figure, and where it stands in a chapter's JSON.

    `at` and `peer` are paths; where such a path has a "median" in it, the repeats stand in "samples" in its place.
    `target` is of the value, or, where `of_ratio`, of how many times better than `by`. Values are multiplied by
    `scale`. Where `compared` is false, no ratio is formed of the two.
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
    """A row with its values. `times` says how many times better ours is: above 1 it is better."""

    row: Row
    ours: float
    samples: tuple[float, ...] = ()
    peer: float | None = None
    times: float | None = None
    times_samples: tuple[float, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        target, value = self.row.target, self.times if self.row.of_ratio else self.ours
        if target is None or value is None:
            return None
        return value >= target if self.row.of_ratio or self.row.better == "more" else value <= target


def find(result: Any, path: Path) -> Any:
    """What stands at a path, or None."""
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
    """The figure of a row, or None if the JSON does not have it, or not what a row without a target stands beside."""
    ours = find(result, row.at)
    peer = find(result, row.peer) if row.peer else None
    if ours is None or (row.peer and peer is None and row.target is None):
        return None
    samples, others = repeats(result, row.at), repeats(result, row.peer) if row.peer else ()
    pairs = tuple(_times(row, mine, theirs) for mine, theirs in zip(samples, others, strict=False))
    paired = len(samples) == len(others) and len(pairs) > 0
    if not row.compared:
        return Figure(row, row.scale * ours, tuple(samples), None if peer is None else row.scale * peer)
    quotient = None if peer is None else _times(row, ours, peer)
    times = statistics.median(pairs) if paired else quotient
    scaled = tuple(row.scale * value for value in samples)
    theirs = None if peer is None else row.scale * peer
    return Figure(row, row.scale * ours, scaled, theirs, times, pairs if paired else ())


def figures(result: Any, rows: Sequence[Row]) -> list[Figure]:
    """The figures that there are."""
    return [found for row in rows if (found := figure(result, row)) is not None]


def _times(row: Row, ours: float, theirs: float) -> float:
    above, below = (theirs, ours) if row.better == "less" else (ours, theirs)
    return above / below if below else float("inf")
