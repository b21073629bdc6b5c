"""How many cores and how much memory environments need, from the figures of `benchmarks.scale`.

An episode of T turns takes `reset + T * (L + step)` seconds, where L is how long the model takes to answer. At R
episodes a second, R times that are open at a time (Little's law), and R times the CPU time of an episode are the cores
that are busy. Episodes live in processes that carry so many each, with all that these own (a Java machine, a browser).
There are as many as have room for the episodes, and enough of them that none has more to do than one core can.
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
    """What a scenario costs in a place. CPU in seconds, memory in MiB."""

    scenario: str
    place: str
    turns: Mapping[str, float]
    """How long episodes are, by the name of the case."""
    reset: float
    step: float
    busiest_reset: float
    busiest_step: float
    """The part that one process does which does one thing at a time."""
    wait_reset: float
    wait_step: float
    """What an episode waits for: CPU of all sides, as a machine takes for it that has a core to spare."""
    fixed: float
    """Of a process, without episodes."""
    episode: float
    together: int
    """How many episodes a process carries, as measured."""

    def cpu(self, turns: float) -> float:
        """CPU seconds of an episode."""
        return self.reset + turns * self.step

    def seconds(self, turns: float, turn_seconds: float) -> float:
        """How long an episode takes, if answers take so long."""
        return self.wait_reset + turns * (turn_seconds + self.wait_step)


class Need(NamedTuple):
    """What a load needs: episodes open at a time, busy cores, processes, GiB; and answers a second of the model."""

    parallel: float
    cores: float
    processes: int
    gib: float
    answers: float


def need(cost: Cost, rate: float, turns: float, turn_seconds: float) -> Need:
    """What `rate` episodes a second need, of `turns` turns whose answers take `turn_seconds` each."""
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
    """What a load needs, for each scenario and place, as if it were played there alone."""
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
