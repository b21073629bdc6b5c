"""The time of one step over HTTP by its parts: those of client and server, each measured alone.

The parts run in one process on the bytes of a real step, so that their times exclude the network. The network is
measured with a server on the same event loop that answers each segment with as many bytes and does nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import socket
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import uvloop
from rich.console import Console
from rich.table import Table

from agentgym_envs.hosting.connection import Connection, RemoteSession
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.session_host import SessionHost
from agentgym_envs.http import protocol
from agentgym_envs.http.app import create_app
from agentgym_envs.http.plain_client import read_head
from agentgym_envs.http.step_request import read_step
from agentgym_envs.http.wire import dump

COMMAND = "inventory"
SESSION = "s" * 32
CALLS, REPEATS, ROUND_TRIPS = 3_000, 7, 5_000


def measure_parts(env_id: str) -> dict[str, float]:
    """Microseconds by part: the median of several repeats."""
    app = create_app([env_id])
    sessions, server = app.state.server.sessions, app.state.server
    opened = asyncio.run(sessions.open(env_id, {}))
    asyncio.run(sessions.call(opened.token, "reset", {"seed": 0}))
    host, local = SessionHost(), gym.make(env_id)
    host.open("s", env_id, {})
    host.call("s", "reset", {"seed": 0})
    local.reset(seed=0)
    body = dump({"action": COMMAND, "seq": 7})
    request = request_of(body)
    read = read_step(request)
    assert read is not None
    reply = host.call("s", "step", {"action": COMMAND})
    content = protocol.encode(reply)
    head = b"HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-length: %d" % len(content)
    unnumbered = read._replace(session=opened.token, body=dump({"action": COMMAND}))
    remote = remote_env(env_id, reply)
    times = {
        "environment": median_us(lambda: local.step(COMMAND)),
        "server: read the request's head": median_us(lambda: read_step(request)),
        "server: body, session, call, metrics, reply": median_us(lambda: server.step_now(unnumbered)),
        "client: request as JSON": median_us(lambda: dump({"action": COMMAND, "seq": 7})),
        "client: read the reply": median_us(lambda: (read_head(head), json.loads(content))),
        "client: environment": median_us(lambda: remote.step(COMMAND)),
        "network and two process switches": round_trip_us(request, len(head) + 4 + len(content)),
    }
    times["server: body, session, call, metrics, reply"] -= times["environment"]
    asyncio.run(sessions.shut_down())
    return times


def request_of(body: bytes) -> bytes:
    head = f"POST /v2/sessions/{SESSION}/step HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: application/json\r\n"
    return head.encode() + b"AgentGym-Client: 0123456789abcdef\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def remote_env(env_id: str, reply: Any) -> gym.Env[str, str]:
    """A remote environment whose connection has the replies at once."""
    host = SessionHost()

    class Ready(Connection):
        def call(self, session: str, method: str, arguments: Any) -> Any:
            return reply if method == "step" else host.call(session, method, arguments)

        def submit(self, calls: Any) -> None:
            raise NotImplementedError

        def close_session(self, session: str) -> None:
            host.close(session)

    class Provider:
        def open(self, env_id: str, options: Any) -> RemoteSession:
            return RemoteSession(Ready(), "s", host.open("s", env_id, options))

    env: gym.Env[str, str] = RemoteEnv(env_id, Provider(), {})
    env.reset(seed=0)
    return env


def median_us(call: Callable[[], Any]) -> float:
    return 1e6 * statistics.median(timeit.repeat(call, number=CALLS, repeat=REPEATS)) / CALLS


def round_trip_us(request: bytes, reply_bytes: int) -> float:
    """The median time of a round trip to a server that only sends bytes back."""
    listener = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(target=serve_bytes, args=(listener, b"x" * reply_bytes))
    process.start()
    times = []
    try:
        with socket.create_connection(listener.getsockname()) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(ROUND_TRIPS):
                begun = time.perf_counter()
                client.sendall(request)
                client.recv(65536)
                times.append(time.perf_counter() - begun)
    finally:
        process.terminate()
        process.join()
        listener.close()
    return 1e6 * statistics.median(times)


def serve_bytes(listener: socket.socket, reply: bytes) -> None:
    class Answering(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self._transport = transport

        def data_received(self, data: bytes) -> None:
            self._transport.write(reply)

    async def serve() -> None:
        await (await asyncio.get_running_loop().create_server(Answering, sock=listener)).serve_forever()

    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


def show_parts(parts: dict[str, float]) -> None:
    table = Table(title="Where the time of a step goes (us, each part measured alone)")
    table.add_column("part")
    table.add_column("us", justify="right")
    for name, value in parts.items():
        table.add_row(name, f"{value:.1f}")
    table.add_row("sum", f"{sum(parts.values()):.1f}")
    Console().print(table)
