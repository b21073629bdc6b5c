"""The benchmark of loss types, and its table in docs/algorithms.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.loss_types import ARMS, SERIES, means

ROOT = Path(__file__).parents[2]


def test_means_are_over_ten_steps_of_the_first() -> None:
    rows = [{"step": step, **dict.fromkeys(SERIES, float(step))} for step in range(1, 21)]
    found = means([*rows, {"step": 20, "train_loss": 1.0}], 15)
    assert [(row["step"], row["entropy"]) for row in found] == [(10, 5.5), (20, 13.0)]


def test_the_table_of_the_page_has_the_measured_figures() -> None:
    result = json.loads((ROOT / "benchmarks" / "results" / "loss_types.json").read_text())
    page = (ROOT / "docs" / "algorithms.md").read_text()
    rows = re.findall(r"^\| `grpo`.*\|$|^\| `dapo`.*\|$", page.partition("## Signs of a collapse")[2], re.MULTILINE)
    assert len(rows) == len(ARMS)
    for row, parts in zip(rows, result["arms"].values(), strict=True):
        first, last = parts[0], parts[-1]
        cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
        assert cells == [
            *(f"{part['entropy']:.2f}" for part in (first, last)),
            *(f"{part['rollout/truncated_answers']:.0%}".replace("%", " %") for part in (first, last)),
            *(f"{part['rollout/success']:.0%}".replace("%", " %") for part in (first, last)),
        ]
