"""Measure a vector environment, with Gymnasium's own as the baseline in the same run.

    python -m benchmarks.vector [--out benchmarks/results/vector.json] [--repeats 7]

CPU time of this process and of its workers, the median of several repeats; everything takes its turn in each repeat,
so that a busy machine is as unfair to one as to the other, and a ratio is the median of the ratios of the repeats.

A bare text environment (600 characters, nothing computed) with rich infos shows what comes on top of its own step.
"in step" means that all episodes end at the same time; "staggered" that some end at every step, as they do in earnest,
so that the infos of a step differ in their keys. TextCraft then shows what is left of that where a step does something.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import psutil
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from rich.console import Console
from rich.table import Table

from agentgym_envs.spaces import Utf8Text
from agentgym_envs.vector import EnvRunner, TextVectorEnv, make_vec
from benchmarks.common import machine, run

TEXTCRAFT = "AgentGym/TextCraft-v0"
SIZES = (8, 32, 64)
TARGETS = {"overhead, arrays, us": 3.0, "overhead, list, us": 3.0, "x SyncVectorEnv, arrays": 3.0}
COMMANDS = ("inventory", "get 1 oak log", "craft 4 oak planks using 1 oak log", "look")
EPISODE = 30
SECONDS = 0.3
"""Seconds per sample."""
Samples = dict[str, list[float]]
Row = dict[str, Any]
"""`median` and `samples` of each figure."""


class BareEnv(gym.Env[str, str]):
    """Text and rich infos, and nothing else."""

    def __init__(self, staggered: bool = False) -> None:
        self.observation_space, self.action_space = Utf8Text(4096), Utf8Text(512)
        self.staggered, self.turn, self.text = staggered, 0, "x" * 600

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = (seed or 0) % EPISODE if self.staggered else 0
        return self.text, self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        info = self._info()
        info["invalid_action"] = None
        return self.text, 0.0, self.turn >= EPISODE, False, info

    def _info(self) -> dict[str, Any]:
        return {
            "task_id": "bare/1",
            "turn": self.turn,
            "score": 0.5,
            "success": False,
            "stop_reason": None if self.turn < EPISODE else "failure",
            "available_actions": ["get 1 oak log", "inventory", "craft 1 stick using 2 oak planks"],
            "inventory": {"oak log": 1, "stick": 4},
        }


def measure(repeats: int) -> dict[str, Any]:
    """All figures: rows by measurement, columns by figure."""
    rows = {}
    for staggered in (False, True):
        for size in SIZES:
            name = f"bare, {size}, {'staggered' if staggered else 'in step'}"
            rows[name] = bare_row(size, staggered, repeats)
    textcraft = {f"TextCraft, {size}": textcraft_row(size, repeats) for size in SIZES}
    return {"machine": machine(), "repeats": repeats, "bare": rows, "textcraft": textcraft, "targets": TARGETS}


def bare_row(size: int, staggered: bool, repeats: int) -> Row:
    make = partial(BareEnv, staggered)
    fleet: dict[str, VectorEnv] = {
        "arrays": TextVectorEnv([EnvRunner(make, "inline") for _ in range(size)]),
        "list": TextVectorEnv([EnvRunner(make, "inline") for _ in range(size)], infos="list"),
        "SyncVectorEnv": SyncVectorEnv([make] * size),
        "AsyncVectorEnv": AsyncVectorEnv([make] * size, shared_memory=False),
    }
    samples = sample(fleet, repeats, alone=make())
    figures = {f"{name}, us": values for name, values in samples.items()}
    for ours in ("arrays", "list"):
        pairs = zip(samples[ours], samples["step alone"], strict=True)
        figures[f"overhead, {ours}, us"] = [whole - alone for whole, alone in pairs]
        for theirs in ("SyncVectorEnv", "AsyncVectorEnv"):
            figures[f"x {theirs}, {ours}"] = ratios(samples[theirs], samples[ours])
    return row(figures)


def textcraft_row(size: int, repeats: int) -> Row:
    fleet: dict[str, VectorEnv] = {
        "inline, arrays": make_vec(TEXTCRAFT, size, backend="inline"),
        "inline, list": make_vec(TEXTCRAFT, size, backend="inline", infos="list"),
        "thread, arrays": make_vec(TEXTCRAFT, size, backend="thread"),
        "process, arrays": make_vec(TEXTCRAFT, size, backend="process", num_workers=os.cpu_count()),
        "SyncVectorEnv": SyncVectorEnv([partial(gym.make, TEXTCRAFT)] * size),
    }
    samples = sample(fleet, repeats, alone=gym.make(TEXTCRAFT))
    figures = {f"{name}, us": values for name, values in samples.items()}
    for ours in ("inline, arrays", "inline, list"):
        figures[f"x SyncVectorEnv, {ours}"] = ratios(samples["SyncVectorEnv"], samples[ours])
    return row(figures)


def row(figures: Samples) -> Row:
    """The median of each figure, and its repeats."""
    samples = {name: [round(value, 4) for value in values] for name, values in figures.items()}
    return {"median": {name: statistics.median(values) for name, values in samples.items()}, "samples": samples}


def sample(fleet: dict[str, VectorEnv], repeats: int, alone: gym.Env[str, str]) -> Samples:
    """CPU microseconds an env-step, of each in turn, and of a step without a vector environment. Closes them."""
    samples: Samples = {"step alone": [], **{name: [] for name in fleet}}
    alone.reset(seed=0)
    for envs in fleet.values():
        envs.reset(seed=0)
    for _ in range(repeats):
        samples["step alone"].append(cpu_per_step(alone))
        for name, envs in fleet.items():
            samples[name].append(cpu_per_env_step(envs))
    for envs in fleet.values():
        envs.close()
    return samples


def cpu_per_env_step(envs: VectorEnv) -> float:
    batches = [(command,) * envs.num_envs for command in COMMANDS]
    return spent(lambda: [envs.step(actions) for actions in batches]) / len(batches) / envs.num_envs


def cpu_per_step(env: gym.Env[str, str]) -> float:
    commands = COMMANDS * 100
    return spent(lambda: [env.step(command) for command in commands]) / len(commands)


def spent(act: Callable[[], Any]) -> float:
    """CPU microseconds that `act` takes here and in child processes."""
    act()
    gc.collect()
    children = psutil.Process().children(recursive=True)
    count, end = 0, time.perf_counter() + SECONDS
    begun = time.process_time() + sum(map(cpu_of, children))
    while time.perf_counter() < end:
        act()
        count += 1
    return (time.process_time() + sum(map(cpu_of, children)) - begun) / count * 1e6


def cpu_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def ratios(theirs: list[float], ours: list[float]) -> list[float]:
    return [other / own for other, own in zip(theirs, ours, strict=True)]


def show(result: dict[str, Any]) -> None:
    for title, name in (("A bare text environment with rich infos", "bare"), ("TextCraft", "textcraft")):
        rows = {size: row["median"] for size, row in result[name].items()}
        table = Table(title=f"{title}: CPU an env-step, median of {result['repeats']} repeats")
        table.add_column("figure")
        for row in rows:
            table.add_column(row.split(", ", 1)[1], justify="right")
        for figure in next(iter(rows.values())):
            table.add_row(figure, *(f"{row[figure]:.2f}" for row in rows.values()))
        Console(width=120).print(table)
    last = result["bare"][f"bare, {SIZES[-1]}, in step"]["median"]
    for figure, target in result["targets"].items():
        met = last[figure] >= target if figure.startswith("x") else last[figure] <= target
        Console().print(f"{figure} ({SIZES[-1]} environments): {last[figure]:.2f}, target {target}: {met}")


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=7)
