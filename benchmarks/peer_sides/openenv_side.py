"""OpenEnv's server and client: `python -m benchmarks.peer_sides.openenv_side SECONDS`."""

from __future__ import annotations

import asyncio
import importlib
import socket
import subprocess
import sys
import time
from typing import Any

from benchmarks.peer_sides.task import EPISODE, TOGETHER, Task, cpu, print_figures, seconds


def serve(port: int) -> None:
    import uvicorn

    types: Any = importlib.import_module("openenv.core.env_server.types")
    interfaces: Any = importlib.import_module("openenv.core.env_server.interfaces")
    http_server: Any = importlib.import_module("openenv.core.env_server.http_server")

    class Say(types.Action):  # type: ignore[misc]
        message: str

    class Heard(types.Observation):  # type: ignore[misc]
        text: str = ""

    class TaskEnv(interfaces.Environment):  # type: ignore[misc]
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self.task = Task()

        def reset(self, seed: Any = None, episode_id: Any = None, **others: Any) -> Heard:
            return Heard(text=self.task.begin(), done=False, reward=0.0)

        def step(self, action: Say, timeout_s: Any = None, **others: Any) -> Heard:
            text, over = self.task.act(action.message)
            return Heard(text=text, done=over, reward=0.0)

        @property
        def state(self) -> Any:
            return types.State(episode_id="one", step_count=self.task.turn)

    app = http_server.create_fastapi_app(TaskEnv, Say, Heard, max_concurrent_envs=2 * TOGETHER)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


async def episode(env: Any) -> int:
    await env.reset()
    for _ in range(EPISODE):
        await env.step({"message": "on"})
    return EPISODE


async def measure(url: str, count: int) -> dict[str, float]:
    """CPU and wall microseconds per step over `count` concurrent sessions."""
    make = importlib.import_module("openenv.core.generic_client").GenericEnvClient
    envs = [make(base_url=url) for _ in range(count)]
    await asyncio.gather(*(env.connect() for env in envs))
    await asyncio.gather(*map(episode, envs))
    steps, spent, began = 0, cpu(), time.perf_counter()
    while not steps or time.perf_counter() - began < seconds():
        steps += sum(await asyncio.gather(*map(episode, envs)))
    figures = {"cpu": 1e6 * (cpu() - spent) / steps, "wall": 1e6 * (time.perf_counter() - began) / steps}
    await asyncio.gather(*(env.close() for env in envs))
    return figures


def wait_for(port: int) -> None:
    end = time.monotonic() + 180
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise SystemExit("OpenEnv's server did not start within three minutes") from None
            time.sleep(0.1)


def main() -> None:
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.peer_sides.openenv_side", "serve", str(port)])
    try:
        wait_for(port)
        url = f"ws://127.0.0.1:{port}"
        print_figures("openenv", {"one": asyncio.run(measure(url, 1)), "together": asyncio.run(measure(url, TOGETHER))})
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
