"""From runs to figures: what each run came to, means and intervals over seeds, and what horizons differ by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from agentgym_envs.evaluate import Estimate
from benchmarks.study.budget import Ledger
from benchmarks.study.settings import HORIZONS, StudySettings
from benchmarks.study.starts import read_json

BINS = 12
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles for 1 to 10 degrees of freedom; beyond, the last one is a little too wide."""
Run = dict[str, Any]
Scenario = dict[str, Any]


def run_figures(settings: StudySettings, arm: str, ledger: Ledger, marks: Sequence[Path]) -> Run:
    """The saved figures of a run."""
    names = ("sampled", "processed", "episodes", "cpu_seconds")
    return {
        "arm": arm,
        "seed": settings.seed,
        "steps": len(ledger.rows),
        **{name: round(ledger.total(name), 1) for name in names},
        "marks": [{**read_json(mark / "mark.json"), "success": read_json(mark / "success.json")} for mark in marks],
        "training": training_curve(ledger, settings.budget),
    }


def training_curve(ledger: Ledger, budget: int, bins: int = BINS) -> list[dict[str, float] | None]:
    """Success, turns and limit in training, in equal parts of the budget by where a step ended; None: no step did."""
    parts: list[list[dict[str, float]]] = [[] for _ in range(bins)]
    spent = 0.0
    for row in ledger.rows:
        spent += row["sampled"]
        parts[min(math.ceil(bins * spent / budget) - 1, bins - 1)].append(row)
    return [_mean_row(part) if part else None for part in parts]


def _mean_row(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    episodes = sum(row["episodes"] for row in rows)
    shares = {name: sum(row[name] for row in rows) / episodes for name in ("won", "turns")}
    return {**{name: round(value, 4) for name, value in shares.items()}, "limit": fmean(row["limit"] for row in rows)}


def collect(work: Path, scenarios: Sequence[StudySettings]) -> dict[str, Scenario]:
    """The finished runs under `work`: per scenario, the seeds with all horizons finished."""
    found = {}
    for settings in scenarios:
        homes = sorted((work / settings.scenario).glob("seed-*"), key=lambda path: int(path.name[5:]))
        done = [home for home in homes if all((home / name / "figures.json").exists() for name in HORIZONS)]
        if done:
            kept = read_json(work / settings.scenario / "run.json")
            del kept["schema"]
            runs = {name: [read_json(home / name / "figures.json") for home in done] for name in HORIZONS}
            starts = [read_json(home / "start.json") for home in done]
            found[settings.scenario] = {"settings": kept, "starts": starts, "runs": runs}
    return found


def recorded(settings: StudySettings) -> dict[str, Any]:
    """The settings without the seed, as stored in the work directory and the figures."""
    return {name: value for name, value in asdict(settings).items() if name != "seed"}


def student(values: Sequence[float]) -> Estimate:
    """The mean and its 95 % interval by Student's t; of a single value no interval (NaN)."""
    middle, count = fmean(values), len(values)
    if count < 2:
        return Estimate(middle, math.nan, math.nan)
    half = _STUDENT[min(count - 1, len(_STUDENT)) - 1] * stdev(values) / math.sqrt(count)
    return Estimate(middle, middle - half, middle + half)


def success_curve(scenario: Scenario, horizon: str) -> list[tuple[float, Estimate]]:
    """Mean tokens of each mark, the warm start first, and success within the long limit in per cent."""
    long = str(scenario["settings"]["long"])
    points = [(0.0, student([100 * start["sampled"]["within"][long] for start in scenario["starts"]]))]
    for column in zip(*(run["marks"] for run in scenario["runs"][horizon]), strict=True):
        tokens = fmean(mark["sampled"] for mark in column)
        points.append((tokens, student([100 * mark["within"][long] for mark in column])))
    return points


def turns_curve(scenario: Scenario, horizon: str) -> list[tuple[float, Estimate]]:
    """Turns of an episode in training, in equal parts of the budget."""
    budget, points = scenario["settings"]["budget"], []
    for number, column in enumerate(zip(*(run["training"] for run in scenario["runs"][horizon]), strict=True)):
        turns = [part["turns"] for part in column if part]
        if turns:
            points.append((budget * (number + 0.5) / BINS, student(turns)))
    return points


def last(scenario: Scenario, limit: str = "long") -> Callable[[Run], float]:
    """Success at the last mark within one of the limits, in per cent."""
    turns = str(scenario["settings"][limit])
    return lambda run: 100 * run["marks"][-1]["within"][turns]


def area(scenario: Scenario) -> Callable[[Run], float]:
    """The mean over all marks of success within the long limit, in per cent: how early a run was good."""
    long = str(scenario["settings"]["long"])
    return lambda run: 100 * fmean(mark["within"][long] for mark in run["marks"])


def decline(scenario: Scenario) -> Callable[[Run], float]:
    """Distance in points of the last mark below the best, which shows if training degraded."""
    long = str(scenario["settings"]["long"])
    return lambda run: 100 * (max(mark["within"][long] for mark in run["marks"]) - run["marks"][-1]["within"][long])


def over_seeds(scenario: Scenario, horizon: str, value: Callable[[Run], float]) -> Estimate:
    return student([value(run) for run in scenario["runs"][horizon]])


def gains(scenario: Scenario, first: str, second: str, value: Callable[[Run], float]) -> list[float]:
    """Differences `first` − `second` by seed; both began from the same warm start."""
    runs: Mapping[str, list[Run]] = scenario["runs"]
    pairs = zip(runs[first], runs[second], strict=True)
    return [value(one) - value(other) for one, other in pairs]
