"""Measure SciWorld, with the package `scienceworld` as the baseline in the same run.

    python -m benchmarks.sciworld [--out benchmarks/results/sciworld.json] [--repeats 5] [--soak] [--quick]

Both sides run the same gold paths of eight tasks, each with its own Java process: ours with our options, the baseline's
`ScienceWorldEnv` with its defaults, which are all that it offers. They alternate at every task, so that load on the
computer affects both equally. A warm-up comes first, since Java compiles frequent code; ours is shown as "cold". CPU is
that of Python and Java together, with all threads. Memory is the resident memory of Java plus the growth of this
process. `--soak` also plays 2,000 short random episodes of all thirty tasks, which takes minutes. `--quick` is a smoke
run: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import random
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import psutil
from rich.console import Console
from rich.table import Table

import agentgym_envs
from agentgym_envs.core import text_env
from agentgym_envs.sciworld.pool import shut_down
from agentgym_envs.vector import TextVectorEnv
from benchmarks.common import machine

ENV_ID = "AgentGym/SciWorld-v0"
TASKS = (
    "find-animal",
    "use-thermometer",
    "boil",
    "power-component",
    "grow-plant",
    "melt",
    "find-plant",
    "mendelian-genetics-known-plant",
)
CPU_TARGET, WALL_TARGET, MEMORY_TARGET = 6.0, 4.0, 700.0
"""Times less than the other package's; times faster; MB of `TOGETHER` environments."""
TOGETHER = 8
WARM_UP = 15
"""Warm-up commands per task for the baseline. Ours runs all commands, which is still less work for Java."""
COMMANDS = 10
"""Commands per episode of the soak test."""
Paths = Mapping[str, Sequence[str]]
Samples = dict[str, list[float]]
Round = dict[str, dict[str, float]]
"""Milliseconds of what is measured, by side."""


class Sizes(NamedTuple):
    """The extent of the measurement."""

    tasks: int = 8
    commands: int | None = None
    """Maximum commands of each gold path."""
    starts: int = 3
    """Number of cold starts of a Java process."""
    runners: int = 32
    lane_steps: int = 50
    episodes: int = 2000


QUICK = Sizes(tasks=2, commands=3, starts=1, runners=9, lane_steps=2, episodes=8)


class Usage(NamedTuple):
    """CPU seconds used."""

    wall: float
    python: float
    java: float

    def plus(self, begun: Usage, ended: Usage) -> Usage:
        """This and what was used up between two moments."""
        return Usage(*(old + later - earlier for old, earlier, later in zip(self, begun, ended, strict=True)))


def measure(sizes: Sizes, repeats: int, soak: bool) -> dict[str, Any]:
    """Every figure. Each part begins with no Java machine."""
    paths, java = gold_paths(sizes)
    result: dict[str, Any] = {
        "machine": machine() | {"java": java},
        "repeats": repeats,
        "commands": sum(map(len, paths.values())),
        "start": start_figures(sizes.starts, list(paths)),
        "together": together_figures(paths),
        "vector": vector_figures(sizes, paths),
        "against scienceworld": compare(paths, repeats),
    }
    if soak:
        result["soak"] = soak_figures(sizes.episodes)
    return result


def gold_paths(sizes: Sizes) -> tuple[Paths, str]:
    """The commands that solve variation 0 of each task, and the version of the Java that was started."""
    env = gym.make(ENV_ID)
    paths = {}
    for task in TASKS[: sizes.tasks]:
        begin(env, task)
        paths[task] = list(text_env(env).oracle())[: sizes.commands]
    (java,) = java_machines()
    said = subprocess.run([java.exe(), "-version"], capture_output=True, text=True, check=True)
    env.close()
    shut_down()
    return paths, said.stderr.splitlines()[0]


def begin(env: gym.Env[str, str], task: str) -> None:
    env.reset(seed=0, options={"task": f"sciworld/{task}/0"})


def java_machines() -> list[psutil.Process]:
    """Those that this process started and that run."""
    return [child for child in psutil.Process().children() if "java" in child.name()]


def start_figures(count: int, tasks: list[str]) -> Samples:
    """Milliseconds (wall) of a first reset, of that of a further environment, and of the resets that follow."""
    samples: Samples = {"first reset, no machine yet": [], "first reset, machine runs": [], "reset": []}
    for _ in range(count):
        first, further = gym.make(ENV_ID), gym.make(ENV_ID)
        samples["first reset, no machine yet"].append(reset_time(first, TASKS[0]))
        for task in tasks:  # Java is slow at what it does for the first time
            begin(first, task)
        samples["first reset, machine runs"].append(reset_time(further, TASKS[0]))
        samples["reset"] += [reset_time(further, task) for task in tasks]
        first.close()
        further.close()
        shut_down()
    return samples


def reset_time(env: gym.Env[str, str], task: str) -> float:
    begun = time.perf_counter()
    begin(env, task)
    return 1e3 * (time.perf_counter() - begun)


def together_figures(paths: Paths) -> dict[str, float]:
    """MB of environments that share a machine, each at a gold path, a command of each in turn."""
    before = python_memory()
    envs = [gym.make(ENV_ID, jvms=1) for _ in range(TOGETHER)]
    for env, task in zip(envs, itertools.cycle(paths)):
        begin(env, task)
    figures = {"MB after their resets": memory_since(before)}
    for env, command in turns(envs, list(paths.values())):
        env.step(command)
    figures["MB after their episodes"] = memory_since(before)
    for env in envs:
        env.close()
    shut_down()
    return figures


def turns(envs: list[gym.Env[str, str]], paths: list[Sequence[str]]) -> Iterator[tuple[gym.Env[str, str], str]]:
    for commands in itertools.zip_longest(*(path for path, _ in zip(itertools.cycle(paths), envs))):
        yield from ((env, command) for env, command in zip(envs, commands, strict=True) if command is not None)


def python_memory() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def memory_since(before: int) -> float:
    """MB of all Java machines, and of what this process grew by."""
    return (python_memory() - before + sum(java.memory_info().rss for java in java_machines())) / 1e6


def vector_figures(sizes: Sizes, paths: Paths) -> dict[str, float]:
    """Many environments on two machines, and one alone at the same commands."""
    options: dict[str, Any] = {"backend": "thread", "jvms": 2, "autoreset_mode": "Disabled", "infos": "list"}
    tasks = list(itertools.islice(itertools.cycle(paths), sizes.runners))
    before = python_memory()
    envs = agentgym_envs.make_vec(ENV_ID, sizes.runners, **options)
    play(envs, tasks, paths, sizes.lane_steps)
    figures = {"environments": float(sizes.runners)}
    figures["steps/s"] = sizes.runners * sizes.lane_steps / play(envs, tasks, paths, sizes.lane_steps)
    figures |= {"Java machines": float(len(java_machines())), "MB": memory_since(before)}
    envs.close()
    shut_down()
    alone = agentgym_envs.make_vec(ENV_ID, 1, **options)
    seconds = [sum(play(alone, [task], paths, sizes.lane_steps) for task in paths) for _ in range(2)][-1]
    alone.close()
    shut_down()
    figures["steps/s of one alone"] = len(paths) * sizes.lane_steps / seconds
    return figures


def play(envs: TextVectorEnv, tasks: Sequence[str], paths: Paths, steps: int) -> float:
    """Seconds (wall) until each environment has taken its steps. Where a path ends, it begins again by a reset."""
    options = [{"task": f"sciworld/{task}/0"} for task in tasks]
    seeds = [0] * len(tasks)
    plans = [plan(paths[task], steps) for task in tasks]
    envs.reset(seed=seeds, options=options)
    begun = time.perf_counter()
    ready = list(range(len(tasks)))
    while ready:
        asked = {runner: next(plans[runner], None) for runner in ready}
        if over := [runner for runner, command in asked.items() if command == ""]:
            envs.async_reset(seed=seeds, options=options, env_ids=over)
        going = {runner: command for runner, command in asked.items() if command}
        envs.send(list(going.values()), env_ids=going)
        ready = [info["env_id"] for info in envs.recv(min_num=1)[-1]]
    return time.perf_counter() - begun


def plan(path: Sequence[str], steps: int) -> Iterator[str]:
    """`count` commands of a path, repeated; "" is a reset."""
    for step in range(steps):
        if step and step % len(path) == 0:
            yield ""
        yield path[step % len(path)]


class Side(NamedTuple):
    """One of the two that are compared."""

    reset: Callable[[str], Any]
    step: Callable[[str], Any]
    java: psutil.Process


def compare(paths: Paths, repeats: int) -> dict[str, Any]:
    """Ours and the other package's environment, one of each. Resets of the other are its `load` and `reset`."""
    from scienceworld import ScienceWorldEnv

    ours = gym.make(ENV_ID)
    begin(ours, TASKS[0])
    (java,) = java_machines()
    theirs = ScienceWorldEnv()
    (other,) = [process for process in java_machines() if process != java]

    def load(task: str) -> None:
        theirs.load(task, 0, "")
        theirs.reset()

    sides = {
        "ours": Side(lambda task: begin(ours, task), ours.step, java),
        "scienceworld": Side(load, theirs.step, other),
    }
    cold = one_round({"ours": sides["ours"]}, paths)["ours"]
    one_round({"scienceworld": sides["scienceworld"]}, {task: path[:WARM_UP] for task, path in paths.items()})
    rounds = [one_round(sides, paths) for _ in range(repeats)]
    memory = {name: side.java.memory_info().rss / 1e6 for name, side in sides.items()}
    ours.close()
    theirs.close()
    shut_down()
    return {
        "median": {name: median(rounds, name) for name in sides},
        "times less": times_less(rounds),
        "cold": cold,
        "MB of Java": memory,
        "rounds": rounds,
    }


def one_round(sides: Mapping[str, Side], paths: Paths) -> Round:
    """Milliseconds of a reset and of a step, by side."""
    used = {name: {"reset": Usage(0, 0, 0), "step": Usage(0, 0, 0)} for name in sides}
    for task, commands in paths.items():
        for name, side in sides.items():
            begun = usage(side.java)
            side.reset(task)
            ready = usage(side.java)
            for command in commands:
                side.step(command)
            used[name]["reset"] = used[name]["reset"].plus(begun, ready)
            used[name]["step"] = used[name]["step"].plus(ready, usage(side.java))
    counts = {"reset": len(paths), "step": sum(map(len, paths.values()))}
    return {name: per_call(spent, counts) for name, spent in used.items()}


def usage(java: psutil.Process) -> Usage:
    times = java.cpu_times()
    return Usage(time.perf_counter(), time.process_time(), times.user + times.system)


def per_call(spent: Mapping[str, Usage], counts: Mapping[str, int]) -> dict[str, float]:
    """Milliseconds of each kind of call."""
    figures: dict[str, float] = {}
    for kind, used in spent.items():
        whole = {"CPU": used.python + used.java, "wall": used.wall, "CPU in Python": used.python}
        figures |= {f"{kind}, {name}": 1e3 * seconds / counts[kind] for name, seconds in whole.items()}
    return figures


def median(rounds: list[Round], name: str) -> dict[str, float]:
    return {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]}


def times_less(rounds: list[Round]) -> dict[str, float]:
    """The median of the ratios of the rounds."""
    keys = rounds[0]["ours"]
    return {key: statistics.median(one["scienceworld"][key] / one["ours"][key] for one in rounds) for key in keys}


def soak_figures(episodes: int) -> dict[str, Any]:
    """Memory on the way through many short episodes of environments that share a machine, a command of each in turn."""
    envs = [gym.make(ENV_ID, jvms=1) for _ in range(TOGETHER)]
    rng, reasons = random.Random(0), Counter[str]()
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    (java,) = java_machines()
    curve = []
    begun = time.perf_counter()
    for wave in range(1, episodes // TOGETHER + 1):
        reasons.update(play_at_random(envs, rng))
        curve.append([TOGETHER * wave / episodes, python_memory() / 1e6, java.memory_info().rss / 1e6])
    seconds = time.perf_counter() - begun
    for env in envs:
        env.close()
    shut_down()
    return {
        "episodes": episodes,
        "seconds": seconds,
        "ends": dict(sorted(reasons.items())),
        "growth from 20-30 % to the last tenth": {"Python": growth(curve, 1), "Java": growth(curve, 2)},
        "curve: share, MB of Python, MB of Java": curve[:: max(1, len(curve) // 50)],
    }


def play_at_random(envs: list[gym.Env[str, str]], rng: random.Random) -> list[str]:
    """An episode in each environment: how they ended."""
    ends = {index: "cut off" for index in range(len(envs))}
    for env in envs:
        env.reset()
    for _ in range(COMMANDS):
        for index, env in enumerate(envs):
            if ends[index] == "cut off":
                info = env.step(text_env(env).random_command(rng))[-1]
                ends[index] = info["stop_reason"] or "cut off"
    return list(ends.values())


def growth(curve: list[list[float]], column: int) -> float:
    """From the median between 20 % and 30 % of the episodes to the median of the last tenth, as a share."""
    early = [point[column] for point in curve if 0.2 <= point[0] <= 0.3] or [curve[0][column]]
    late = [point[column] for point in curve if point[0] > 0.9]
    return statistics.median(late) / statistics.median(early) - 1


def show(result: dict[str, Any]) -> None:
    console = Console()
    console.print(table_against(result))
    for name, samples in result["start"].items():
        console.print(f"{name}: {statistics.median(samples):,.0f} ms")
    together = result["together"]["MB after their episodes"]
    console.print(f"{TOGETHER} environments in one machine: {together:,.0f} MB (target: <= {MEMORY_TARGET:.0f} MB)")
    vector = result["vector"]
    console.print(
        f"{vector['environments']:.0f} environments in {vector['Java machines']:.0f} machines: "
        f"{vector['steps/s']:,.0f} steps/s, {vector['MB']:,.0f} MB; "
        f"one alone {vector['steps/s of one alone']:,.0f} steps/s"
    )
    if soak := result.get("soak"):
        show_soak(soak, console)


def table_against(result: dict[str, Any]) -> Table:
    against, targets = result["against scienceworld"], {"step, CPU": CPU_TARGET, "step, wall": WALL_TARGET}
    table = Table(
        title=f"SciWorld, one environment, median of {result['repeats']} rounds of {result['commands']} steps"
    )
    for column in ("figure", "AgentGym Envs", "scienceworld", "times less", "target"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    ours, theirs = against["median"]["ours"], against["median"]["scienceworld"]
    for name, ratio in against["times less"].items():
        target = f">= {targets[name]:.0f}" if name in targets else ""
        table.add_row(f"{name}, ms", f"{ours[name]:,.2f}", f"{theirs[name]:,.1f}", f"{ratio:.1f}", target)
    one, other = against["MB of Java"]["ours"], against["MB of Java"]["scienceworld"]
    table.add_row("memory of Java, MB", f"{one:,.0f}", f"{other:,.0f}", f"{other / one:.1f}", "")
    table.add_row("step, CPU, cold, ms", f"{against['cold']['step, CPU']:,.2f}", "", "", "")
    return table


def show_soak(soak: dict[str, Any], console: Console) -> None:
    curve = soak["curve: share, MB of Python, MB of Java"]
    points = [min(curve, key=lambda point: abs(point[0] - share)) for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
    text = ", ".join(f"{python:.0f} + {java:.0f} MB at {100 * share:.0f} %" for share, python, java in points)
    console.print(f"{soak['episodes']:,} episodes in {soak['seconds']:,.0f} s (Python + Java): {text}")
    console.print(f"they ended: {soak['ends']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--repeats", type=int, default=5, help="how many rounds are counted (default: 5)")
    parser.add_argument("--soak", action="store_true", help="also play 2,000 short episodes")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    arguments = parser.parse_args()
    result = measure(QUICK if arguments.quick else Sizes(), 1 if arguments.quick else arguments.repeats, arguments.soak)
    show(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
