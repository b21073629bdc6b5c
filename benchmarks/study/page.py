"""The tables of `docs/study.md`: made from the figures, and put between the page's markers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from agentgym_envs.evaluate import Estimate
from benchmarks.study import collapse_page
from benchmarks.study.cells import shown, table
from benchmarks.study.figures import (
    COLLAPSE,
    Run,
    Runs,
    Value,
    at_end,
    comparisons,
    decline,
    over_seeds,
    tokens_to,
)
from benchmarks.study.settings import GOALS, PAIRS, Kind

TITLES = {"textcraft": "TextCraft", "babyai": "BabyAI", "search": "Search"}
NAMES = {"short": "short", "long": "long", "scalinginter": "ScalingInter"}
"""The limits of the GPU part."""
NOT_RUN = "Not run yet."
Scenario = Mapping[str, Any]
_PART = re.compile(r"(<!-- study (\S+) -->\n).*?(<!-- end of study -->)", re.DOTALL)


def fill(page: str, figures: Mapping[str, Any] | None, gpu: Mapping[str, Any] | None) -> str:
    """Return the page with the blocks between its markers regenerated from the figures."""
    scenarios: Mapping[str, Scenario] = (figures or {}).get("scenarios", {})
    parts: dict[str, Callable[[], str]] = {name: partial(_scenario, one) for name, one in scenarios.items()}
    if scenarios:
        parts["plot"] = lambda: "![Learning curves and planned comparisons](study.png)"
    if lab := (figures or {}).get("collapse"):
        parts["collapse"] = partial(collapse_page.tables, lab)
    if gpu and gpu["runs"]:
        parts["gpu"] = partial(gpu_table, gpu)

    def made(match: re.Match[str]) -> str:
        text = parts.get(match[2], lambda: NOT_RUN)()
        return f"{match[1]}\n{text}\n\n{match[3]}"

    return _PART.sub(made, page)


def _scenario(scenario: Scenario) -> str:
    settings = scenario["settings"]
    blocks = []
    for start, runs in scenario["starts"].items():
        if runs:
            blocks += [f"**Warm start: {start}**", final_table(runs, settings), cost_table(runs, settings)]
            blocks.append(comparison_table(runs, settings))
    return "\n\n".join(blocks)


def final_table(runs: Runs, settings: Mapping[str, Any]) -> str:
    """Success of each arm at the end; the warm start of all is the first row."""
    columns = end_columns(settings)
    first = next(iter(runs.values()))
    starts = [{"end": run["start"]} for run in first]
    rows = [["warm start", str(len(starts)), *(shown(over_seeds(starts, of)) for of in columns.values())]]
    rows += [
        [name, str(len(own)), *(shown(over_seeds(own, of)) for of in columns.values())] for name, own in runs.items()
    ]
    return table(["arm", "seeds", *columns], rows)


def kind_names(settings: Mapping[str, Any]) -> list[str]:
    """The names of the kinds of tasks, of recorded settings."""
    return [Kind(*kind).name for kind in settings["kinds"]]


def end_columns(settings: Mapping[str, Any]) -> dict[str, Value]:
    """The reported values of the end of a run, in per cent."""
    limit = int(settings["long"])
    return {
        f"success within {limit} turns": at_end(limit),
        **{name: at_end(limit, kind=name) for name in kind_names(settings)},
        f"within {settings['very_long']}": at_end(int(settings["very_long"])),
        "greedy": at_end(limit, "greedy"),
        "after a slip": at_end(limit, "slip"),
    }


def cost_table(runs: Runs, settings: Mapping[str, Any]) -> str:
    """Speed, stability and cost of each arm."""
    goal = GOALS[settings["scenario"]]
    head = ["arm", f"thousand tokens to {goal} %", "reached", "collapsed", "steps", "thousand tokens", "processed"]
    return table([*head, "CPU s"], [_cost_row(name, own, settings, goal) for name, own in runs.items()])


def _cost_row(name: str, runs: Sequence[Run], settings: Mapping[str, Any], goal: float) -> list[str]:
    limits, limit = limits_of(settings), int(settings["long"])
    needed = [tokens_to(goal, limits, limit)(run) / 1000 for run in runs]
    reached = [one for one in needed if math.isfinite(one)]
    collapsed = sum(decline(limits, limit)(run) >= COLLAPSE for run in runs)
    sums = [fmean(run[key] for run in runs) / unit for key, unit in _SUMS.items()]
    return [
        name,
        f"{fmean(reached):.0f}" if reached else "",
        f"{len(reached)} of {len(runs)}",
        f"{collapsed} of {len(runs)}",
        *(f"{value:,.0f}" for value in sums),
    ]


_SUMS = {"steps": 1, "sampled": 1000, "processed": 1000, "cpu_seconds": 1}


def limits_of(settings: Mapping[str, Any]) -> tuple[int, ...]:
    """The turn limits within which success is known."""
    return tuple(int(settings[name]) for name in ("short", "middle", "long", "very_long"))


def comparison_table(runs: Runs, settings: Mapping[str, Any]) -> str:
    """The planned comparisons of success at the end."""
    found = comparisons(runs, PAIRS, at_end(int(settings["long"])))
    rows = [
        [f"{first} − {second}", str(one.seeds), shown(one.gain, "+"), f"{one.p:.3f}", one.verdict]
        for (first, second), one in found.items()
    ]
    return table(["difference", "seeds", "points", "p, corrected", "verdict"], rows)


def gpu_table(gpu: Mapping[str, Any]) -> str:
    """Chat models: before and after, with intervals over tasks."""
    head = ["scenario", "algorithm", "horizon", "steps", "tokens sampled", "before", "after"]
    rows = [
        [
            TITLES[run["scenario"]],
            run["algorithm"],
            NAMES[run["horizon"]],
            str(run["steps"]),
            f"{run['tokens']:,.0f}",
            *(shown(Estimate(*(100 * run[when][part] for part in ("mean", "low", "high")))) for when in ORDER),
        ]
        for run in gpu["runs"]
    ]
    begin = f"Model: {gpu['model']}, {gpu['adapter']}. Success on held-out tasks in per cent, intervals over tasks."
    return f"{begin}\n\n{table(head, rows)}"


ORDER = ("before", "after")
