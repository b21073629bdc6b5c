"""What does a step on a Ray host cost, next to a local worker process and to HTTP in the same run?

    python -m benchmarks.ray_hosts [--out FILE.json] [--repeats 7]

TextCraft, whose own step costs some 5 microseconds, so that what is measured is the way there and back. The places take
turns in each repeat; a ratio is the median of the ratios of the repeats. All of them are on this machine: between two,
a network comes on top of HTTP and of Ray alike.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import ray
from rich.console import Console
from rich.table import Table

from agentgym_envs import make_vec
from agentgym_envs.hosting import TwinEnv, WorkerPool
from agentgym_envs.vector import TextVectorEnv
from agentgym_verl.ray_hosts import RayPool
from benchmarks.common import machine, run
from benchmarks.serving import COMMAND, ENV_ID, SERVE, serving

LOCAL, HTTP, RAY = "worker process", "HTTP", "Ray host"
SIZES = (1, 16, 256)
SECONDS = 0.5
"""How long one sample is taken."""
Samples = dict[str, dict[str, list[float]]]


def measure(repeats: int) -> dict[str, Any]:
    """Microseconds a step of each place, by how many episodes step together; and the seconds to start."""
    with cluster(), serving(SERVE) as server:
        starts = [start_of_host() for _ in range(repeats)]
        with closing(WorkerPool(1)) as local, closing(RayPool(1, 1, "near", cpus=0)) as there:
            makers: dict[str, Callable[[int], TextVectorEnv]] = {
                LOCAL: lambda size: make_vec(ENV_ID, size, opener=local),
                HTTP: lambda size: make_vec(ENV_ID, size, base_url=server.url),
                RAY: lambda size: make_vec(ENV_ID, size, opener=there),
            }
            rows = {str(size): row(makers, size, repeats) for size in SIZES}
    names = ("a host and its first session, s", "the next session, s")
    medians = {name: statistics.median(start[number] for start in starts) for number, name in enumerate(names)}
    return {"machine": machine(), "repeats": repeats, "start": medians, "steps": rows}


@contextlib.contextmanager
def cluster() -> Iterator[None]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


def start_of_host() -> tuple[float, float]:
    with closing(RayPool(1, 1, "near", cpus=0)) as pool:
        return opening(pool), opening(pool)


def opening(pool: RayPool) -> float:
    began = time.perf_counter()
    TwinEnv(ENV_ID, pool, {})
    return time.perf_counter() - began


def row(makers: dict[str, Callable[[int], TextVectorEnv]], size: int, repeats: int) -> dict[str, float]:
    samples: Samples = {kind: {name: [] for name in makers} for kind in ("wall", "CPU here")}
    fleet = {name: make(size) for name, make in makers.items()}
    for envs in fleet.values():
        envs.reset(seed=0)
        sample(envs)
    for _ in range(repeats):
        for name, envs in fleet.items():
            for kind, value in sample(envs).items():
                samples[kind][name].append(value)
    for envs in fleet.values():
        envs.close()
    figures = dict[str, float]()
    for kind, by_place in samples.items():
        figures |= {f"{name}, {kind} us": statistics.median(values) for name, values in by_place.items()}
        for other in (LOCAL, HTTP):
            pairs = zip(by_place[RAY], by_place[other], strict=True)
            figures[f"{RAY} / {other}, {kind}"] = statistics.median(ours / theirs for ours, theirs in pairs)
    return figures


def sample(envs: TextVectorEnv) -> dict[str, float]:
    """Microseconds an env-step."""
    actions, count = (COMMAND,) * envs.num_envs, 0
    began, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < SECONDS:
        envs.step(actions)
        count += envs.num_envs
    seconds = {"wall": time.perf_counter() - began, "CPU here": time.process_time() - cpu}
    return {kind: value / count * 1e6 for kind, value in seconds.items()}


def show(result: dict[str, Any]) -> None:
    rows = result["steps"]
    table = Table(title=f"A step of TextCraft, by episodes that step together: median of {result['repeats']} repeats")
    table.add_column("figure")
    for size in rows:
        table.add_column(size, justify="right")
    for figure in next(iter(rows.values())):
        table.add_row(figure, *(f"{figures[figure]:,.1f}" for figures in rows.values()))
    console = Console(width=100)
    console.print(table)
    for name, seconds in result["start"].items():
        console.print(f"{name}: {seconds:.2f}")


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=7)
