"""The plot of the laboratory for collapse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentgym_envs.evaluate import Estimate
from benchmarks.study.collapse import REMEDIES, RISKS
from benchmarks.study.collapse_page import Figures, runs_of
from benchmarks.study.plots import band, dress, pyplot
from benchmarks.study.statistics import student

COLOURS = dict(zip(REMEDIES, ("#334155", "#0d9488", "#7c3aed", "#1f6feb", "#d97706"), strict=True))


def plot(path: Path, figures: Figures) -> None:
    """Success in training over the budget: a panel for each risk, a line for each remedy."""
    plt = pyplot()
    figure, rows = plt.subplots(1, len(RISKS), figsize=(4.2 * len(RISKS), 4), sharey=True, layout="constrained")
    for axes, risk in zip(rows, RISKS, strict=True):
        for remedy, colour in COLOURS.items():
            if runs := runs_of(figures, risk, remedy):
                band(axes, _points([run["curve"] for run in runs]), colour, "_")
        axes.set(xlabel="sampled tokens, % of the budget", ylim=(0, 100))
        axes.set_title(risk, loc="left")
        dress(axes)
    rows[0].set(ylabel="success in training, %")
    for remedy, colour in COLOURS.items():  # the legend has them all, whichever the first panel shows
        rows[0].plot([], [], color=colour, linewidth=2.2, label=remedy)
    rows[0].legend(frameon=False, loc="lower left", fontsize=8)
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)


def _points(curves: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, Estimate]]:
    """The mean over runs in each part of the budget that all of them have."""
    common = [at for at, _ in curves[0] if all(at in dict(curve) for curve in curves)]
    return [(at, student([dict(curve)[at] for curve in curves])) for at in common]
