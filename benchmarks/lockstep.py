"""Compare episodes that do not wait for each other with AgentGym-RL's rounds, on the same latencies.

    python -m benchmarks.lockstep [--out FILE.json] [--repeats 10] [--quick] [--latencies FILE.json]

The engine is simulated: how long each answer takes is recorded once (`benchmarks.latencies`), and all sides get the
same. "rounds" is what AgentGym-RL's rollout does on each of its engines: in each round all episodes that still run are
answered together, the round lasts until the slowest answer is there, then all step in threads, and again the slowest is
waited for. "as shipped" adds what its code also does: environments made and reset one after the other, and a second's
pause before the resets and between the answers and the steps of each round. "ours" is `play_many_text` with one
coroutine an episode, over real environments of the suite's kind.

Time is virtual (`benchmarks.virtual_clock`): exact, and spent by nothing but waiting. One setting is played again on a
real clock, a tenth as long, as a check. "stream" plays four times as many episodes as may run at a time: rounds take
batch after batch, ours starts an episode wherever another has ended. A real engine is slower the more it answers at a
time; these latencies do not depend on it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.rollout import EpisodeSpec, Limits, play_many_text
from agentgym_envs.task import Task, TaskTable
from agentgym_envs.trajectory import Message
from agentgym_envs.vector.pool import RunnerPool
from benchmarks.common import machine
from benchmarks.latencies import MOST_TURNS, TAILS, Recording, read, record
from benchmarks.virtual_clock import run_virtual

SIZES = (8, 32, 128, 512)
TYPICAL_TAIL, TYPICAL_SIZE, WAVES = "log-normal 1.0", 128, 4
ENV_SECONDS = (0.0, 0.3)
PAUSE = 1.0
"""AgentGym-RL sleeps so long before environments are reset, and before they step (its `send_interval`)."""
OPEN_SECONDS = 0.0022
"""Two requests to an idle server of AgentGym, to make an environment and to reset it: its client sends one after the
other, for one environment after the other."""
CHECK_SCALE, CHECK_SIZE = 0.1, 32
Numbers = dict[str, float]


class WaitingEnv(TextEnv):
    """An episode with the recorded number of turns and answer times."""

    native_async = True
    rules = "Say anything."

    def __init__(self, tasks: TaskTable, steps: Sequence[Sequence[float]]) -> None:
        self.tasks, self._steps = tasks, steps
        super().__init__()

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._left = iter(self._steps[task.data["number"]])
        self._count = len(self._steps[task.data["number"]])
        return "Go on."

    def _act(self, command: str) -> Transition:
        self._count -= 1
        return Transition("Go on.", 0.0, self._count == 0)

    async def _act_async(self, command: str) -> Transition:
        await asyncio.sleep(next(self._left))
        return self._act(command)

    def _state(self) -> str:
        return str(self._count)


class RecordedPolicy:
    """Says a word as late as was recorded."""

    def __init__(self, answers: Sequence[Sequence[float]]) -> None:
        self._answers, self._turn = answers, 0

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """The word."""
        assert env.task is not None
        await asyncio.sleep(self._answers[env.task.data["number"]][self._turn])
        self._turn += 1
        return "on"


async def play_ours(recording: Recording, together: int) -> None:
    """The suite's own loop, `together` episodes at a time."""
    rows = [Task(f"wait/{number}", "train", "wait", "", {"number": number}) for number in range(len(recording.env))]
    tasks = TaskTable("wait", 1, rows)
    pool = RunnerPool(partial(WaitingEnv, tasks, recording.env), together)
    runners = [pool.acquire("") for _ in range(together)]  # made before the clock runs
    for runner in runners:
        pool.release("", runner)
    policy, limits = partial(RecordedPolicy, recording.answers), Limits(max_turns=MOST_TURNS * 10, env_seconds=None)
    specs = [EpisodeSpec(row.id) for row in rows]
    played = await play_many_text(specs, pool, policy, limits=limits, concurrency=together)
    assert [len(one.turns) for one in played] == [len(row) for row in recording.env]
    pool.close()


async def play_rounds(recording: Recording, together: int, *, as_shipped: bool = False) -> None:
    """AgentGym-RL's rounds, a batch of `together` after the other."""
    for first in range(0, len(recording.answers), together):
        batch = range(first, min(first + together, len(recording.answers)))
        if as_shipped:
            await asyncio.sleep(PAUSE + OPEN_SECONDS * len(batch))
        turn, running = 0, list(batch)
        while running:
            await asyncio.gather(*(asyncio.sleep(recording.answers[number][turn]) for number in running))
            if as_shipped:
                await asyncio.sleep(PAUSE)
            await asyncio.gather(*(asyncio.sleep(recording.env[number][turn]) for number in running))
            turn += 1
            running = [number for number in running if turn < len(recording.answers[number])]


def compare(recording: Recording, together: int) -> Numbers:
    """Virtual seconds of each, and how busy the episode slots are."""
    sides = {
        "ours": play_ours(recording, together),
        "rounds": play_rounds(recording, together),
        "as shipped": play_rounds(recording, together, as_shipped=True),
    }
    seconds = {f"{name}, s": run_virtual(side)[1] for name, side in sides.items()}
    ours, rounds, shipped = seconds.values()
    return {
        **seconds,
        "longest episode, s": recording.longest,
        "times, rounds": rounds / ours,
        "times, as shipped": shipped / ours,
        "places waiting for the model, ours, %": 100 * recording.total / (together * ours),
        "places waiting for the model, rounds, %": 100 * recording.total / (together * rounds),
    }


def setting(tail: str, together: int, waves: int, env_seconds: float, repeats: int) -> dict[str, Any]:
    """One row: medians over recordings, and how far they lie apart."""
    runs = [compare(record(waves * together, tail, seed, env_seconds), together) for seed in range(repeats)]
    what = {"tail": tail, "together": together, "waves": waves, "env seconds": env_seconds}
    return {**what, **summary(runs)}


def summary(runs: Sequence[Numbers]) -> dict[str, Any]:
    """`median`, and `samples` by figure."""
    samples = {name: [round(run[name], 4) for run in runs] for name in runs[0]}
    return {"median": {name: statistics.median(values) for name, values in samples.items()}, "samples": samples}


def check(repeats: int) -> dict[str, Any]:
    """Both on a clock that ticks, next to what the virtual clock says."""
    recording = record(CHECK_SIZE, TYPICAL_TAIL, 0).scaled(CHECK_SCALE)
    predicted, runs = compare(recording, CHECK_SIZE), list[Numbers]()
    for _ in range(repeats):
        seconds = Numbers()
        for name, side in (("ours", play_ours), ("rounds", play_rounds)):
            began = time.perf_counter()
            asyncio.run(side(recording, CHECK_SIZE))
            seconds[f"{name}, s"] = time.perf_counter() - began
        runs.append({**seconds, "times, rounds": seconds["rounds, s"] / seconds["ours, s"]})
    virtual = {name: predicted[name] for name in runs[0]}
    return {"tail": TYPICAL_TAIL, "together": CHECK_SIZE, "scale": CHECK_SCALE, "virtual": virtual, **summary(runs)}


def measure(repeats: int, quick: bool) -> dict[str, Any]:
    """Every figure."""
    tails, sizes = (TAILS[:2], SIZES[:2]) if quick else (TAILS, SIZES)
    typical = sizes[-1] if quick else TYPICAL_SIZE
    rows = [setting(tail, size, 1, 0.0, repeats) for tail in tails for size in sizes]
    stream = [setting(tail, typical, WAVES, 0.0, repeats) for tail in tails]
    slow = [setting(TYPICAL_TAIL, typical, 1, seconds, repeats) for seconds in ENV_SECONDS]
    found = {"tails": rows, "stream": stream, "environment": slow, "real clock": check(min(repeats, 3))}
    return {"machine": machine(), "repeats": repeats, "typical": {"tail": TYPICAL_TAIL, "together": typical}, **found}


def show(result: dict[str, Any]) -> None:
    table = Table("latencies", "at a time", "episodes", "env, s", title=f"Medians of {result['repeats']} recordings")
    names = ("ours, s", "rounds, s", "times, rounds", "times, as shipped")
    for name in names:
        table.add_column(name, justify="right")
    for row in [*result["tails"], *result["stream"], *result["environment"]]:
        what = (row["tail"], f"{row['together']}", f"{row['waves'] * row['together']:,}", f"{row['env seconds']:g}")
        table.add_row(*what, *(f"{row['median'][name]:,.2f}" for name in names))
    console, clock = Console(width=110), result["real clock"]
    console.print(table)
    times = clock["median"]["times, rounds"], clock["virtual"]["times, rounds"]
    console.print(
        f"On a real clock, {clock['together']} episodes: {times[0]:.2f} times; by the virtual one {times[1]:.2f}"
    )


def show_own(path: Path) -> None:
    """The comparison on latencies of one's own."""
    recording = read(path)
    figures = compare(recording, len(recording.answers))
    for name, value in figures.items():
        Console().print(f"{name:<42}{value:>10,.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--repeats", type=int, default=10, help="how many recordings of each kind (default: 10)")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--latencies", type=Path, help="compare on these seconds instead: a list for each episode")
    options = parser.parse_args()
    if options.latencies:
        show_own(options.latencies)
        return
    result = measure(options.repeats, options.quick)
    show(result)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
