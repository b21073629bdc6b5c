"""Measure a step over HTTP, with OpenEnv's own server and client as the baseline in the same run.

    python -m benchmarks.serving [--out FILE.json] [--repeats 5]

The server is a process of its own. CPU time is that of client and server apart, the median of several repeats, in
which the two systems take turns. OpenEnv's speaks over its WebSocket, ours asks for a token. One environment is
measured twice: one that does nothing, and TextCraft (a step costs some 5 microseconds by itself), each on both sides.
`parts` says where the time of our step goes (`serving_parts.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import httpx
import psutil
from rich.console import Console
from rich.table import Table

from agentgym_envs import make_vec
from benchmarks.common import machine, run, verdict
from benchmarks.serving_envs import EMPTY_ID
from benchmarks.serving_parts import measure_parts, show_parts

ENV_ID = "AgentGym/TextCraft-v0"
COMMAND = "inventory"
BATCHES = (1, 8, 16, 64, 256)
TOKEN = "benchmark"
SESSIONS, CLIENTS, IN_FLIGHT = 512, 64, 16
OPENENV = "OpenEnv, "
AT_MOST = {"single p50 ms": 1.0, "batch 64: client + server us per env-step": 60.0}
AT_LEAST = {"single steps per server-CPU-second": 1_500.0}
Note = Callable[[str, float], None]

SERVE = """
import sys
import benchmarks.serving_envs
from agentgym_envs.http.app import create_app
from agentgym_envs.http.run import make_server
make_server(create_app([sys.argv[2]], token=(sys.argv[3:] or [None])[0]), "127.0.0.1", int(sys.argv[1])).run()
"""
SERVE_OPENENV = """
import sys, uvicorn
import gymnasium as gym, agentgym_envs
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

class Say(Action):
    message: str

class Heard(Observation):
    text: str = ""

class Echo(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    def reset(self, seed=None, episode_id=None, **others):
        return Heard(text="begun", done=False, reward=0.0)
    def step(self, action, timeout_s=None, **others):
        return Heard(text=action.message, done=False, reward=0.0)
    @property
    def state(self):
        return State(episode_id="one", step_count=0)

class TextCraft(Echo):
    def __init__(self):
        super().__init__()
        self._env = gym.make("AgentGym/TextCraft-v0")
    def reset(self, seed=None, episode_id=None, **others):
        return Heard(text=self._env.reset(seed=0)[0], done=False, reward=0.0)
    def step(self, action, timeout_s=None, **others):
        text, reward, terminated, truncated, info = self._env.step(action.message)
        return Heard(text=text, done=terminated or truncated, reward=reward)

app = create_fastapi_app({"empty": Echo, "textcraft": TextCraft}[sys.argv[2]], Say, Heard, max_concurrent_envs=64)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


def measure(repeats: int) -> dict[str, Any]:
    samples: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    importlib.import_module("openenv.core.generic_client")
    gc.collect()
    gc.freeze()  # half a million objects come with that import, and no collection should walk them in our half
    for _ in range(repeats):  # one server at a time: an idle one would still share the cores
        with serving(SERVE_OPENENV, "empty") as theirs:
            asyncio.run(measure_openenv(theirs, note))
        with serving(SERVE, EMPTY_ID, TOKEN) as ours:
            measure_single(ours, note, EMPTY_ID, "empty, ")
        with serving(SERVE_OPENENV, "textcraft") as theirs:
            asyncio.run(measure_openenv_single(theirs, note, f"{OPENENV}TextCraft, "))
        with serving(SERVE, ENV_ID, TOKEN) as ours:
            measure_single(ours, note, ENV_ID)
            for size in BATCHES:
                measure_batch(ours, size, note)
            measure_load(ours, note)
    figures = {name: statistics.median(values) for name, values in samples.items()}
    targets = {"at most": AT_MOST, "at least": AT_LEAST}
    return {
        "machine": machine(),
        "repeats": repeats,
        "median": figures,
        "targets": targets,
        "samples": samples,
        "parts": measure_parts(ENV_ID),
    }


class Served:
    """A server in a process of its own."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self.url, self._process = f"http://127.0.0.1:{port}", process

    def cpu(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system


@contextlib.contextmanager
def serving(code: str, *arguments: str) -> Iterator[Served]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", code, str(port), *arguments])
    served = Served(port, psutil.Process(process.pid))
    try:
        while not answers(served.url):
            if process.poll() is not None:
                raise RuntimeError("a server did not start")
            time.sleep(0.05)
        yield served
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    try:
        return httpx.get(url + "/health", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


class Meter:
    """Wall time and CPU time of this process and of a server, from construction on."""

    def __init__(self, server: Served) -> None:
        self._server = server
        self._begun = (time.perf_counter(), time.process_time(), server.cpu())

    def per(self, steps: int) -> tuple[float, float, float]:
        """Microseconds a step: wall, client, server."""
        now = (time.perf_counter(), time.process_time(), self._server.cpu())
        wall, client, server = (1e6 * (end - begin) / steps for begin, end in zip(self._begun, now, strict=True))
        return wall, client, server


def measure_single(server: Served, note: Note, env_id: str, name: str = "", steps: int = 3_000) -> None:
    env = gym.make(env_id, base_url=server.url, token=TOKEN)
    env.reset(seed=0)
    for _ in range(100):
        env.step(COMMAND)
    meter, latencies = Meter(server), []
    for _ in range(steps):
        begun = time.perf_counter()
        env.step(COMMAND)
        latencies.append(1e3 * (time.perf_counter() - begun))
    note_single(f"{name}single ", meter.per(steps), latencies, note)
    env.close()


def note_single(name: str, spent: tuple[float, float, float], latencies: list[float], note: Note) -> None:
    quantiles = statistics.quantiles(latencies, n=100)
    note(f"{name}p50 ms", quantiles[49])
    note(f"{name}p99 ms", quantiles[98])
    note(f"{name}steps per server-CPU-second", 1e6 / spent[2])
    note(f"{name}client us per step", spent[1])
    note(f"{name}server us per step", spent[2])


def measure_batch(server: Served, size: int, note: Note, steps: int = 12_800) -> None:
    envs = make_vec(ENV_ID, size, base_url=server.url, token=TOKEN)
    envs.reset(seed=0)
    actions, rounds = [COMMAND] * size, max(1, min(1_000, steps // size))
    for _ in range(10):
        envs.step(actions)
    meter = Meter(server)
    for _ in range(rounds):
        envs.step(actions)
    note_shared(f"batch {size}: ", meter.per(rounds * size), note)
    envs.close()


def measure_load(server: Served, note: Note, rounds: int = 10) -> None:
    """Many sessions from many clients (threads with a connection each), with bounded concurrency."""
    bound = threading.Semaphore(IN_FLIGHT)
    with ThreadPoolExecutor(CLIENTS) as threads:
        envs = list(threads.map(lambda seed: begun(server.url, seed), range(SESSIONS)))
        share = SESSIONS // CLIENTS

        def play(client: int) -> None:
            for env in envs[client * share : (client + 1) * share] * rounds:
                with bound:
                    env.step(COMMAND)

        list(threads.map(play, range(CLIENTS)))
        meter = Meter(server)
        list(threads.map(play, range(CLIENTS)))
        note_shared(f"{SESSIONS} sessions, {CLIENTS} clients: ", meter.per(rounds * SESSIONS), note)
        list(threads.map(lambda env: env.close(), envs))


def begun(url: str, seed: int) -> gym.Env[str, str]:
    env = gym.make(ENV_ID, base_url=url, token=TOKEN)
    env.reset(seed=seed)
    return env


def note_shared(name: str, spent: tuple[float, float, float], note: Note) -> None:
    note(f"{name}env-steps/s", 1e6 / spent[0])
    note(f"{name}client us per env-step", spent[1])
    note(f"{name}server us per env-step", spent[2])
    note(f"{name}client + server us per env-step", spent[1] + spent[2])


async def measure_openenv_single(server: Served, note: Note, name: str, steps: int = 2_000) -> None:
    action = {"message": COMMAND}
    async with openenv_client(server) as env:
        await env.reset()
        for _ in range(100):
            await env.step(action)
        meter, latencies = Meter(server), []
        for _ in range(steps):
            begin = time.perf_counter()
            await env.step(action)
            latencies.append(1e3 * (time.perf_counter() - begin))
        note_single(f"{name}single ", meter.per(steps), latencies, note)


async def measure_openenv(server: Served, note: Note, steps: int = 2_000, sessions: int = 16) -> None:
    await measure_openenv_single(server, note, OPENENV)
    action = {"message": COMMAND}
    envs = [openenv_client(server) for _ in range(sessions)]
    await asyncio.gather(*(env.connect() for env in envs))
    await asyncio.gather(*(env.reset() for env in envs))
    meter = Meter(server)
    for _ in range(steps // sessions):
        await asyncio.gather(*(env.step(action) for env in envs))
    note_shared(f"{OPENENV}{sessions} sessions: ", meter.per(steps // sessions * sessions), note)
    await asyncio.gather(*(env.close() for env in envs))


def openenv_client(server: Served) -> Any:
    make_client = importlib.import_module("openenv.core.generic_client").GenericEnvClient
    return make_client(base_url=server.url.replace("http", "ws", 1))


def show(result: dict[str, Any]) -> None:
    table = Table(title=f"A step over HTTP, median of {result['repeats']} repeats (us: CPU time)")
    for column in ("figure", "AgentGym Envs", "OpenEnv 0.10.0", "ratio", "target", "met"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    figures, samples = result["median"], result["samples"]
    for name, value in figures.items():
        if not name.startswith(OPENENV):
            other = figures.get(peer_of(name))
            ratio = f"{value / other:.2f}" if other else ""
            table.add_row(name, show_number(value), show_number(other), ratio, *verdict(name, value, AT_LEAST, AT_MOST))
    Console().print(table)
    for side in ("empty, ", ""):
        name = f"{side}single p50 ms"
        ratios = [theirs / own for own, theirs in zip(samples[name], samples[peer_of(name)], strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})"
        Console().print(f"{side or 'TextCraft, '}one environment: {spread} times as fast as OpenEnv, paired by repeat")
    show_parts(result["parts"])


def peer_of(name: str) -> str:
    """OpenEnv's figure that corresponds to one of ours: it has no batches, only concurrent sessions."""
    if name.startswith("empty, "):
        return OPENENV + name.removeprefix("empty, ")
    return (
        f"{OPENENV}TextCraft, {name}"
        if name.startswith("single")
        else OPENENV + name.replace("batch 16:", "16 sessions:")
    )


def show_number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=5)
