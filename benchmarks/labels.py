"""Measure how many turns `agentgym label` labels per hour.

    python -m benchmarks.labels [--out FILE.json] [--repeats 3] [--baseline FOLDER]

Episodes of a random policy and of a careless oracle (30 % slips, 20 % idle turns), at most 20 turns each, for
TextCraft, four small levels of BabyAI and all its levels. CPU time of replay and labels on one core, the median of
several repeats. Two cores label twice as many turns: processes share nothing.

With `--baseline`, the code in another checkout plays and labels the same episodes, in turns with this one and each time
in a new process. The speedup is the median over the repeats, with its range: one machine may be busier than another.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table

from agentgym_envs.labels.labeller import Labeller
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, Policy, RandomPolicy, play_many_text, run_sync
from agentgym_envs.trajectory import Trajectory
from benchmarks.common import machine, run

ROOT = Path(__file__).parents[1]
CORES, GOAL = 2, 1_000_000
RATE = "turns_per_hour_and_core"
EPISODES, TURNS = 40, 20
ENVS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "TextCraft": ("AgentGym/TextCraft-v0", {}),
    "BabyAI, GoToLocal": ("AgentGym/BabyAI-v0", {"levels": "GoToLocal"}),
    "BabyAI, PickupLoc": ("AgentGym/BabyAI-v0", {"levels": "PickupLoc"}),
    "BabyAI, OpenDoor": ("AgentGym/BabyAI-v0", {"levels": "OpenDoor"}),
    "BabyAI, UnlockLocal": ("AgentGym/BabyAI-v0", {"levels": "UnlockLocal"}),
    "BabyAI, all levels": ("AgentGym/BabyAI-v0", {}),
}
POLICIES: Mapping[str, Callable[[], Policy]] = {
    "random": RandomPolicy,
    "careless oracle": partial(OraclePolicy, slip=0.3, idle=0.2),
}


def measure(repeats: int) -> dict[str, Any]:
    """The rows of all environments and policies."""
    played = {
        (name, policy): episodes(env_id, options, make)
        for name, (env_id, options) in ENVS.items()
        for policy, make in POLICIES.items()
    }
    samples: dict[tuple[str, str], list[dict[str, float]]] = {key: [] for key in played}
    for _ in range(repeats):
        for key, found in played.items():
            samples[key].append(label(found))
    rows = [
        {"env": env, "policy": policy, **{name: statistics.median(one[name] for one in found) for name in found[0]}}
        for (env, policy), found in samples.items()
    ]
    return {"machine": machine(), "repeats": repeats, "cores": CORES, "goal": GOAL, "rows": rows}


def compare(repeats: int, baseline: Path) -> dict[str, Any]:
    """The result of this checkout, with the speedup of each row over the baseline."""
    pairs = []
    for number in range(repeats):
        sides = (ROOT, baseline.resolve()) if number % 2 == 0 else (baseline.resolve(), ROOT)
        found = {side: in_process(side) for side in sides}
        pairs.append((found[ROOT], found[baseline.resolve()]))
    return combine(pairs)


def in_process(folder: Path) -> dict[str, Any]:
    """The result of the code in a folder, measured once in a new process."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "labels.json"
        command = [sys.executable, "-m", "benchmarks.labels", "--repeats", "1", "--out", str(out)]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        result: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return result


def combine(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """One result of several pairs of ours and the baseline's; both label the same turns equally."""
    first, rows = pairs[0][0], []
    for number, row in enumerate(first["rows"]):
        ours, baseline = ([pair[side]["rows"][number] for pair in pairs] for side in range(2))
        if any({**one, RATE: 0} != {**row, RATE: 0} for one in [*ours, *baseline]):
            raise SystemExit(
                f"the baseline labels other turns, or labels them differently: {row['env']}, {row['policy']}"
            )
        ratios = [one[RATE] / other[RATE] for one, other in zip(ours, baseline, strict=True)]
        rates = {RATE: statistics.median(one[RATE] for one in ours)}
        speedup = {"median": statistics.median(ratios), "from": min(ratios), "to": max(ratios)}
        rows.append({**row, **rates, "speedup": speedup})
    return {**first, "repeats": len(pairs), "rows": rows}


def episodes(env_id: str, options: dict[str, Any], policy: Callable[[], Policy]) -> list[Trajectory]:
    specs = [EpisodeSpec(seed=seed) for seed in range(EPISODES)]
    return run_sync(play_many_text(specs, partial(gym.make, env_id, **options), policy, limits=Limits(TURNS)))


def label(played: list[Trajectory]) -> dict[str, float]:
    """Turns, the share of exact ones, and turns per hour and core."""
    with closing(Labeller()) as labeller:
        begun = time.process_time()
        labels = [turn for one in played for turn in labeller.label(one).turns]
        seconds = time.process_time() - begun
    exact = sum(turn.exact for turn in labels) / len(labels)
    return {"turns": len(labels), "exact": exact, RATE: len(labels) / seconds * 3600}


def show(result: dict[str, Any]) -> None:
    title = f"labelled turns per hour on {CORES} cores, median of {result['repeats']} repeats"
    table = Table(title=title)
    for column in ("environment", "policy", "turns", "exact", "million per hour", f"goal {GOAL / 1e6:g}", "speedup"):
        table.add_column(column, justify="left" if column in ("environment", "policy") else "right")
    for row in result["rows"]:
        rate = CORES * row[RATE]
        cells = [f"{row['turns']:.0f}", f"{100 * row['exact']:.0f} %", f"{rate / 1e6:.2f}"]
        table.add_row(row["env"], row["policy"], *cells, "met" if rate >= GOAL else "missed", ratio(row))
    Console().print(table)


def ratio(row: dict[str, Any]) -> str:
    speedup = row.get("speedup")
    return f"{speedup['median']:.2f} ({speedup['from']:.2f} – {speedup['to']:.2f})" if speedup else ""


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=3, compare=compare)
