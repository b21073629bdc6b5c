"""Times of an episode: `EpisodeTimes` is their record, and `EpisodeTimer` measures them while the episode is played."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

_DIGITS = 6


class TurnTimes(NamedTuple):
    """Times of a turn in seconds: its begin after the start of the episode, then generation and environment.

    Both are wall-clock times. Generation includes waiting for other episodes of a batch, environment for a free thread.
    """

    begin: float
    generation: float
    environment: float


@dataclass(frozen=True, slots=True)
class EpisodeTimes:
    """Times of an episode.

    `start` is the time before the reset, in seconds since 1970 (UTC). `reset` is the duration of the reset in seconds.
    """

    start: float
    reset: float
    turns: tuple[TurnTimes, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The times as JSON: a list of begin, generation and environment for each turn."""
        return {"start": self.start, "reset": self.reset, "turns": self.turns}

    @classmethod
    def from_json(cls, row: Any) -> Self:
        """Read what `to_json` returned. Raises ValueError, TypeError or KeyError if it is malformed."""
        turns = tuple(TurnTimes(*map(_seconds, turn)) for turn in row["turns"])
        return cls(_seconds(row["start"]), _seconds(row["reset"]), turns)

    @property
    def generation(self) -> float:
        """Seconds of generation in all turns."""
        return sum(turn.generation for turn in self.turns)

    @property
    def environment(self) -> float:
        """Seconds of the environment in all turns, reset included."""
        return self.reset + sum(turn.environment for turn in self.turns)


class TimeSource(NamedTuple):
    """The clocks of a timer: the time in seconds since 1970, and a clock that never goes back."""

    now: Callable[[], float]
    elapsed: Callable[[], float]


_SYSTEM = TimeSource(time.time, time.perf_counter)
time_source: ContextVar[TimeSource] = ContextVar("time_source")
"""The clocks of new timers, by default those of the system. Set others for records with fixed times."""


class EpisodeTimer:
    """Measures an episode. Call `began` after the reset, and in each turn `asked`, `answered` and `stepped`."""

    def __init__(self) -> None:
        source = time_source.get(_SYSTEM)
        self._elapsed, self._start = source.elapsed, source.now()
        self._zero = self._begin = self._answered = self._elapsed()
        self._reset = 0.0
        self._turns: list[TurnTimes] = []

    def began(self) -> None:
        """Record the end of the reset."""
        self._reset = self._elapsed() - self._zero

    def asked(self) -> None:
        """Record that the policy was asked."""
        self._begin = self._elapsed()

    def answered(self) -> None:
        """Record that the policy answered."""
        self._answered = self._elapsed()

    def stepped(self) -> None:
        """Record that the environment took the step, which ends the turn."""
        begin, answered = self._begin, self._answered
        self._turns.append(TurnTimes(begin - self._zero, answered - begin, self._elapsed() - answered))

    @property
    def times(self) -> EpisodeTimes:
        """The times so far, rounded to microseconds."""
        turns = tuple(TurnTimes(*(round(seconds, _DIGITS) for seconds in turn)) for turn in self._turns)
        return EpisodeTimes(round(self._start, _DIGITS), round(self._reset, _DIGITS), turns)


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"a time must be a number of seconds, not {value!r:.80}")
    return float(value)
