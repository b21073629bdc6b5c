"""The plots of the study: learning curves, and success by the distance to the goal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from agentgym_envs.evaluate import Estimate
from benchmarks.study.figures import Runs, at_end, comparisons, curve_of
from benchmarks.study.page import TITLES, kind_names, limits_of
from benchmarks.study.settings import PAIRS
from benchmarks.study.statistics import BOUND, student

COLOURS = {
    "short": "#d97706",
    "middle": "#65a30d",
    "long": "#0d9488",
    "very long": "#7c3aed",
    "growing": "#1f6feb",
    "growing, gated": "#db2777",
}
"""The core arms."""
_INK, _GRID = "#334155", "#e2e8f0"


def plot(path: Path, scenarios: Mapping[str, Mapping[str, Any]]) -> None:
    """A row of three panels for each scenario and warm start."""
    plt = pyplot()
    parts = [
        (f"{TITLES[name]}, {start}", one["settings"], runs)
        for name, one in scenarios.items()
        for start, runs in one["starts"].items()
        if runs
    ]
    size = {"figsize": (15, 4.3 * len(parts)), "width_ratios": (1.25, 1.1, 1), "layout": "constrained"}
    figure, rows = plt.subplots(len(parts), 3, squeeze=False, **size)
    for (left, middle, right), (title, settings, runs) in zip(rows, parts, strict=True):
        _curves(left, title, settings, runs)
        _distances(middle, settings, runs)
        _differences(right, settings, runs)
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


def _curves(axes: Any, title: str, settings: Mapping[str, Any], runs: Runs) -> None:
    limits, limit = limits_of(settings), int(settings["long"])
    for name, colour in COLOURS.items():
        if name in runs:
            columns = zip(*(curve_of(run, limits, limit) for run in runs[name]), strict=True)
            points = [(fmean(at for at, _ in one) / 1000, student([success for _, success in one])) for one in columns]
            band(axes, points, colour, name)
    axes.set(xlabel="thousand sampled tokens", ylabel=f"success within {limit} turns, %", ylim=(0, 100))
    axes.set_title(title, loc="left")
    axes.legend(frameon=False, loc="lower right", fontsize=8)


def _distances(axes: Any, settings: Mapping[str, Any], runs: Runs) -> None:
    """Success at the end by the distance to the goal."""
    limit, kinds = int(settings["long"]), kind_names(settings)
    present = [name for name in COLOURS if name in runs]
    width = 0.8 / max(len(present), 1)
    for number, name in enumerate(present):
        own = [student([at_end(limit, kind=kind)(run) for run in runs[name]]) for kind in kinds]
        at = [index + (number - (len(present) - 1) / 2) * width for index in range(len(kinds))]
        is_sure = not any(math.isnan(one.low) for one in own)
        error = [[one.mean - one.low for one in own], [one.high - one.mean for one in own]] if is_sure else None
        axes.bar(at, [one.mean for one in own], 0.9 * width, yerr=error, color=COLOURS[name], ecolor=_INK)
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set(ylabel=f"success within {limit} turns, %", ylim=(0, 105))
    axes.set_title("By the distance to the goal", loc="left")


def _differences(axes: Any, settings: Mapping[str, Any], runs: Runs) -> None:
    """The planned comparisons with their intervals, and the bound of equivalence."""
    found = comparisons(runs, PAIRS, at_end(int(settings["long"])))
    axes.axvspan(-BOUND, BOUND, color=_GRID, alpha=0.7, linewidth=0)
    axes.axvline(0, color=_INK, linewidth=0.8)
    for row, one in enumerate(found.values()):
        error = None if math.isnan(one.gain.low) else [[one.gain.mean - one.gain.low], [one.gain.high - one.gain.mean]]
        axes.errorbar(one.gain.mean, -row, xerr=error, fmt="o", color=COLOURS["growing"], ecolor=_INK, capsize=3)
    axes.set_yticks([-row for row in range(len(found))], [f"{first} − {second}" for first, second in found])
    axes.set(xlabel="points of success", ylim=(-len(found) + 0.4, 0.6))
    axes.set_title(f"Planned comparisons (grey: ± {BOUND:.0f})", loc="left")


def band(axes: Any, points: Sequence[tuple[float, Estimate]], colour: str, label: str) -> None:
    """A line of means, with the interval around it where there is one."""
    tokens = [index for index, _ in points]
    axes.plot(
        tokens, [one.mean for _, one in points], color=colour, linewidth=2.2, marker="o", markersize=4, label=label
    )
    if not any(math.isnan(one.low) for _, one in points):
        low, high = [one.low for _, one in points], [one.high for _, one in points]
        axes.fill_between(tokens, low, high, color=colour, alpha=0.1, linewidth=0)
