"""The cost of screenshots: time of a step with and without, and bytes per image.

    python -m benchmarks.screenshots [--out benchmarks/results/screenshots.json] [--repeats 2]

The environments play the same solutions side by side, one step each in turn, so the differences are paired by step. CPU
time is that of this process, the browser and its renderers; it is counted in units of 10 ms.
"""

from __future__ import annotations

import json
import os
import time
from statistics import median
from typing import Any

import gymnasium as gym
import psutil

from agentgym_envs.core import text_env
from benchmarks.common import machine, run

TASKS = 8
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("AgentGym/WebArena-v0", {}),
    "recorded": ("AgentGym/WebArena-v0", {"record_screenshots": True}),
    "recorded as JPEG": ("AgentGym/WebArena-v0", {"record_screenshots": True, "screenshot_format": "jpeg"}),
    "observed": ("AgentGym/WebArenaPixels-v0", {"observation": "both"}),
    "set-of-marks": ("AgentGym/WebArenaPixels-v0", {"observation": "som"}),
}


def measure(repeats: int) -> dict[str, Any]:
    """Play everything `repeats` times."""
    envs = {name: gym.make(env_id, **kwargs) for name, (env_id, kwargs) in VARIANTS.items()}
    rows = [row for _ in range(repeats) for row in play(envs)]
    for env in envs.values():
        env.close()
    load = round(os.getloadavg()[0], 1)
    found = {name: summary(rows, name) for name in VARIANTS}
    return {"machine": machine(), "load": load, "steps": len(rows), "variants": found}


def show(result: dict[str, Any]) -> None:
    """Print the figures."""
    print(json.dumps(result, indent=1))


def play(envs: dict[str, gym.Env[str, str]]) -> list[dict[str, tuple[float, float, int]]]:
    """Play solutions in all environments. Returns wall seconds, CPU seconds and image bytes of each step by variant."""
    rows = []
    first = text_env(envs["text"])
    for task in first.tasks.sample(TASKS, split="validation", seed=3):
        for env in envs.values():
            env.reset(seed=0, options={"task": task.id})
        for command in [one for one in first.oracle() if not one.startswith("stop")]:
            rows.append({name: timed(env, command) for name, env in envs.items()})
    return rows


def timed(env: gym.Env[str, str], command: str) -> tuple[float, float, int]:
    """Take a step. Returns wall seconds, CPU seconds, and the bytes of the screenshot."""
    cpu, began = cpu_seconds(), time.perf_counter()
    info = env.step(command)[4]
    return time.perf_counter() - began, cpu_seconds() - cpu, len(info.get("screenshot", b""))


def cpu_seconds() -> float:
    """The CPU time of this process and all processes that it started."""
    here = psutil.Process()
    total = 0.0
    for process in (here, *here.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:  # it has ended
            continue
        total += times.user + times.system
    return total


def summary(rows: list[dict[str, tuple[float, float, int]]], name: str) -> dict[str, float]:
    """Medians of a variant in milliseconds and bytes; `extra` is the paired difference from `text`."""
    steps = [row[name] for row in rows]
    extra = [[row[name][index] - row["text"][index] for row in rows] for index in (0, 1)]
    return {
        "wall_ms": round(1e3 * median(step[0] for step in steps), 1),
        "cpu_ms": round(1e3 * median(step[1] for step in steps), 1),
        "extra_wall_ms": round(1e3 * median(extra[0]), 1),
        "extra_cpu_ms": round(1e3 * median(extra[1]), 1),
        "bytes": round(median(step[2] for step in steps)),
        "max_bytes": max(step[2] for step in steps),
    }


if __name__ == "__main__":
    run(__doc__, measure, show, 2)
