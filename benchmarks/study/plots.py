"""The plot of the study: for each scenario the learning curve, the turns used, and what it came to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.evaluate import Estimate
from benchmarks.study.figures import Scenario, last, over_seeds, success_curve, turns_curve
from benchmarks.study.page import NAMES, TITLES
from benchmarks.study.settings import HORIZONS

COLOURS = {"short": "#d97706", "long": "#0d9488", "scalinginter": "#1f6feb"}
_INK, _GRID = "#334155", "#e2e8f0"


def plot(path: Path, scenarios: Mapping[str, Scenario]) -> None:
    """A row of three panels for each scenario."""
    plt = pyplot()
    size = {"figsize": (14, 4.3 * len(scenarios)), "width_ratios": (1.25, 1, 1), "layout": "constrained"}
    figure, rows = plt.subplots(len(scenarios), 3, squeeze=False, **size)
    for (left, middle, right), (name, scenario) in zip(rows, scenarios.items(), strict=True):
        _success(left, TITLES[name], scenario)
        _turns(middle, scenario)
        _bars(right, scenario)
        for axes in (left, middle, right):
            dress(axes)
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def dress(axes: Any) -> None:
    """Light lines, no frame."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_GRID)
    axes.tick_params(colors=_INK, length=0)
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def _success(axes: Any, title: str, scenario: Scenario) -> None:
    seeds = len(scenario["starts"])
    for name in HORIZONS:
        band(axes, success_curve(scenario, name), COLOURS[name], NAMES[name])
    axes.set(xlabel="thousand rollout tokens", ylabel="held-out success, %", ylim=(0, 100))
    axes.set_title(f"{title}: success within {scenario['settings']['long']} turns, {seeds} seeds", loc="left")
    axes.legend(frameon=False, loc="lower right")


def _turns(axes: Any, scenario: Scenario) -> None:
    long = scenario["settings"]["long"]
    for name in HORIZONS:
        band(axes, turns_curve(scenario, name), COLOURS[name], NAMES[name])
    axes.set(xlabel="thousand rollout tokens", ylabel="turns of an episode in training", ylim=(0, long))
    axes.set_title("Turns used", loc="left")


def _bars(axes: Any, scenario: Scenario) -> None:
    """Success at the end within the long and the short limit; dots are seeds."""
    for row, limit in enumerate(("long", "short")):
        for index, name in enumerate(HORIZONS):
            own = over_seeds(scenario, name, last(scenario, limit))
            colour = COLOURS[name] if row == 0 else "none"
            error = [[own.mean - own.low], [own.high - own.mean]] if not math.isnan(own.low) else None
            at = index + (row - 0.5) * 0.4
            axes.bar(at, own.mean, 0.36, yerr=error, color=colour, edgecolor=COLOURS[name], capsize=3, ecolor=_INK)
            values = [last(scenario, limit)(run) for run in scenario["runs"][name]]
            axes.plot([at] * len(values), values, ".", color=_INK, markersize=4)
    settings = scenario["settings"]
    axes.set_xticks(range(len(HORIZONS)), [NAMES[name] for name in HORIZONS])
    axes.set(ylabel="held-out success, %", ylim=(0, 100))
    axes.set_title(f"At the end: within {settings['long']} turns (filled) and {settings['short']}", loc="left")


def band(axes: Any, points: Sequence[tuple[float, Estimate]], colour: str, label: str) -> None:
    """A line of means, with the interval around it where there is one."""
    tokens = [index / 1000 for index, _ in points]
    axes.plot(
        tokens, [one.mean for _, one in points], color=colour, linewidth=2.2, marker="o", markersize=4, label=label
    )
    if not any(math.isnan(one.low) for _, one in points):
        axes.fill_between(
            tokens,
            [one.low for _, one in points],
            [one.high for _, one in points],
            color=colour,
            alpha=0.13,
            linewidth=0,
        )
