"""The tables of the studies on docs/algorithms.md have the figures of their JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from benchmarks import samplers
from benchmarks.algorithms import interval, success
from benchmarks.seed_runs import differences, with_interval

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8").splitlines()
PROCESS = "`--process-reward"
NAMES = {
    "GRPO": "GRPO",
    "turn-level GRPO": "turn-level GRPO",
    "GiGPO": "GiGPO",
    "PPO": "PPO",
    "vine every-turn K2": "`vine`, every turn, K = 2",
    "vine random-1 K4": "`vine`, `random:1`, K = 4",
    "vine surprising-1 K2": "`vine`, `surprising:1`, K = 2",
    "tree 2x2": "`tree`, `2x2`",
    "turn-level GRPO, regret": f"turn-level GRPO, {PROCESS} regret`",
    "turn-level GRPO, agreement": f"turn-level GRPO, {PROCESS} oracle-agreement`",
    "PPO, regret": f"PPO, {PROCESS} regret`",
    "PPO, agreement": f"PPO, {PROCESS} oracle-agreement`",
    "DAgger": "DAgger",
    "DAgger, few labels": "DAgger, a quarter of the episodes",
    "oracle clone": "imitation of the oracle's own episodes",
    "oracle clone, few labels": "the same, a quarter of the episodes",
    "distill": "`distill`",
    "AgentEvol": "AgentEvol",
    "more imitation": "more imitation of the careless teacher",
}
LABELS = {"textcraft": "known goals, new prompts, sampled", "babyai": "held-out worlds, sampled"}


def read(name: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads((ROOT / "benchmarks" / "results" / name).read_text("utf-8"))
    return found


def total(runs: list[dict[str, Any]], key: str) -> str:
    return f"{fmean(run[key] for run in runs):,.0f}"


@pytest.mark.parametrize("study", ["vine", "vine-babyai", "oracles", "oracles-babyai"])
def test_every_arm_has_its_row(study: str) -> None:
    runs = read(f"{study}.json")
    label = LABELS["babyai" if study.endswith("babyai") else "textcraft"]
    base = success(runs["GRPO"], label)
    for arm in NAMES.keys() & runs.keys():
        values = success(runs[arm], label)
        assert [run["seed"] for run in runs[arm]] == [101, 102, 103, 104, 105]
        less = "" if arm == "GRPO" else with_interval(differences(values, base))
        cells = [NAMES[arm], with_interval(values), less]
        if study.startswith("vine"):
            cells += [total(runs[arm], "tokens"), total(runs[arm], "tokens_to_goal")]
        elif "labels" in runs[arm][0]:
            cells += [total(runs[arm], "tokens"), total(runs[arm], "labels")]
        row = " | ".join(["", *("" if cell == "0" else cell for cell in cells)]).replace("|  |", "| |")
        assert any(line.startswith(row.replace(" -0.0 [", " 0.0 [").strip()) for line in PAGE), row
    assert runs.keys() - NAMES.keys() <= {"warm start", "estimates"}


def test_every_sampler_has_its_row() -> None:
    runs = read("samplers.json")
    targets = [samplers.target_of(run["curve"]) for run in runs["uniform"]]
    for name in samplers.SAMPLERS:
        needed = [samplers.tokens_to(run["curve"], target) for run, target in zip(runs[name], targets, strict=True)]
        final = fmean(fmean(point["success"] for point in run["curve"][-3:]) for run in runs[name])
        row = [line for line in PAGE if line.startswith(f"| `{name}` | {fmean(needed):,.0f} |")]
        assert len(row) == 1 and f"| {100 * final:.1f} % |" in row[0]


def test_every_estimate_has_its_row() -> None:
    both = [[run["errors"] for run in read(name)["estimates"]] for name in ("vine.json", "vine-babyai.json")]
    for method in both[0][0]:
        cells = []
        for errors in both:
            middle, low, high = (f"{value:.2f}" for value in interval([run[method]["rmse"] for run in errors]))
            cells += [f"{middle} [{low}, {high}]", f"{fmean(run[method]['correlation'] for run in errors):.2f}"]
            cells.append(f"{fmean(run[method]['tokens_per_episode'] for run in errors):.0f}")
        assert any(line.endswith(f"| {' | '.join(cells)} |") for line in PAGE), (method, cells)
