"""Measure a step on a Ray host, with a local worker process and HTTP in the same run.

    python -m benchmarks.ray_hosts [--out FILE.json] [--repeats 7]

TextCraft, whose own step costs some 5 microseconds, so that the way there and back is measured. The backends take
turns in each repeat; a ratio is the median of the ratios of the repeats. All of them are on this machine: between two,
a network comes on top of HTTP and of Ray alike.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import ray
from rich.console import Console
from rich.table import Table

from agentgym_envs import make_vec
from agentgym_envs.hosting import RemoteEnv, WorkerPool
from agentgym_envs.vector import TextVectorEnv
from agentgym_verl.ray_hosts import RayPool
from benchmarks.common import machine, run
from benchmarks.serving import COMMAND, ENV_ID, SERVE, serving

LOCAL, HTTP, RAY = "worker process", "HTTP", "Ray host"
SIZES = (1, 16, 256)
SECONDS = 0.5
"""Seconds per sample."""


def measure(repeats: int) -> dict[str, Any]:
    """Microseconds a step of each place, by how many episodes step together; and the seconds to start."""
    with cluster(), serving(SERVE, ENV_ID) as server:
        starts = [start_of_host() for _ in range(repeats)]
        with closing(WorkerPool(1)) as local, closing(RayPool(1, 1, "near", cpus=0)) as there:
            makers: dict[str, Callable[[int], TextVectorEnv]] = {
                LOCAL: lambda size: make_vec(ENV_ID, size, provider=local),
                HTTP: lambda size: make_vec(ENV_ID, size, base_url=server.url),
                RAY: lambda size: make_vec(ENV_ID, size, provider=there),
            }
            rows = {str(size): row(makers, size, repeats) for size in SIZES}
    return {"machine": machine(), "repeats": repeats, "start": summary(starts), "steps": rows}


@contextlib.contextmanager
def cluster() -> Iterator[None]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


def start_of_host() -> dict[str, float]:
    with closing(RayPool(1, 1, "near", cpus=0)) as pool:
        return {"a host and its first session, s": opening(pool), "the next session, s": opening(pool)}


def opening(pool: RayPool) -> float:
    began = time.perf_counter()
    RemoteEnv(ENV_ID, pool, {})
    return time.perf_counter() - began


def row(makers: Mapping[str, Callable[[int], TextVectorEnv]], size: int, repeats: int) -> dict[str, Any]:
    fleet = {name: make(size) for name, make in makers.items()}
    for envs in fleet.values():
        envs.reset(seed=0)
        sample(envs)
    rounds = [figures({name: sample(envs) for name, envs in fleet.items()}) for _ in range(repeats)]
    for envs in fleet.values():
        envs.close()
    return summary(rounds)


def figures(backends: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Of one repeat, with its ratios."""
    found = dict[str, float]()
    for kind in backends[RAY]:
        found |= {f"{name}, {kind} us": figures[kind] for name, figures in backends.items()}
        found |= {f"{RAY} / {other}, {kind}": backends[RAY][kind] / backends[other][kind] for other in (LOCAL, HTTP)}
    return found


def summary(rounds: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Every figure's median over the repeats, and the repeats."""
    samples = {name: [one[name] for one in rounds] for name in rounds[0]}
    return {"median": {name: statistics.median(values) for name, values in samples.items()}, "samples": samples}


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
    rows = {size: row["median"] for size, row in result["steps"].items()}
    table = Table(title=f"A step of TextCraft, by episodes that step together: median of {result['repeats']} repeats")
    table.add_column("figure")
    for size in rows:
        table.add_column(size, justify="right")
    for figure in next(iter(rows.values())):
        table.add_row(figure, *(f"{row[figure]:,.2f}" for row in rows.values()))
    console = Console(width=100)
    console.print(table)
    for name, seconds in result["start"]["median"].items():
        console.print(f"{name}: {seconds:.2f}")


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=7)
