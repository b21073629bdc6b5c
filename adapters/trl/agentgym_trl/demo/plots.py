"""The plots of the quick start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from agentgym_trl.demo.stages import Measurement

_BEFORE, _AFTER, _LIMIT = "#9aa5b1", "#1f6feb", "#d97706"


def plot_run(
    path: Path, metrics: Sequence[dict[str, Any]], before: Sequence[Measurement], after: Sequence[Measurement]
) -> None:
    """Plot the learning curve next to success before and after, and save both as PNG."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), width_ratios=(1.15, 1), layout="constrained")
    _curve(left, [row for row in metrics if "rollout/success" in row])
    _bars(right, before, after)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _curve(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    steps = [row["step"] for row in rows]
    success = [100 * row["rollout/success"] for row in rows]
    axes.plot(steps, success, color=_AFTER, alpha=0.25, linewidth=1)
    axes.plot(steps, _smooth(success), color=_AFTER, linewidth=2.2, label="success in training (mean of 10 steps)")
    axes.set(xlabel="training step", ylabel="success, %", ylim=(0, 100), title="GRPO on new training worlds")
    limit = axes.twinx()
    limit.step(steps, [row["rollout/max_turns"] for row in rows], where="post", color=_LIMIT, label="max turns")
    limit.set_ylabel("max turns", color=_LIMIT)
    limit.set_ylim(0, 1.6 * max(row["rollout/max_turns"] for row in rows))
    handles = [*axes.get_legend_handles_labels()[0], *limit.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="upper left", frameon=False)
    axes.spines["top"].set_visible(False)


def _bars(axes: Any, before: Sequence[Measurement], after: Sequence[Measurement]) -> None:
    for side, measurements, colour, label in (
        (-0.2, before, _BEFORE, "warm start"),
        (0.2, after, _AFTER, "after GRPO"),
    ):
        estimates = [m.metrics.success for m in measurements]
        means = [100 * e.mean for e in estimates if e]
        errors = [[100 * (e.mean - e.low) for e in estimates if e], [100 * (e.high - e.mean) for e in estimates if e]]
        positions = [index + side for index in range(len(means))]
        bars = axes.bar(positions, means, 0.38, yerr=errors, color=colour, label=label, capsize=3, ecolor="#444")
        labels = [f"{mean:.0f}" if mean > 5 else "" for mean in means]  # a number does not fit into a low bar
        axes.bar_label(bars, labels, label_type="center", color="white", fontweight="bold")
    axes.set_xticks(range(len(before)), [m.name.replace(", ", ",\n").replace("real held-out", "real") for m in before])
    axes.set(ylabel="success, %", ylim=(0, 100), title="Held out: before and after, 95 % over tasks")
    axes.legend(frameon=False, loc="upper right")
    for side_name in ("top", "right"):
        axes.spines[side_name].set_visible(False)


def _smooth(values: Sequence[float], width: int = 10) -> list[float]:
    """The mean of the last `width` values."""
    windows = [values[max(0, end - width) : end] for end in range(1, len(values) + 1)]
    return [sum(window) / len(window) for window in windows]
