"""Measure the viewer: opening ten thousand episodes, paging, sorting and searching.

    python -m benchmarks.viewer [--out FILE.json] [--repeats 3]

The episodes are TextCraft's, half of them played by its oracle and half at random; a few hundred are played, and
written down again and again under other seeds. Each count is opened in a process of its own, from its start until the
first page of the list is there; its memory is what it holds beyond a process that opened nothing.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table

from agentgym_envs import Trajectory
from agentgym_envs.core import text_env
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, RandomPolicy, play_many_text, run_sync
from agentgym_envs.trajectory import TrajectoryWriter
from benchmarks.common import machine, run, verdict

ENV_ID = "AgentGym/TextCraft-v0"
COUNTS = (0, 10_000, 100_000)
PLAYED, MAX_TURNS = 200, 20
AT_MOST = {"10,000: process start to first page s": 0.6, "100,000: process start to first page s": 2.0}

OPEN = """
import json, resource, sys, time
from pathlib import Path
from agentgym_envs.viewer.api import Viewer, to_json
from agentgym_envs.viewer.filters import parse_page
from agentgym_envs.viewer import server

def took(ask):
    start = time.perf_counter()
    to_json(ask())
    return time.perf_counter() - start

def page(**parameters):
    return lambda: viewer.page(parse_page([(name, str(value)) for name, value in parameters.items()]))

viewer = Viewer([Path(sys.argv[1])])
figures = {"index s": took(viewer.summary), "first page s": took(page())}
figures["CPU until then s"] = time.process_time()
figures["process start to first page s"] = time.time() - float(sys.argv[2])
figures["memory MB"] = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
middle = viewer.summary()["count"] // 2
figures |= {
    "another page ms": 1e3 * took(page(offset=middle)),
    "sort by score ms": 1e3 * took(page(sort="score", desc=1)),
    "filter ms": 1e3 * took(page(success=0, min_turns=3)),
    "search, a rare word s": took(page(q="no such words here")),
    "search, a word in all s": took(page(q="crafting")),
}
start = time.process_time()
figures["runs s"] = took(viewer.runs)
figures["CPU of runs s"] = time.process_time() - start
if middle:
    figures["open an episode ms"] = 1e3 * took(lambda: viewer.episode(middle))
print(json.dumps(figures))
"""


def play() -> list[Trajectory]:
    env = gym.make(ENV_ID)
    specs = [EpisodeSpec(task.id, seed=1) for task in text_env(env).tasks.sample(PLAYED // 2, split="train", seed=0)]
    played: list[Trajectory] = []
    for policy in (OraclePolicy, RandomPolicy):
        played += run_sync(
            play_many_text(specs, lambda: gym.make(ENV_ID), policy, limits=Limits(MAX_TURNS), concurrency=8)
        )
    return played


def write(path: Path, episodes: list[Trajectory], count: int) -> float:
    """Write `count` episodes; return their megabytes."""
    with TrajectoryWriter(path) as writer:
        for seed, episode in enumerate(islice(cycle(episodes), count)):
            writer.write(replace(episode, seed=seed))
    return path.stat().st_size / 1e6


def open_once(path: Path) -> dict[str, float]:
    words = [sys.executable, "-c", OPEN, str(path), str(time.time())]
    found: dict[str, float] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return found


def measure(repeats: int) -> dict[str, Any]:
    figures: dict[str, float] = {}
    episodes, nothing = play(), 0.0
    for count in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trajectories.jsonl"
            size = write(path, episodes, count)
            found = [open_once(path) for _ in range(repeats)]
        middle = {name: statistics.median(one[name] for one in found) for name in found[0]}
        if not count:
            nothing = middle["memory MB"]
            continue
        middle["memory MB"] -= nothing
        figures |= {f"{count:,}: {name}": value for name, value in {"size MB": size, **middle}.items()}
    return {"machine": machine(), "figures": figures}


def show(result: dict[str, Any]) -> None:
    table = Table("figure", "median", "target", "met")
    for name, value in result["figures"].items():
        table.add_row(name, f"{value:,.2f}", *verdict(name, value, {}, AT_MOST))
    Console().print(table)


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=3)
