"""Measure the share of SciWorld that its oracle solves.

    python -m benchmarks.sciworld_oracle [--variations 10] [--tasks boil ...] [--simplifications easy] [--out FILE.json]

Variations drawn from each of the thirty tasks, all splits: reset, the oracle's plan, its commands as actions. Solved is
an episode that ends as a success with score 1. Commands and moves (the simulator's ticks) are means over those solved;
seconds are wall time, for a plan and for carrying it out. Some ten minutes for all; what is not solved is listed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table

import agentgym_envs
from agentgym_envs.errors import NoOracle
from agentgym_envs.sciworld.tasks import choose_kinds, table
from benchmarks.common import machine

SEED = 0


def sample(tasks: list[str], variations: int) -> Iterator[tuple[str, list[str]]]:
    """Each task with some of its ids."""
    for name in choose_kinds(tasks or "all"):
        count = len(table().kinds[name].goals)
        numbers = random.Random(f"{SEED} {name}").sample(range(count), min(variations, count))
        yield name, [f"sciworld/{name}/{number}" for number in sorted(numbers)]


def attempt(env: gym.Env[str, str], task: str) -> dict[str, Any]:
    env.reset(seed=0, options={"task": task})
    base, begun = env.unwrapped, time.perf_counter()
    assert isinstance(base, agentgym_envs.TextEnv)
    try:
        plan = list(base.oracle())
    except NoOracle as reason:
        return {"task": task, "solved": False, "why": str(reason), "plan_s": time.perf_counter() - begun}
    planned = time.perf_counter()
    info: dict[str, Any] = {}
    for command in plan:
        *_, info = env.step(command)
    return {
        "task": task,
        "solved": info["success"] and abs(info["score"] - 1) < 1e-9,
        "why": "" if info["success"] else f"{info['stop_reason']}, score {info['score']:.2f}",
        "commands": len(plan),
        "moves": info["moves"],
        "plan_s": planned - begun,
        "play_s": time.perf_counter() - planned,
    }


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    options = {"split": None, "simplifications": arguments.simplifications, "call_seconds": 600.0}
    env = gym.make("AgentGym/SciWorld-v0", **options)
    rows = []
    for name, tasks in sample(arguments.tasks, arguments.variations):
        rows += [attempt(env, task) for task in tasks]
        solved = sum(row["solved"] for row in rows[-len(tasks) :])
        Console(stderr=True).print(f"{name}: {solved} of {len(tasks)}", highlight=False)
    env.close()
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    shown = Table(title="SciWorld's oracle")
    for column in ("task", "solved", "commands", "moves", "plan s", "play s", "longest plan s"):
        shown.add_column(column, justify="left" if column == "task" else "right")
    for name in dict.fromkeys(row["task"].split("/")[1] for row in rows):
        mine = [row for row in rows if row["task"].split("/")[1] == name]
        solved = [row for row in mine if row["solved"]]
        means = [mean(solved, key) for key in ("commands", "moves", "plan_s", "play_s")]
        shown.add_row(name, f"{len(solved)}/{len(mine)}", *means, f"{max(row['plan_s'] for row in mine):.1f}")
    console = Console(width=120)
    console.print(shown)
    console.print(f"solved: {sum(row['solved'] for row in rows)} of {len(rows)}", highlight=False)
    for row in rows:
        if not row["solved"]:
            console.print(f"{row['task']}: {row['why']}", highlight=False)


def mean(rows: list[dict[str, Any]], key: str) -> str:
    if not rows:
        return ""
    value = statistics.fmean(row[key] for row in rows)
    return f"{value:.2f}" if key.endswith("_s") else f"{value:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variations", type=int, default=10, help="of each task (default: 10)")
    parser.add_argument("--tasks", nargs="*", default=[], help="names or numbers; all by default")
    parser.add_argument("--simplifications", default="", help='such as "easy"')
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    arguments = parser.parse_args()
    rows = measure(arguments)
    show(rows)
    if arguments.out:
        result = {"machine": machine(), "seed": SEED, "rows": rows}
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
