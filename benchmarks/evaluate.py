"""Measure the overhead of `agentgym eval` over environment and policy, and the speed of the metrics.

    python -m benchmarks.evaluate [--out FILE.json] [--repeats 5]

Every task of TextCraft's test split with the oracle, with the trajectories written to disk, in ms of CPU time for each
turn of an episode: a bare loop over environment and oracle, the suite's own loop with its files, and the whole command
with its plan, metrics and reports. The median of several repeats that take turns. Metrics and reports: 10,000 episodes
of 2,500 tasks, four of each, made up from those that were played.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table

from agentgym_envs.cli import main, reports
from agentgym_envs.core import text_env
from agentgym_envs.evaluate import evaluate
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_many_text, run_sync
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, read_trajectories
from benchmarks.common import machine, run, verdict

ENV_ID = "AgentGym/TextCraft-v0"
SAMPLES = 10
"""Episodes of each task, so that what is done once a run weighs as little as in a run that one waits for."""
BARE, LOOP, COMMAND = "environment and oracle alone", "the suite's loop, written to disk", "the whole command"
ONCE, HARNESS = "the whole command, one episode a task", "of it beside environment and oracle"
METRICS, PAGE, READ = "metrics of 10,000 episodes", "all reports of 10,000 episodes", "reading 10,000 episodes"
AT_MOST = {COMMAND: 1.0, ONCE: 1.0, METRICS: 1.0}
Figures = dict[str, float]


def measure(repeats: int) -> dict[str, Any]:
    """Every figure; what is compared takes turns, so that a busy machine is as unfair to one as to the other."""
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(repeats):
            for name, value in {**costs(Path(folder) / str(number)), **many(Path(folder) / str(number))}.items():
                samples.setdefault(name, []).append(value)
    median = {name: statistics.median(values) for name, values in samples.items()}
    return {"machine": machine(), "repeats": repeats, "median": median, "at most": AT_MOST, "samples": samples}


def costs(folder: Path) -> Figures:
    """CPU time of a turn in ms."""
    env = gym.make(ENV_ID)
    tasks = [task.id for task in text_env(env).tasks.sample(split="test")]
    specs = [EpisodeSpec(task, seed) for task in tasks for seed in range(SAMPLES)]
    turns = 0

    def bare() -> None:
        nonlocal turns
        turns = sum(play_alone(env, spec) for spec in specs)

    spent = {BARE: cpu(bare), LOOP: cpu(lambda: play_all(specs, folder / "loop.jsonl"))}
    spent[COMMAND] = cpu(lambda: command(folder / "command", SAMPLES))
    figures = {name: 1000 * seconds / turns for name, seconds in spent.items()}
    figures[HARNESS] = figures[COMMAND] - figures[BARE]
    figures[ONCE] = 1000 * cpu(lambda: command(folder / "once", 1)) / (turns / SAMPLES)
    return figures


def many(folder: Path) -> Figures:
    """Seconds of CPU time for what is done at the end of a run."""
    path = folder / "many.jsonl"
    with TrajectoryWriter(path) as writer:
        for episode in made_up(list(read_trajectories(folder / "once/trajectories.jsonl"))):
            writer.write(episode)
    found: list[Trajectory] = []
    spent = {READ: cpu(lambda: found.extend(read_trajectories(path))), METRICS: cpu(lambda: evaluate(found))}
    spent[PAGE] = cpu(lambda: reports.write_all(folder, reports.make_report(found, agentgym_rl=True)))
    return spent


def made_up(played: Sequence[Trajectory]) -> list[Trajectory]:
    """10,000 episodes of 2,500 tasks with mixed results."""
    episodes = []
    for number in range(10_000):
        episode, task = played[number % len(played)], number // 4
        score = (task * 7 + number * 13) % 5 / 4
        changed = replace(episode.task, id=f"made-up/{task}")
        episodes.append(replace(episode, task=changed, seed=number % 4, score=score, success=score == 1))
    return episodes


def play_alone(env: gym.Env[str, str], spec: EpisodeSpec) -> int:
    """The turns of an unrecorded episode."""
    _, _ = env.reset(**spec.reset_arguments)
    base = text_env(env)
    turns, over = 0, False
    for plan in base.oracle():
        _, _, terminated, truncated, _ = env.step(base.grammar.format(plan))
        turns, over = turns + 1, terminated or truncated
    assert over, "the oracle's plan ends its episode"
    return turns


def play_all(specs: Sequence[EpisodeSpec], path: Path) -> None:
    with TrajectoryWriter(path) as writer:

        def keep(episode: Trajectory) -> None:
            writer.write(episode)

        run_sync(
            play_many_text(specs, lambda: gym.make(ENV_ID), OraclePolicy, limits=Limits(), concurrency=32, on_done=keep)
        )


def command(folder: Path, samples: int) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        code = main(["eval", ENV_ID, "--policy", "oracle", "-k", str(samples), "--out", str(folder)])
    assert code == 0


def cpu(what: Callable[[], object]) -> float:
    """Seconds of CPU time, those of the system included."""
    begun = time.process_time()
    what()
    return time.process_time() - begun


def show(result: dict[str, Any]) -> None:
    table = Table(title=f"agentgym eval, CPU time, median of {result['repeats']} repeats")
    for column in ("figure", "value", "unit", "target", "met"):
        table.add_column(column, justify="right" if column in ("value", "target") else "left")
    for name, value in result["median"].items():
        unit = "s" if name in (METRICS, PAGE, READ) else "ms a turn"
        table.add_row(name, f"{value:.3f}", unit, *verdict(name, value, {}, AT_MOST))
    Console().print(table)


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=5)
