"""From runs to figures: what each run came to, and what is compared over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from agentgym_envs.evaluate import Estimate
from benchmarks.study.arms import ARMS
from benchmarks.study.budget import Ledger
from benchmarks.study.settings import STARTS, StudySettings
from benchmarks.study.starts import read_json, slug
from benchmarks.study.statistics import Comparison, compare, holm, student

BINS = 12
COLLAPSE = 10.0
"""A run has collapsed if its end is as many points below its best mark, the warm start included."""
Run = dict[str, Any]
Runs = Mapping[str, Sequence[Run]]
"""The runs of each arm from one kind of warm start; those of a seed have equal places in the core arms."""


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
        if not row["episodes"]:  # the step learned again from the rollout before
            continue
        spent += row["sampled"]
        parts[min(math.ceil(bins * spent / budget) - 1, bins - 1)].append(row)
    return [_mean_row(part) if part else None for part in parts]


def _mean_row(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    episodes = sum(row["episodes"] for row in rows)
    shares = {name: sum(row[name] for row in rows) / episodes for name in ("won", "turns")}
    return {**{name: round(value, 4) for name, value in shares.items()}, "limit": fmean(row["limit"] for row in rows)}


def collect(work: Path, scenarios: Sequence[StudySettings]) -> dict[str, dict[str, Any]]:
    """The finished runs under `work`, by scenario, warm start and arm, and the settings."""
    found = {}
    for settings in scenarios:
        homes = sorted((work / settings.scenario).glob("seed-*"), key=lambda path: int(path.name[5:]))
        starts = {start: _of_start([home / slug(start) for home in homes]) for start in STARTS}
        if any(runs for runs in starts.values()):
            kept = read_json(work / settings.scenario / "run.json")
            del kept["schema"]
            found[settings.scenario] = {"settings": kept, "starts": starts}
    return found


def _of_start(homes: Sequence[Path]) -> dict[str, list[Run]]:
    """The runs of each arm, with the success of the warm start as their first mark."""
    return {
        arm: own
        for arm in ARMS
        if (own := [_compact(home, path) for home in homes if (path := home / slug(arm) / "figures.json").exists()])
    }


def _compact(home: Path, path: Path) -> Run:
    """A run without what no table or plot needs; its curve has the tokens and the success within each limit."""
    run, start = read_json(path), read_json(home / "start.json")
    marks = [{"sampled": 0, "success": start}, *run.pop("marks")]
    del run["training"]
    curve = [[mark["sampled"], *mark["success"]["sampled"]["within"].values()] for mark in marks]
    return run | {"curve": curve, "start": start, "end": marks[-1]["success"]}


def merge(known: Mapping[str, dict[str, Any]], found: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add scenarios and seeds to known ones; new runs replace those of their seed, and new settings all old runs."""
    merged = dict(known)
    for scenario, new in found.items():
        old = known.get(scenario, new)
        starts = old["starts"] if old["settings"] == new["settings"] else {}
        merged[scenario] = {**new, "starts": {s: _by_seed(starts.get(s, {}), new["starts"][s]) for s in STARTS}}
    return merged


def _by_seed(old: Runs, new: Runs) -> dict[str, list[Run]]:
    arms = [arm for arm in ARMS if arm in old or arm in new]
    runs = {arm: {run["seed"]: run for run in (*old.get(arm, ()), *new.get(arm, ()))} for arm in arms}
    return {arm: [own[seed] for seed in sorted(own)] for arm, own in runs.items()}


def recorded(settings: StudySettings) -> dict[str, Any]:
    """The settings without the seed and files, as stored in the work directory and the figures."""
    return {name: value for name, value in asdict(settings).items() if name not in ("seed", "env_files")}


Value = Callable[[Run], float]


def at_end(limit: int, way: str = "sampled", kind: str | None = None) -> Value:
    """Success at the end within a number of turns, in per cent; of one kind of tasks or of all."""

    def value(run: Run) -> float:
        digest = run["end"][way]
        return 100 * float((digest["within"] if kind is None else digest["kinds"][kind])[str(limit)])

    return value


def curve_of(run: Run, limits: Sequence[int], limit: int) -> list[tuple[float, float]]:
    """Tokens and success in per cent of the warm start and each mark."""
    column = 1 + list(limits).index(limit)
    return [(row[0], 100 * row[column]) for row in run["curve"]]


def decline(limits: Sequence[int], limit: int) -> Value:
    """Distance in points of the end below the best mark, the warm start included."""

    def value(run: Run) -> float:
        curve = [success for _, success in curve_of(run, limits, limit)]
        return max(curve) - curve[-1]

    return value


def tokens_to(goal: float, limits: Sequence[int], limit: int) -> Value:
    """Sampled tokens at which the curve first reaches a success, interpolated; infinite if it never does."""

    def value(run: Run) -> float:
        curve = curve_of(run, limits, limit)
        for (before, low), (after, high) in pairwise(curve):
            if high >= goal:
                return after if high == low or low >= goal else before + (after - before) * (goal - low) / (high - low)
        return math.inf

    return value


def over_seeds(runs: Sequence[Run], value: Value) -> Estimate:
    """The mean over seeds and its 95 % interval."""
    return student([value(run) for run in runs])


def differences(runs: Runs, first: str, second: str, value: Value) -> list[float]:
    """`first` less `second` by seed, for the seeds of both; both began from the same warm start."""
    one, other = ({run["seed"]: value(run) for run in runs[name]} for name in (first, second))
    return [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]


def comparisons(runs: Runs, pairs: Sequence[tuple[str, str]], value: Value) -> dict[tuple[str, str], Comparison]:
    """The planned comparisons that have runs, with p values corrected for their number."""
    present = [pair for pair in pairs if all(name in runs for name in pair)]
    found = {pair: compare(differences(runs, *pair, value)) for pair in present}
    corrected = holm([one.p for one in found.values()])
    return {pair: one._replace(p=p) for (pair, one), p in zip(found.items(), corrected, strict=True)}
