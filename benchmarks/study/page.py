"""The tables of `docs/study.md`: made from the figures, and put between the page's markers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from agentgym_envs.evaluate import Estimate
from benchmarks.study.figures import Run, Scenario, area, decline, gains, last, over_seeds, student
from benchmarks.study.settings import HORIZONS

NAMES = {"short": "short", "long": "long", "scalinginter": "ScalingInter"}
TITLES = {"textcraft": "TextCraft", "babyai": "BabyAI", "search": "Search"}
NOT_RUN = "Not run yet."
PAIRS = (("scalinginter", "long"), ("scalinginter", "short"), ("long", "short"))
_PART = re.compile(r"(<!-- study (\S+) -->\n).*?(<!-- end of study -->)", re.DOTALL)


def fill(page: str, figures: Mapping[str, Any] | None, gpu: Mapping[str, Any] | None) -> str:
    """Return the page with the blocks between its markers regenerated from the figures."""
    scenarios: Mapping[str, Scenario] = (figures or {}).get("scenarios", {})
    parts: dict[str, Callable[[], str]] = {name: partial(_scenario, one) for name, one in scenarios.items()}
    if scenarios:
        parts["plot"] = lambda: "![Success, turns and final success by horizon](study.png)"
    if gpu and gpu["runs"]:
        parts["gpu"] = partial(gpu_table, gpu)

    def made(match: re.Match[str]) -> str:
        text = parts.get(match[2], lambda: NOT_RUN)()
        return f"{match[1]}\n{text}\n\n{match[3]}"

    return _PART.sub(made, page)


def _scenario(scenario: Scenario) -> str:
    seeds = [str(run["seed"]) for run in scenario["runs"]["long"]]
    warm = student([100 * s["sampled"]["within"][str(scenario["settings"]["long"])] for s in scenario["starts"]])
    begin = f"Seeds {', '.join(seeds)}. The warm start wins {shown(warm)} % within the long limit."
    return "\n\n".join([begin, final_table(scenario), cost_table(scenario), gains_table(scenario)])


def final_table(scenario: Scenario) -> str:
    """Results of each horizon on held-out tasks."""
    long, kinds = str(scenario["settings"]["long"]), [kind[0] for kind in scenario["settings"]["kinds"]]
    columns: dict[str, Callable[[Run], float]] = {
        **{f"within {scenario['settings'][name]} turns": last(scenario, name) for name in ("long", "middle", "short")},
        **{f"{name}, within {long}": partial(_of_kind, name, long) for name in kinds},
        f"greedy, within {long}": lambda run: 100 * run["greedy"]["within"][long],
        "mean of the curve": area(scenario),
        "below its best mark": decline(scenario),
    }
    rows = [[NAMES[name], *(shown(over_seeds(scenario, name, of)) for of in columns.values())] for name in HORIZONS]
    return table(["horizon", *columns], rows)


def _of_kind(kind: str, limit: str, run: Run) -> float:
    return 100 * float(run["marks"][-1]["kinds"][kind][limit])


def cost_table(scenario: Scenario) -> str:
    """Resources that each horizon used."""
    head = ["horizon", "tokens sampled", "tokens processed", "steps", "episodes", "turns (mean over the budget)"]
    return table([*head, "CPU minutes"], [_cost_row(name, scenario["runs"][name]) for name in HORIZONS])


def _cost_row(name: str, runs: Sequence[Run]) -> list[str]:
    counts = [fmean(run[key] for run in runs) for key in ("sampled", "processed", "steps", "episodes")]
    turns = fmean(part["turns"] for run in runs for part in run["training"] if part)
    minutes = fmean(run["cpu_seconds"] for run in runs) / 60
    return [NAMES[name], *(f"{count:,.0f}" for count in counts), f"{turns:.1f}", f"{minutes:.1f}"]


def gains_table(scenario: Scenario) -> str:
    """Differences between horizons, paired by seed."""
    measures = {"success at the end": last(scenario), "mean of the curve": area(scenario)}
    rows = []
    for first, second in PAIRS:
        for name, value in measures.items():
            own = gains(scenario, first, second, value)
            gain = student(own)
            each = ", ".join(f"{one:+.0f}" for one in own)
            rows.append([f"{NAMES[first]} − {NAMES[second]}", name, shown(gain, "+"), each, verdict(gain)])
    return table(["difference", "of", "points", "by seed", "significant"], rows)


def verdict(gain: Estimate) -> str:
    """The verdict of a paired difference."""
    if math.isnan(gain.low):
        return "one seed: no"
    if gain.low > 0:
        return "yes, higher"
    return "yes, lower" if gain.high < 0 else "no"


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


def shown(estimate: Estimate, sign: str = "") -> str:
    """A mean and its interval."""
    text = f"{estimate.mean:{sign}.0f}"
    return text if math.isnan(estimate.low) else f"{text} [{estimate.low:{sign}.0f}, {estimate.high:{sign}.0f}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
