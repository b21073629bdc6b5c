"""Draw docs/tutorials/scalinginter.png: the schedules of ScalingInter-RL, from the functions used in training.

python examples/scalinginter_figure.py [OUT.png]        needs matplotlib
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from agentgym_envs import FixedTurnLimit, TurnLimitCurriculum

OUT = Path(__file__).parents[1] / "docs/tutorials/scalinginter.png"
STEPS = 300
MAIN, FIXED, INK = "#1f6feb", "#9aa5b1", "#24292f"
STAGES = (("exploit", "#dbeafe"), ("extend", "#bfdbfe"), ("explore", "#93c5fd"))
PAPER = (
    ("SciWorld and TextCraft", TurnLimitCurriculum((10, 20, 30), 100), "#1f6feb"),
    ("BabyAI", TurnLimitCurriculum((6, 13, 20), 100), "#d97706"),
    ("WebArena", TurnLimitCurriculum((8, 12, 15), 80), "#7c3aed"),
    ("Search", TurnLimitCurriculum((5, 8, 10), 100), "#0f9d76"),
)
"""The schedules in the paper's training scripts."""


def draw(path: Path) -> None:
    """Save the plot."""
    plt.rcParams.update({"font.size": 11, "text.color": INK, "axes.labelcolor": INK})
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4.7), width_ratios=(1.35, 1), layout="constrained")
    _idea(left)
    _schedules(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _idea(axes: Any) -> None:
    schedule, fixed = TurnLimitCurriculum((10, 20, 30), 100), FixedTurnLimit(30)
    steps = range(STEPS)
    axes.fill_between(steps, [schedule(step) for step in steps], step="post", color="white", zorder=1)
    for stage, (word, colour) in enumerate(STAGES):
        inside = range(100 * stage, 100 * stage + 101)
        limit = schedule(100 * stage)
        axes.fill_between(inside, [limit] * len(inside), color=colour, linewidth=0, zorder=2)
        axes.text(100 * stage + 50, limit / 2 + 1.4, word, ha="center", fontsize=14, fontweight="bold", zorder=4)
        axes.text(100 * stage + 50, limit / 2 - 1.6, f"{limit} turns", ha="center", zorder=4)
    axes.step(steps, [fixed(step) for step in steps], color=FIXED, linestyle="--", linewidth=1.8, zorder=3)
    axes.step(steps, [schedule(step) for step in steps], where="post", color=MAIN, linewidth=3, zorder=5)
    axes.text(6, 30.6, "a fixed limit: long episodes from the first step on", color="#57606a", fontsize=10)
    axes.set(xlim=(0, STEPS), ylim=(0, 34), xlabel="training step", ylabel="turn limit")
    axes.set_title("Short episodes first, longer ones on a schedule", loc="left", fontsize=12)


def _schedules(axes: Any) -> None:
    for name, schedule, colour in PAPER:
        axes.step(range(STEPS), [schedule(n) for n in range(STEPS)], where="post", color=colour, linewidth=2.4)
        axes.text(STEPS + 5, schedule(STEPS), name, color=colour, va="center", fontsize=10.5, fontweight="bold")
    axes.set(xlim=(0, STEPS), ylim=(0, 34), xlabel="training step")
    axes.set_title("The paper's schedules", loc="left", fontsize=12)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else OUT)
