"""Writes the frozen difficulties of SciWorld and WebArena: plays their oracles, which takes an hour.

    python scripts/measure_difficulty.py sciworld webarena webarena-2 [--per-kind 1]

A kind of task (a template, one of ScienceWorld's thirty tasks) gets the median over the first tasks of it that the
oracle solves. "webarena-2" measures the templates that version 2 of the table adds. The script continues where it
stopped. `tests/test_difficulty.py` checks some of the numbers.
"""

from __future__ import annotations

import argparse
import json
import statistics
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium as gym

import agentgym_envs
from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import NoOracle
from agentgym_envs.task import Task

ROOT = Path(agentgym_envs.__file__).parent
_SCIWORLD = {"info": ["possible_objects"], "call_seconds": 900.0}
_WEB_DATA = ROOT / "webarena" / "tasks" / "data"
_WEB = {"call_seconds": 120.0}
FILES: dict[str, tuple[str, Path, dict[str, Any]]] = {
    "sciworld": ("AgentGym/SciWorld-v0", ROOT / "sciworld" / "difficulty.json", _SCIWORLD),
    "webarena": ("AgentGym/WebArena-v0", _WEB_DATA / "difficulty.json", _WEB),
    "webarena-2": ("AgentGym/WebArena-v0", _WEB_DATA / "difficulty-2.json", _WEB | {"table_version": 2}),
}
EARLIER = {"webarena-2": "webarena"}
"""The version whose kinds a later one leaves out."""
KIND = {"sciworld": "task", "webarena": "template", "webarena-2": "template"}
CHOICES = {"sciworld": "possible_objects", "webarena": "elements", "webarena-2": "elements"}


def main() -> None:
    """Measure the kinds that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="+", choices=FILES)
    parser.add_argument("--per-kind", type=int, default=1)
    arguments = parser.parse_args()
    for scenario in arguments.scenarios:
        measure_scenario(scenario, arguments.per_kind)


def measure_scenario(scenario: str, per_kind: int) -> None:
    """Measure every kind of a scenario that its file lacks."""
    env_id, path, options = FILES[scenario]
    env = text_env(gym.make(env_id, split=None, **options))
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"tasks": env.tasks.digest, "kinds": {}}
    if known["tasks"] != env.tasks.digest:
        known = {"tasks": env.tasks.digest, "kinds": {}}
    measured_before = json.loads(FILES[EARLIER[scenario]][1].read_text())["kinds"] if scenario in EARLIER else {}
    by_kind: dict[str, list[Task]] = {}
    for task in env.tasks.sample():
        by_kind.setdefault(task.data[KIND[scenario]], []).append(task)
    for kind in sorted(by_kind.keys() - measured_before.keys()):
        if kind not in known["kinds"]:
            measured = (measure(env, task, CHOICES[scenario]) for task in by_kind[kind])
            found = list(islice((row for row in measured if row is not None), per_kind))
            known["kinds"][kind] = [round(statistics.median(column)) for column in zip(*found, strict=True)]
            rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(known["kinds"].items()))
            path.write_text(f'{{"tasks": {json.dumps(known["tasks"])}, "kinds": {{\n{rows}\n}}}}\n')
            print(kind, known["kinds"][kind], flush=True)
    env.close()


def measure(env: TextEnv, task: Task, choices: str) -> tuple[int, float, float] | None:
    """Turns of the oracle, and the mean number of choices and of characters of an observation; None if it fails."""
    observation, info = env.reset(seed=0, options={"task": task.id})
    chars, counts, score = [len(observation)], [_count(info.get(choices))], 0.0
    try:
        plan = iter(env.oracle())
    except NoOracle:
        return None
    for command in plan:
        observation, reward, _, _, info = env.step(command)
        score += reward
        chars.append(len(observation))
        counts.append(_count(info.get(choices)))
    if score < 0.999:
        return None
    return len(chars) - 1, statistics.mean(counts[:-1]), statistics.mean(chars[:-1])


def _count(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else int(value or 0)


if __name__ == "__main__":
    main()
