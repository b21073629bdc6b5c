"""The laboratory for collapse: settings in which runs of long horizon fail, remedies, and how well signs warn.

A run has collapsed where `--stop-on-collapse` would stop it (`agentgym_trl.health`). Runs are not stopped here, so that
all have sampled the same number of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from agentgym_trl.health import collapse, signs
from benchmarks.study.arms import Arm, Fixed, Stages
from benchmarks.study.starts import read_json, slug

SCENARIO, START = "textcraft", "all lengths"
"""The tasks and the warm start of all runs."""
SEEDS = 4
LIMIT = Fixed("very_long")
_SMALL = {"tasks_per_step": 4, "micro_batch": 32}
"""32 episodes per rollout: three times as many rollouts for the same tokens."""
RISKS = {
    "high learning rate": Arm("", LIMIT, settings={**_SMALL, "learning_rate": 2e-3}),
    "four updates per rollout": Arm("", LIMIT, {"num_iterations": 4}, settings=_SMALL),
    "groups of 2": Arm("", LIMIT, {"num_generations": 2}, settings={**_SMALL, "learning_rate": 1.5e-3}),
    "LoRA": Arm("", LIMIT, settings={**_SMALL, "learning_rate": 1e-2}, lora=8),
}
NONE = "no remedy"
_KL = {"beta": 0.02, "kl_clip": 10.0}
_MOVING = {"sync_ref_model": True, "ref_model_mixup_alpha": 1.0, "ref_model_sync_steps": 20}
REMEDIES: dict[str, dict[str, Any]] = {
    NONE: {},
    "KL": _KL,
    "KL, moving reference": {**_KL, **_MOVING},
    "turn-limit curriculum": {},
    "groups of 16": {"num_generations": 16},
}


def _arms() -> Iterator[Arm]:
    for risk, arm in RISKS.items():
        for remedy, options in REMEDIES.items():
            limit = Stages(last="very_long") if remedy == "turn-limit curriculum" else arm.limit
            if arm.lora and _MOVING.keys() <= options.keys():  # its reference is the model below the adapter
                options = {**_KL, "reset_adapter_every": _MOVING["ref_model_sync_steps"]}
            yield replace(arm, name=f"{risk}, {remedy}", limit=limit, options={**arm.options, **options})


def seeds_of(scenario: str, start: str) -> int:
    """The number of seeds of an arm of the laboratory."""
    return SEEDS if (scenario, start) == (SCENARIO, START) else 0


LAB = {arm.name: arm for arm in _arms()}
Log = Mapping[str, Sequence[float]]
"""The logged series of a run, with a value for each rollout."""
WINDOW, AHEAD = 5, 10
"""A series is judged by the mean of its last values less that of its first ones, for a collapse in the next ones."""
SERIES = {
    "rollout/score": -1,
    "rollout/turns": 1,
    "rollout/truncated_answers": 1,
    "rollout/invalid_actions": 1,
    "rollout/zero_variance_groups": 1,
    "entropy": 1,
    "grad_norm": 1,
    "kl": 1,
    "clip_ratio/region_mean": 1,
}
"""The series that may warn, and whether they rise (1) or fall (-1) before a collapse."""


class LabRun(NamedTuple):
    """A finished run of the laboratory."""

    risk: str
    remedy: str
    seed: int
    log: Log
    success: float
    """Held-out success at the end, within the limit, in per cent."""
    curve: Sequence[tuple[float, float]]
    """The share of the token budget and the success in training, both in per cent."""

    @property
    def rows(self) -> list[dict[str, float]]:
        """The log as the trainer wrote it: a row per rollout."""
        names = list(self.log)
        return [dict(zip(names, values, strict=True)) for values in zip(*self.log.values(), strict=True)]

    @property
    def collapsed_at(self) -> int | None:
        """The number of rollouts after which it had collapsed; None if it never had."""
        rows = self.rows
        return next((count for count in range(1, len(rows) + 1) if collapse(rows[:count])), None)

    def first_signs(self) -> dict[str, int]:
        """After how many rollouts the trainer printed each of its warnings."""
        rows, found = self.rows, dict[str, int]()
        for count in range(1, len(rows) + 1):
            for sign in signs(rows[:count]):
                found.setdefault(sign.name, count)
        return found


def read_runs(homes: Sequence[Path], limit: int) -> list[LabRun]:
    """The finished runs of the laboratory in the directories of some warm starts."""
    return [
        _read(home / slug(f"{risk}, {remedy}"), risk, remedy, limit)
        for home in homes
        for risk in RISKS
        for remedy in REMEDIES
        if (home / slug(f"{risk}, {remedy}") / "figures.json").exists()
    ]


def _read(folder: Path, risk: str, remedy: str, limit: int) -> LabRun:
    figures = read_json(folder / "figures.json")
    won = figures["marks"][-1]["success"]["sampled"]["within"][str(limit)]
    parts = figures["training"]
    curve = [(100 * number / len(parts), 100 * part["won"]) for number, part in enumerate(parts, 1) if part]
    return LabRun(risk, remedy, figures["seed"], read_json(folder / "log.json"), 100 * won, curve)


class Warned(NamedTuple):
    """The value of a sign as a warning."""

    before: int
    """Collapsed runs in which it was seen before the collapse."""
    collapsed: int
    lead: float | None
    """The median of the rollouts between the two, over those runs."""
    false: int
    """Runs without a collapse in which it was seen."""
    others: int


def shipped_signs(runs: Sequence[LabRun]) -> dict[str, Warned]:
    """The warnings that the trainer prints, by name, and "any" of them."""
    seen = [(run.collapsed_at, run.first_signs()) for run in runs]
    seen = [(end, {**first, "any": min(first.values())} if first else first) for end, first in seen]
    names = sorted({name for _, first in seen for name in first}, key=lambda name: (name == "any", name))
    return {name: _warned([(end, first.get(name)) for end, first in seen]) for name in names}


def _warned(pairs: Sequence[tuple[int | None, int | None]]) -> Warned:
    """From the rollouts until the collapse and until the sign of each run."""
    leads = [end - sign for end, sign in pairs if end is not None and sign is not None and sign < end]
    calm = [sign for end, sign in pairs if end is None]
    seen = sum(sign is not None for sign in calm)
    return Warned(len(leads), len(pairs) - len(calm), median(leads) if leads else None, seen, len(calm))


def windows(run: LabRun, name: str) -> list[tuple[float, bool]]:
    """For each rollout before a collapse: the change of a series, and whether the run collapses soon."""
    series, end = run.log[name], run.collapsed_at
    last = len(series) + 1 if end is None else end
    begin = fmean(series[:WINDOW])
    return [
        (fmean(series[count - WINDOW : count]) - begin, end is not None and end - count <= AHEAD)
        for count in range(2 * WINDOW, last)
    ]


def auc(found: Sequence[tuple[float, bool]], direction: int = 1) -> float:
    """The chance that the value of a positive is above that of a negative, ties counted half; nan without both."""
    values = np.array([direction * value for value, _ in found])
    soon = np.array([positive for _, positive in found], dtype=bool)
    if soon.all() or not soon.any():
        return float("nan")
    order, ranks = np.sort(values), (lambda side: np.searchsorted(order, values, side))
    middle = (ranks("left") + ranks("right") + 1) / 2  # ranks from 1, the mean for ties
    many = int(soon.sum())
    return float((middle[soon].sum() - many * (many + 1) / 2) / (many * (len(values) - many)))


def auc_of(runs: Sequence[LabRun], name: str, draws: int = 500) -> tuple[float, float, float] | None:
    """The area under the curve of a series over all runs that have it, with its 95 % interval over runs (bootstrap).

    None if no run has collapsed after its first rollouts, or all windows are right before a collapse.
    """
    found = [windows(run, name) for run in runs if name in run.log]
    direction, rng = SERIES[name], np.random.default_rng(0)
    whole = auc([window for one in found for window in one], direction)
    if np.isnan(whole):
        return None
    again = [
        auc([window for index in rng.integers(len(found), size=len(found)) for window in found[index]], direction)
        for _ in range(draws)
    ]
    low, high = np.nanquantile(again, [0.025, 0.975])
    return whole, float(low), float(high)
