"""Measure BabyAI in words on one core, with minigrid alone and AgentGym's wrapper as baselines in the same run.

    python -m benchmarks.babyai [--agentgym FOLDER --agentgym-python PYTHON] [--out FILE.json] [--repeats 5]

CPU time over AgentGym's forty levels, three seeds each, two kinds of play. Half of the first one's commands are the
oracle's, half are drawn from those that are possible; minigrid takes the same primitive actions in the same worlds,
with its own `step` and `gen_obs` and no text. The second kind draws from the commands that the observation offers, as
`babyai_agentgym.py` does with AgentGym's wrapper, if FOLDER is its `agentenv-babyai` and PYTHON has its packages
(minigrid 2.3.1, gymnasium 0.29.1, gym 0.26.2, matplotlib). Every repeat measures all sides, and resets to worlds that
were not made before. Views are compared with minigrid's in as many random steps as `VIEWS` says, over all levels.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import io
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import psutil
from rich.console import Console
from rich.table import Table

import agentgym_envs
from agentgym_envs.babyai.commands import parse
from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import AGENTGYM_LEVELS, LEVELS, blank_level
from agentgym_envs.babyai.view import SIZE, look
from agentgym_envs.babyai.world import GridWorld, make_world
from agentgym_envs.core import Snapshot
from agentgym_envs.errors import NoOracle
from benchmarks.common import machine

ENV_ID = "AgentGym/BabyAI-v0"
SEEDS = 3
MOST_COMMANDS = 40
VIEWS = 100_000
VECTOR = 32
STEP_TARGET, RESET_TARGET = 240.0, 1.3
"""Microseconds of CPU; times minigrid's own."""


class Episode(NamedTuple):
    """A task, the commands played there, and the primitive actions they came to."""

    level: str
    seed: int
    commands: list[str]
    primitives: list[int]


def measure(repeats: int, peer: Callable[[], dict[str, float]] | None = None) -> dict[str, Any]:
    """Every figure; the sides take turns, so that a busy machine is as unfair to one as the other.

    `peer` measures AgentGym's wrapper once, if it is there.
    """
    env = make_env()
    worlds = [(level, seed) for level in AGENTGYM_LEVELS for seed in range(SEEDS)]
    episodes = [record(env, *world, mixed_command) for world in worlds]
    offered = [record(env, *world, offered_command) for world in worlds]
    samples: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    for repeat in range(repeats):
        for name, value in peer().items() if peer else ():
            theirs.setdefault(name, []).append(value)
        for name, value in {
            "text step": step_cost(env, episodes),
            "step of an offered command": step_cost(env, offered),
            "minigrid step + gen_obs": minigrid_step_cost(episodes),
            **reset_costs(env, 10 + repeat),
            "snapshot and restore": snapshot_cost(env, episodes, by_copy=True),
            "restore by playing again": snapshot_cost(env, episodes, by_copy=False),
        }.items():
            samples.setdefault(name, []).append(value)
    turns = sum(len(episode.commands) for episode in episodes)
    return {
        "machine": machine(),
        "repeats": repeats,
        "turns": turns,
        "primitive actions per turn": sum(len(episode.primitives) for episode in episodes) / turns,
        **with_medians(samples),
        **({"agentgym": with_medians(theirs)} if theirs else {}),
    }


def with_medians(samples: dict[str, list[float]]) -> dict[str, Any]:
    return {"median": {name: statistics.median(values) for name, values in samples.items()}, "samples": samples}


def make_env() -> BabyAIEnv:
    env = gym.make(ENV_ID).unwrapped
    assert isinstance(env, BabyAIEnv)
    return env


def mixed_command(env: BabyAIEnv, rng: random.Random) -> str:
    """The oracle's command or a random one, by halves."""
    return (next(solution(env), None) if rng.random() < 0.5 else None) or env.random_command(rng)


def offered_command(env: BabyAIEnv, rng: random.Random) -> str:
    """A command that the observation offers, as `babyai_agentgym.py` draws them; the last one is no move."""
    return rng.choice(list(env.text_view.available)[:-1] or ["turn left"])


def record(env: BabyAIEnv, level: str, seed: int, choose: Callable[[BabyAIEnv, random.Random], str]) -> Episode:
    """Play an episode, and write down what was done."""
    rng, commands, primitives = random.Random(f"{level} {seed}"), list[str](), list[int]()
    begin(env, level, seed)
    over = False
    while not over and len(commands) < MOST_COMMANDS:
        commands.append(choose(env, rng))
        order, steps = parse(commands[-1]), env.world.steps
        plan = env.text_view.plan(order) if order else None
        _, _, terminated, truncated, _ = env.step(commands[-1])
        if isinstance(plan, list):  # it stops where the episode ends
            primitives += plan[: env.world.steps - steps]
        over = terminated or truncated
    return Episode(level, seed, commands, primitives)


def solution(env: BabyAIEnv) -> Iterator[str]:
    with contextlib.suppress(NoOracle):
        return env.oracle()
    return iter(())


def begin(env: BabyAIEnv, level: str, seed: int) -> None:
    env.reset(seed=0, options={"task": f"babyai/{level}/{seed}"})


def step_cost(env: BabyAIEnv, episodes: list[Episode]) -> float:
    """Microseconds of CPU a turn, without the resets."""
    spent, step = 0.0, env.step
    for episode in episodes:
        begin(env, episode.level, episode.seed)
        begun = time.process_time()
        for command in episode.commands:
            step(command)
        spent += time.process_time() - begun
    return 1e6 * spent / sum(len(episode.commands) for episode in episodes)


def minigrid_step_cost(episodes: list[Episode]) -> float:
    """The same of minigrid alone: its steps and observations for the primitive actions of a turn."""
    spent = 0.0
    for episode in episodes:
        level = copy.copy(blank_level(episode.level))
        with quiet():
            level.reset(seed=episode.seed)
        begun = time.process_time()
        for action in episode.primitives:
            level.step(action)
        spent += time.process_time() - begun
    return 1e6 * spent / sum(len(episode.commands) for episode in episodes)


def reset_costs(env: BabyAIEnv, seed: int) -> dict[str, float]:
    """CPU microseconds per reset to new worlds, mean over the levels; the two sides alternate."""
    spent = {"reset": 0.0, "minigrid reset": 0.0}
    levels = {name: copy.copy(blank_level(name)) for name in AGENTGYM_LEVELS}
    gc.collect()
    for name, level in levels.items():
        begun = time.process_time()
        begin(env, name, seed)
        spent["reset"] += time.process_time() - begun
        with quiet():
            begun = time.process_time()
            level.reset(seed=seed)
            spent["minigrid reset"] += time.process_time() - begun
    costs = {name: 1e6 * seconds / len(levels) for name, seconds in spent.items()}
    return {**costs, "reset / minigrid's reset": costs["reset"] / costs["minigrid reset"]}


def snapshot_cost(env: BabyAIEnv, episodes: list[Episode], *, by_copy: bool) -> float:
    """Microseconds to save a state in the middle of an episode and to go back to it."""
    spent, chosen = 0.0, episodes[::SEEDS]
    for episode in chosen:
        begin(env, episode.level, episode.seed)
        for command in episode.commands[: len(episode.commands) // 2]:
            env.step(command)
        begun = time.process_time()
        snapshot = env.snapshot()
        if not by_copy:
            snapshot = Snapshot(snapshot.task_id, snapshot.seed, snapshot.actions)
        env.restore(snapshot)
        spent += time.process_time() - begun
    return 1e6 * spent / len(chosen)


def vector_figures() -> dict[str, float]:
    """Turns a second (wall) and memory of 32 environments in one process, each playing possible actions at random."""
    make_env().reset(seed=0)  # so that what is loaded once does not count
    process, rng = psutil.Process(), random.Random(0)
    before = process.memory_info().rss
    envs = agentgym_envs.make_vec(ENV_ID, VECTOR, levels="agentgym", backend="inline")
    _, infos = envs.reset(seed=0)
    turns, begun = 200, time.perf_counter()
    for _ in range(turns):
        offered = infos["available_actions"]
        *_, infos = envs.step([rng.choice(list(actions)[:-1] or ["turn left"]) for actions in offered])
    wall = time.perf_counter() - begun
    memory = process.memory_info().rss - before
    envs.close()
    return {"turns per second": VECTOR * turns / wall, "MB per environment": memory / VECTOR / 1e6}


def compare_views(count: int) -> dict[str, int]:
    """The number of views in random play that differ from minigrid's in visible cells or their contents."""
    rng, compared, different = random.Random(0), 0, 0
    seed = 0
    while compared < count:
        for level in LEVELS:
            world = make_world(level, seed)
            for _ in range(min(100, world.max_steps - 1)):
                if world.step(rng.choice((0, 1, 2, 2, 2, 3, 4, 5))).terminated:
                    break
                different += not same_view(world)
                compared += 1
        seed += 1
    return {"compared": compared, "different": different}


def same_view(world: GridWorld) -> bool:
    view, level = look(world), world.level
    grid, mask = type(level).gen_obs_grid(level)
    spots = [(column, SIZE - 1 - ahead) for ahead in range(SIZE) for column in range(SIZE)]
    lit = sum(1 << cell for cell, spot in enumerate(spots) if mask[spot])
    things = {cell: grid.get(*spot) for cell, spot in enumerate(spots) if lit >> cell & 1 and cell != SIZE // 2}
    theirs = {cell: id(thing) for cell, thing in things.items() if thing is not None and thing.type != "wall"}
    return lit == view.lit and theirs == {seen.cell: id(seen.thing) for seen in view.seen}


def agentgym_figures(folder: Path, python: str) -> dict[str, float]:
    """AgentGym's wrapper, in the process of another Python."""
    script = Path(__file__).with_name("babyai_agentgym.py")
    done = subprocess.run([python, str(script), str(folder)], capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Minigrid prints each mission that it rejects."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def show(result: dict[str, Any]) -> None:
    figures, theirs = result["median"], result.get("agentgym", {}).get("median", {})
    table = Table(title=f"BabyAI, us of CPU, median of {result['repeats']} repeats")
    for column in ("figure", "AgentGym Envs", "minigrid, no text", "AgentGym", "times faster than AgentGym", "target"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for name, other, key, target in (
        ("text step", "minigrid step + gen_obs", "", f"<= {STEP_TARGET:.0f}"),
        ("step of an offered command", "", "step", f"<= {STEP_TARGET:.0f}"),
        ("reset", "minigrid reset", "reset", f"<= {RESET_TARGET} x minigrid"),
    ):
        ours, alone, peer = figures[name], figures.get(other), theirs.get(key)
        cells = (f"{value:,.0f}" if value else "" for value in (ours, alone, peer))
        table.add_row(name, *cells, f"{peer / ours:.1f}" if peer else "", target)
    console = Console()
    console.print(table)
    name = "reset / minigrid's reset"
    console.print(f"{name}: {figures[name]:.2f}")
    console.print(f"primitive actions per turn: {result['primitive actions per turn']:.2f}")
    copied, played = figures["snapshot and restore"], figures["restore by playing again"]
    console.print(f"snapshot and restore: {copied:.0f} us by copy, {played:.0f} us by playing again")
    for name, value in result["vector"].items():
        console.print(f"{VECTOR} environments in one process: {value:,.2f} {name}")
    console.print(
        f"views: {result['views']['compared']:,} compared with minigrid's, {result['views']['different']} differ"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--repeats", type=int, default=5, help="how often everything is measured (default: 5)")
    parser.add_argument("--views", type=int, default=VIEWS, help=f"how many views are compared (default: {VIEWS})")
    parser.add_argument("--agentgym", type=Path, help="AgentGym's folder agentenv-babyai")
    parser.add_argument("--agentgym-python", default=sys.executable, help="a Python with AgentGym's packages")
    arguments = parser.parse_args()
    vector = vector_figures()
    peer = partial(agentgym_figures, arguments.agentgym, arguments.agentgym_python) if arguments.agentgym else None
    result = measure(arguments.repeats, peer) | {"vector": vector, "views": compare_views(arguments.views)}
    show(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
