"""Figures of episodes that the list does not need at once: tokens, times, cost, and the turns of earlier attempts.

The index leaves them out, so that many episodes open quickly. They are read when a page shows or sorts by them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentgym_envs.errors import AgentGymError
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.index import EpisodeEntry, lines_of, read_episode
from agentgym_envs.viewer.sources import AGENTGYM_RL, ATIF

if TYPE_CHECKING:
    from agentgym_envs.evaluate.episodes import EpisodeFacts

FIGURES = ("tokens", "seconds", "cost")
"""The figures of a row of the list."""
_MAX_ERROR_CHARS = 200


class EpisodeFigures(NamedTuple):
    """Figures of an episode; None where the record has none.

    `tokens` were written by the policy. `generation` and `environment` are seconds, `begin` and `end` are times in
    seconds since 1970. `cost` is what the recorder says that the episode cost, in US dollars. `turns` and `invalid`
    include earlier attempts of a reflecting agent. `error` is the beginning of the first line of the error.
    """

    turns: int
    invalid: int
    tokens: int | None = None
    generation: float | None = None
    environment: float | None = None
    begin: float | None = None
    end: float | None = None
    cost: float | None = None
    error: str | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds of generation and environment together."""
        return None if self.generation is None or self.environment is None else self.generation + self.environment


class _Info(msgspec.Struct, gc=False):
    tokens: Any = None
    cost: Any = None


class _Turn(msgspec.Struct, gc=False):
    info: _Info = msgspec.field(default_factory=_Info)


class _Times(msgspec.Struct, gc=False):
    start: float
    reset: float
    turns: Sequence[tuple[float, float, float]]


class _Meta(msgspec.Struct, gc=False):
    attempts: Any = None
    agent: Any = None
    cost: Any = None


class _Line(msgspec.Struct, gc=False):
    turns: list[_Turn]
    times: _Times | None = None
    meta: _Meta = msgspec.field(default_factory=_Meta)
    error: Any = None


_decode = msgspec.json.Decoder(_Line).decode


class Figures:
    """A cache of figures by the number of the episode. All methods are thread-safe."""

    def __init__(self) -> None:
        self._known: dict[int, EpisodeFigures] = {}
        self._lock = threading.Lock()

    def of(self, entries: Sequence[EpisodeEntry]) -> Mapping[int, EpisodeFigures]:
        """The figures of these episodes, by number; those that are not known yet are read."""
        with self._lock:
            missing = [entry for entry in entries if entry.id not in self._known]
            for entry, line in lines_of(missing):
                self._known[entry.id] = _read(entry, line)
            for entry in missing:  # of files that are gone
                self._known.setdefault(entry.id, _unknown(entry))
            return {entry.id: self._known[entry.id] for entry in entries}


def facts_from(entry: EpisodeEntry, figures: EpisodeFigures) -> EpisodeFacts:
    """The facts that metrics use, as `facts_of` makes them from the trajectory."""
    from agentgym_envs.evaluate.episodes import EpisodeFacts

    summary = entry.summary
    return EpisodeFacts(
        key=(summary.env, summary.task),
        group=summary.group,
        stop_reason=summary.stop,
        usable=summary.stop != "env_error" and summary.turns > 0,
        success=summary.success,
        score=summary.score,
        turns=figures.turns,
        invalid=figures.invalid,
        tokens=figures.tokens,
    )


def _read(entry: EpisodeEntry, line: bytes) -> EpisodeFigures:
    try:
        if entry.file.source.kind in (AGENTGYM_RL, ATIF):
            return _of_trajectory(read_episode(entry))
        row = _decode(line)
        if row.meta.attempts is not None or row.meta.agent is not None:
            return _of_trajectory(read_episode(entry))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _slowly(entry)
    except AgentGymError:
        return _unknown(entry)
    return _with_times(_of_row(entry, row), row.times)


def _slowly(entry: EpisodeEntry) -> EpisodeFigures:
    """The figures of a line that msgspec does not accept: NaN, lone surrogates, values of other types."""
    try:
        return _of_trajectory(read_episode(entry))
    except AgentGymError:
        return _unknown(entry)


def _of_row(entry: EpisodeEntry, row: _Line) -> EpisodeFigures:
    counts = [turn.info.tokens for turn in row.turns]
    tokens = sum(counts) if counts and all(isinstance(count, int) for count in counts) else None
    cost = _cost(row.meta.cost, [turn.info.cost for turn in row.turns])
    return EpisodeFigures(entry.summary.turns, entry.summary.invalid, tokens, cost=cost, error=_first_line(row.error))


def _with_times(figures: EpisodeFigures, times: _Times | None) -> EpisodeFigures:
    if times is None:
        return figures
    generation = sum(turn[1] for turn in times.turns)
    environment = times.reset + sum(turn[2] for turn in times.turns)
    end = times.start + (sum(times.turns[-1]) if times.turns else times.reset)
    return figures._replace(generation=generation, environment=environment, begin=times.start, end=end)


def _of_trajectory(trajectory: Trajectory) -> EpisodeFigures:
    from agentgym_envs.evaluate.episodes import facts_of

    facts, times = facts_of(trajectory), trajectory.times
    cost = _cost(trajectory.meta.get("cost"), [turn.info.get("cost") for turn in trajectory.turns])
    figures = EpisodeFigures(facts.turns, facts.invalid, facts.tokens, cost=cost, error=_first_line(trajectory.error))
    rows = None if times is None else _Times(times.start, times.reset, list(times.turns))
    return _with_times(figures, rows)


def _unknown(entry: EpisodeEntry) -> EpisodeFigures:
    return EpisodeFigures(entry.summary.turns, entry.summary.invalid)


def _cost(whole: Any, parts: Sequence[Any]) -> float | None:
    """The recorded cost of the episode, or the sum of those of its turns."""
    if _is_cost(whole):
        return float(whole)
    known = [float(part) for part in parts if _is_cost(part)]
    return sum(known) if known else None


def _is_cost(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e9


def _first_line(error: Any) -> str | None:
    return error.strip().split("\n")[0][:_MAX_ERROR_CHARS] if isinstance(error, str) and error.strip() else None
