"""The plots of the quick start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from agentgym_trl.demo.arms import AGENTEVOL, GRPO, MORE, WARM, WON, Arm

COLOURS = {WARM: "#9aa5b1", MORE: "#b0855a", WON: "#d97706", AGENTEVOL: "#0d9488", GRPO: "#1f6feb"}


def plot_run(path: Path, metrics: Sequence[dict[str, Any]], found: Sequence[Arm]) -> None:
    """Plot the learning curve next to the success of every arm, and save both as PNG."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), width_ratios=(1, 1.15), layout="constrained")
    _curve(left, [row for row in metrics if "rollout/success" in row], found[0])
    _bars(right, found)
    for axes in (left, right):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _curve(axes: Any, rows: Sequence[dict[str, Any]], warm: Arm) -> None:
    steps = [row["step"] for row in rows]
    success = [100 * row["rollout/success"] for row in rows]
    axes.plot(steps, success, color=COLOURS[GRPO], alpha=0.25, linewidth=1)
    axes.plot(
        steps, _smooth(success), color=COLOURS[GRPO], linewidth=2.2, label="success in training (mean of 5 steps)"
    )
    before = warm.measurements[0].metrics.success
    if before:
        axes.axhline(100 * before.mean, color=COLOURS[WARM], linestyle="--", label="warm start")
    axes.set(xlabel="training step", ylabel="success, %", ylim=(0, 100), title="GRPO on training tasks")
    axes.legend(loc="lower right", frameon=False)


def _bars(axes: Any, found: Sequence[Arm]) -> None:
    for index, arm in enumerate(found):
        estimate = arm.measurements[0].metrics.success
        if estimate is None:
            continue
        mean, low, high = (100 * value for value in (estimate.mean, estimate.low, estimate.high))
        axes.bar(
            index, mean, 0.7, yerr=[[mean - low], [high - mean]], color=COLOURS[arm.name], capsize=3, ecolor="#444"
        )
        axes.text(index, mean / 2, f"{mean:.0f}", ha="center", va="center", color="white", fontweight="bold")
    axes.set_xticks(range(len(found)), [arm.name.replace(" of ", "\nof ").replace("more ", "more\n") for arm in found])
    name = found[0].measurements[0].name
    axes.set(ylabel="success, %", ylim=(0, 100), title=f"{name.capitalize()}: 95 % over tasks")


def _smooth(values: Sequence[float], width: int = 5) -> list[float]:
    """The mean of the last `width` values."""
    windows = [values[max(0, end - width) : end] for end in range(1, len(values) + 1)]
    return [sum(window) / len(window) for window in windows]
