"""One measurement of `benchmarks.scale`, in a process of its own: `python -m benchmarks.scale_load ORDER.json`.

The order describes the measurement, and its path `out` receives the figures; both are JSON. CPU time and memory (PSS)
are reported by side ("here" or "server") and by kind of process: the program itself, worker processes, Java, the
browser's driver, and the browser. The CPU time of a process that has ended counts for the parent that waited for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import psutil

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import NoOracle
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.worker import WorkerPool
from agentgym_envs.rollout.play import EpisodeSpec, Limits, play_many_text
from agentgym_envs.trajectory import Message, Trajectory
from agentgym_envs.vector import EnvRunner, TextVectorEnv
from benchmarks.soak import serving

Order = dict[str, Any]
Script = dict[str, Any]
"""An episode: `task`, `seed`, `actions`, `turns` before its truncation, and `solves`, true if it succeeds."""
Parts = dict[str, float]
"""Seconds or MiB, by side and kind: "here program", "server worker"."""
MakeEnv = Callable[[], gym.Env[str, str]]
BATCH = 64
"""The maximum number of environments that one call steps, over HTTP one request."""
_KINDS = {"python": "worker", "java": "java", "node": "driver"}


class Meter:
    """CPU time and memory of this process, of its helpers, and of a server's processes."""

    def __init__(self, server: psutil.Process | None = None) -> None:
        self._own, self._server = psutil.Process(), server
        self._kinds: dict[int, str] = {}

    def cpu(self) -> Parts:
        """Seconds, each process with its children that have ended."""
        parts = {"here program": time.process_time()}
        own = self._own.cpu_times()
        parts["here ended"] = own.children_user + own.children_system
        for part, process in self._others():
            with contextlib.suppress(psutil.Error):
                parts[part] = parts.get(part, 0.0) + sum(process.cpu_times()[:4])
        return parts

    def memory(self) -> Parts:
        """MiB."""
        gc.collect()
        parts = {"here program": self._own.memory_full_info().pss / 2**20}
        for part, process in self._others():
            with contextlib.suppress(psutil.Error):
                parts[part] = parts.get(part, 0.0) + process.memory_full_info().pss / 2**20
        return parts

    def _others(self) -> Iterator[tuple[str, psutil.Process]]:
        served = [] if self._server is None else [self._server, *self._server.children(recursive=True)]
        for process in self._own.children(recursive=True):
            if process not in served:
                yield f"here {self._kind(process)}", process
        for process in served:
            yield f"server {'program' if process == self._server else self._kind(process)}", process

    def _kind(self, process: psutil.Process) -> str:
        if process.pid not in self._kinds:
            name = ""
            with contextlib.suppress(psutil.Error):
                name = process.name()
            self._kinds[process.pid] = next((kind for word, kind in _KINDS.items() if word in name), "browser")
        return self._kinds[process.pid]


class Spent:
    """Resources used since construction."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._cpu = meter, meter.cpu()
        self._cpu["here program"] = time.process_time()  # looking at the others took some, which is not to count
        self._began = time.perf_counter()

    def parts(self) -> Parts:
        """Seconds of CPU by part, and of the clock ("wall")."""
        wall, now = time.perf_counter() - self._began, self._meter.cpu()
        return {"wall": wall, **{part: max(0.0, spent - self._cpu.get(part, 0.0)) for part, spent in now.items()}}


def add(sums: Parts, more: Parts) -> None:
    for part, value in more.items():
        sums[part] = sums.get(part, 0.0) + value


@contextlib.contextmanager
def opened(order: Order) -> Iterator[tuple[MakeEnv, psutil.Process | None]]:
    """Yield a function that makes the order's environment, and the server if there is one."""
    env_id, options = order["env"], order.get("options", {})
    if order["place"] == "served":
        with serving([env_id], tuple(order["flags"])) as (server, url):
            yield partial(gym.make, env_id, base_url=url, connect_timeout=60), server
            server.terminate()
            server.wait(60)
    elif order["place"] == "workers":
        pool = WorkerPool(order["workers"])
        yield lambda: RemoteEnv(env_id, pool, options), None
        pool.close()
    else:
        yield partial(gym.make, env_id, **options), None


class Crowd:
    """Episodes that are open at the same time. Each group of runners is called together."""

    def __init__(self, make: MakeEnv, scripts: Sequence[Script]) -> None:
        self._make, self._deal = make, itertools.cycle(scripts)
        self._groups: list[tuple[TextVectorEnv, list[Script]]] = []
        self.size = self.unsolved = 0

    def grow(self, size: int) -> list[tuple[TextVectorEnv, list[Script]]]:
        """Open more environments, until there are `size`; returns the new ones."""
        added = []
        while self.size < size:
            count = min(BATCH, size - self.size)
            envs = TextVectorEnv(
                [EnvRunner(self._make) for _ in range(count)], autoreset_mode="Disabled", infos="list", step_seconds=240
            )
            added.append((envs, list(itertools.islice(self._deal, count))))
            self.size += count
        self._groups += added
        return added

    def move_on(self) -> Sequence[tuple[TextVectorEnv, list[Script]]]:
        """All groups, each with the scripts that come next."""
        self._groups = [(envs, list(itertools.islice(self._deal, len(scripts)))) for envs, scripts in self._groups]
        return self._groups

    def finish(self) -> int:
        """Take every last step; how many there were."""
        for envs, scripts in self._groups:
            envs.send([script["actions"][-1] for script in scripts])
            infos = check(envs.recv()[-1])
            ends = zip(infos, scripts, strict=True)
            self.unsolved += sum(script["solves"] and not info["success"] for info, script in ends)
        return self.size

    def reset(self, envs: TextVectorEnv, scripts: Sequence[Script]) -> int:
        """Begin the episodes of a group; how many there are."""
        options = [{"task": script["task"]} for script in scripts]
        check(envs.reset(seed=[script["seed"] for script in scripts], options=options)[1])
        return len(scripts)

    def play(self, envs: TextVectorEnv, scripts: Sequence[Script]) -> int:
        """Take every step of a group but the last; how many there were."""
        actions = [script["actions"][:-1] for script in scripts]
        for turn in range(max(map(len, actions))):
            running = [index for index, some in enumerate(actions) if turn < len(some)]
            envs.send([actions[index][turn] for index in running], env_ids=running)
            check(envs.recv()[-1])
        return sum(map(len, actions))

    def close(self) -> None:
        for envs, _ in self._groups:
            envs.close()


def check(infos: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """An episode that failed says nothing of what episodes cost."""
    if errors := [info["error"] for info in infos if info["stop_reason"] == "env_error"]:
        raise SystemExit(f"{len(errors)} episodes ended as env_error, the first: {errors[0]}")
    return infos


def measure(order: Order) -> dict[str, Any]:
    """Start-up, CPU of resets and steps, and memory, with more and more episodes open."""
    with opened(order) as (make, server):
        meter = Meter(server)
        figures: dict[str, Any] = {"idle": meter.memory(), "memory": {}}
        crowd = Crowd(make, order["scripts"])
        spent = Spent(meter)
        [(first, scripts)] = crowd.grow(1)
        crowd.reset(first, scripts)
        figures["first start"] = spent.parts()
        warm_up(crowd, first, order)
        crowd.play(first, scripts)
        figures["memory"][1] = meter.memory()
        resets, steps, counts = Parts(), Parts(), {"resets": 0, "steps": 0}
        for level in order["levels"][1:]:
            for envs, scripts in crowd.grow(level):
                spend(meter, resets, counts, "resets", partial(crowd.reset, envs, scripts))
                spend(meter, steps, counts, "steps", partial(crowd.play, envs, scripts))
            figures["memory"][level] = meter.memory()
        figures["one more"] = one_more(crowd, meter)
        spend(meter, steps, counts, "steps", crowd.finish)
        figures |= {"reset": per(resets, counts["resets"]), "step": per(steps, counts["steps"]), "counts": counts}
        figures["unsolved"] = crowd.unsolved
        crowd.close()
    return figures


def warm_up(crowd: Crowd, envs: TextVectorEnv, order: Order) -> None:
    """Play episodes that are not counted: Java and JavaScript are slow at what they do for the first time."""
    for script in order["scripts"][: order["warm"]]:
        crowd.reset(envs, [script])
        crowd.play(envs, [script])
    crowd.reset(envs, order["scripts"][:1])


def spend(meter: Meter, sums: Parts, counts: dict[str, int], name: str, act: Callable[[], int]) -> None:
    """Have something done, and note what it took and how much of it there was."""
    spent = Spent(meter)
    counts[name] += act()
    add(sums, spent.parts())


def per(sums: Parts, count: int) -> Parts:
    return {part: value / count for part, value in sums.items()}


def one_more(crowd: Crowd, meter: Meter) -> Parts:
    """The cost of creating and resetting one more environment."""
    spent = Spent(meter)
    [(envs, scripts)] = crowd.grow(crowd.size + 1)
    crowd.reset(envs, scripts)
    cpu = spent.parts()
    crowd.play(envs, scripts)
    return cpu


def record(order: Order) -> list[Script]:
    """Episodes to be played: the oracle's, or random commands where a plan takes too long to make."""
    made = gym.make(order["env"], **order.get("options", {}))
    env, scripts = text_env(made), list[Script]()
    for seed, task in enumerate(env.tasks.sample(order["tasks"], seed=0, split="train")):
        made.reset(seed=seed, options={"task": task.id})
        actions = random_actions(made, seed, order["limit"]) if order["random"] else oracle_actions(env)
        if actions:
            solves = not order["random"] and len(actions) <= order["limit"]
            shortened = actions[: order["limit"]]
            scripts.append(
                {"task": task.id, "seed": seed, "actions": shortened, "turns": len(actions), "solves": solves}
            )
    if not order["random"]:  # what is read from disk or made at the first use is there afterwards
        made.reset(seed=0, options={"task": scripts[0]["task"]})
        made.step(scripts[0]["actions"][0])
    made.close()
    return scripts


def oracle_actions(env: TextEnv) -> list[str]:
    try:
        return [env.grammar.format(command) for command in env.oracle()]
    except NoOracle:
        return []


def random_actions(made: gym.Env[str, str], seed: int, limit: int) -> list[str]:
    env, rng, actions = text_env(made), random.Random(seed), list[str]()
    over = False
    while not over and len(actions) < limit:
        actions.append(env.grammar.format(env.random_command(rng)))
        _, _, terminated, truncated, _ = made.step(actions[-1])
        over = terminated or truncated
    return actions


class Slow:
    """A policy that says what a script says, as late as a model would: between half and one and a half of `seconds`."""

    def __init__(self, scripts: dict[str, Script], seconds: float, rng: random.Random) -> None:
        self._scripts, self._seconds, self._rng = scripts, seconds, rng
        self._actions: Iterator[str] | None = None

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """The next action."""
        if self._seconds:
            await asyncio.sleep(self._seconds * (0.5 + self._rng.random()))
        if self._actions is None:
            assert env.task is not None
            self._actions = iter(self._scripts[env.task.id]["actions"])
        return next(self._actions)


def play(order: Order) -> dict[str, Any]:
    """Run whole episodes by `play_many_text` with a bounded concurrency and a model with latency."""
    scripts, rng = {script["task"]: script for script in order["scripts"]}, random.Random(0)
    chosen = [order["scripts"][number % len(order["scripts"])] for number in range(order["episodes"])]
    specs = [EpisodeSpec(task=script["task"], seed=script["seed"]) for script in chosen]
    with opened(order) as (make, server):
        meter = Meter(server)
        idle, middle, done = meter.memory(), Parts(), list[Trajectory]()

        def note(trajectory: Trajectory) -> None:
            done.append(trajectory)
            if len(done) == len(specs) // 2:
                middle.update(meter.memory())

        make().close()  # tables are loaded once
        spent = Spent(meter)
        for _ in range(order["parallel"]):
            make().close()
        made = spent.parts()
        spent = Spent(meter)
        policy = partial(Slow, scripts, order["seconds"], rng)
        limits = Limits(max_turns=order["limit"])
        asyncio.run(play_many_text(specs, make, policy, limits=limits, concurrency=order["parallel"], on_done=note))
        cpu = spent.parts()
    turns = sum(len(trajectory.turns) for trajectory in done)
    figures = {"make": per(made, order["parallel"]), "cpu": cpu, "idle": idle, "memory": middle}
    return {**figures, "episodes": len(done), "turns": turns}


DEEDS: dict[str, Callable[[Order], Any]] = {"record": record, "measure": measure, "play": play}


def main() -> None:
    """Carry out the order."""
    order = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(order["out"]).write_text(json.dumps(DEEDS[order["deed"]](order)), encoding="utf-8")


if __name__ == "__main__":
    main()
