"""Compute the cores and the memory that environments need, from the figures of `benchmarks.scale`.

An episode of T turns takes `reset + T * (L + step)` seconds, where L is the model's time per answer. At R episodes per
second, R times this duration is the number of open episodes (Little's law), and R times the CPU time of an episode is
the number of busy cores. Episodes run in processes with a fixed capacity and their own children (a Java process, a
browser). The number of processes is the smallest that holds all episodes and loads no process with more than one core.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from agentgym_envs.errors import UsageError

SECONDS = {"day": 86_400, "hour": 3_600, "second": 1}


class Cost(NamedTuple):
    """Cost of a scenario at a location. CPU in seconds, memory in MiB."""

    scenario: str
    place: str
    turns: Mapping[str, float]
    """Episode lengths in turns, by case."""
    reset: float
    step: float
    busiest_reset: float
    busiest_step: float
    """The part that one process does which does one thing at a time."""
    wait_reset: float
    wait_step: float
    """Seconds that an episode waits for the environment, on a machine with an idle core."""
    fixed: float
    """Of a process, without episodes."""
    episode: float
    together: int
    """The measured number of episodes per process."""

    def cpu(self, turns: float) -> float:
        """CPU seconds of an episode."""
        return self.reset + turns * self.step

    def seconds(self, turns: float, turn_seconds: float) -> float:
        """Seconds of an episode, given the seconds per answer."""
        return self.wait_reset + turns * (turn_seconds + self.wait_step)


class Need(NamedTuple):
    """Needs of a load: concurrent episodes, busy cores, processes, GiB, and the model's answers per second."""

    parallel: float
    cores: float
    processes: int
    gib: float
    answers: float


def need(cost: Cost, rate: float, turns: float, turn_seconds: float) -> Need:
    """The needs of `rate` episodes per second with `turns` turns whose answers take `turn_seconds` each."""
    parallel = rate * cost.seconds(turns, turn_seconds)
    cores = rate * cost.cpu(turns)
    busiest = rate * (cost.busiest_reset + turns * cost.busiest_step)
    processes = max(1, math.ceil(round(parallel, 6) / cost.together), math.ceil(busiest))
    gib = (processes * cost.fixed + parallel * cost.episode) / 1024
    return Need(parallel, cores, processes, gib, rate * turns)


def check(turn_seconds: float, turns: float | None) -> None:
    """Raise UsageError for times and lengths that cannot be."""
    if not 0 <= turn_seconds < math.inf:
        raise UsageError(f"--turn-seconds must be 0 or more, got {turn_seconds:g}")
    if turns is not None and not 1 <= turns < math.inf:
        raise UsageError(f"--turns must be at least 1, got {turns:g}")


def rate_of(amount: str, cost: Cost, turns: float, turn_seconds: float) -> float:
    """Episodes a second of "1000000/day" (or hour, or second), "500/answers" a second, or "1000" open at a time."""
    number, _, unit = amount.partition("/")
    try:
        value = float(number.replace(",", "").replace("_", ""))
    except ValueError:
        value = math.nan
    if not (0 < value < math.inf) or unit not in ("", "answers", *SECONDS):
        raise UsageError(
            f"a plan is asked for as 1000000/day (or hour, or second) for episodes, 500/answers for those a second of "
            f"the model, or 1000 for episodes open at a time; got {amount!r}"
        )
    if unit == "answers":
        return value / turns
    return value / SECONDS[unit] if unit else value / cost.seconds(turns, turn_seconds)


def costs(result: Mapping[str, Any]) -> list[Cost]:
    """The costs that a run of the benchmark found."""
    return [Cost(**row["cost"]) for row in result["rows"]]


def plan_table(known: Sequence[Cost], amount: str, turn_seconds: float, turns: float | None) -> Table:
    """The needs of a load, per scenario and location, each on its own."""
    check(turn_seconds, turns)
    title = f"{amount}, answers take {turn_seconds:g} s"
    table = Table("scenario", "where", title=title)
    for name in ("turns", "in parallel", "answers/s", "cores", "processes", "GiB"):
        table.add_column(name, justify="right")
    for cost in known:
        for case, length in cost.turns.items() if turns is None else [("as asked", turns)]:
            needed = need(cost, rate_of(amount, cost, length, turn_seconds), length, turn_seconds)
            figures = f"{needed.parallel:,.0f}", f"{needed.answers:,.0f}", f"{needed.cores:,.2f}"
            cells = f"{length:.3g} ({case})", *figures, f"{needed.processes:,}", f"{needed.gib:,.2f}"
            table.add_row(cost.scenario, cost.place, *cells)
    return table


def line(points: Mapping[int, float]) -> dict[str, float]:
    """The line through memory by episodes (MiB): `fixed`, `episode`, and the largest distance from it."""
    counts, values = np.array(list(points), float), np.array(list(points.values()))
    episode, fixed = np.polyfit(counts, values, 1)
    residual = np.abs(values - fixed - episode * counts).max()
    return {"fixed": float(fixed), "episode": float(episode), "residual": float(residual)}
