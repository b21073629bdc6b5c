"""Shared tools of the server and client tests: a raw client, servers in their own processes, a bad network."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx

from agentgym_envs.registration import register
from tests.toy_envs import SlowEnv
from tests.waiting import until

COUNT = "Toy/Count-v0"
TRICKY = "Toy/Tricky-v0"
SLOW = "Toy/Slow-v0"
LATE = "Toy/Late-v0"
TOYS = ["tests.toy_envs:Toy/Count-v0", "tests.toy_envs:Toy/Tricky-v0", "tests.toy_envs:Toy/Slow-v0"]
ROOT = Path(__file__).parents[2]


class LateEnv(SlowEnv):
    """An environment that is slow to make."""

    def __init__(self, **kwargs: Any) -> None:
        time.sleep(1.0)
        super().__init__(**kwargs)


register(LATE, "tests.http.tools:LateEnv")


class Api:
    """Raw requests of the native protocol. Closed at the end of the test."""

    made: ClassVar[list[Api]] = []

    def __init__(self, url: str, **settings: Any) -> None:
        self.made.append(self)
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=30, **settings)

    def create(self, env: str = COUNT, **options: Any) -> str:
        reply = self.http.post("/v2/sessions", json={"env": env, "options": options})
        assert reply.status_code == 201, reply.text
        token: str = reply.json()["session"]
        return token

    def begin(self, env: str = COUNT, task: str = "count/9", **options: Any) -> str:
        """Open a session and start an episode; its next sequence number is 2."""
        session = self.create(env, **options)
        assert self.call(session, "reset", seq=1, seed=0, options={"task": task}).status_code == 200
        return session

    def call(self, session: str, method: str, **body: Any) -> httpx.Response:
        return self.http.post(f"/v2/sessions/{session}/{method}", content=json.dumps(body))

    def step(self, session: str, action: str = "up", seq: int | None = None) -> httpx.Response:
        return self.call(session, "step", action=action, seq=seq)

    def batch(self, *calls: dict[str, Any], **more: Any) -> Any:
        reply = self.http.post("/v2/batch", content=json.dumps({"calls": calls, **more}))
        assert reply.status_code == 200, reply.text
        return reply.json()["results"]

    def sessions(self) -> int:
        count: int = self.http.get("/health").json()["sessions"]
        return count


def error(reply: httpx.Response, status: int) -> str:
    """The error type of a reply with the expected status."""
    assert reply.status_code == status, (reply.status_code, reply.text)
    assert set(reply.json()) == {"error"} and set(reply.json()["error"]) == {"type", "message"}
    assert "Traceback" not in reply.text and ".py" not in reply.text
    kind: str = reply.json()["error"]["type"]
    return kind


_SERVE = """
import json, sys
from agentgym_envs.http.app import create_app
from agentgym_envs.http.run import make_server
port, ids, settings = json.loads(sys.argv[1])
make_server(create_app(ids, **settings), "127.0.0.1", port).run()
"""


@contextlib.contextmanager
def server_process(port: int, ids: list[str] | None = None, **settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process of its own; the process is killed at the end."""
    arguments = json.dumps([port, ids or TOYS, settings])
    process = subprocess.Popen([sys.executable, "-c", _SERVE, arguments], cwd=ROOT)
    try:
        until(lambda: listens(port))
        yield process
    finally:
        process.kill()
        process.wait()


def listens(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False, timeout=1).status_code == 200
    except httpx.HTTPError:
        return False


class Proxy:
    """A proxy before a server whose connections break."""

    def __init__(self, port: int, bytes_before_drop: Callable[[], int | None]) -> None:
        """`bytes_before_drop` returns the number of reply bytes after which a new connection ends, or None."""
        self._to, self._bytes_before_drop = port, bytes_before_drop
        self.dropped = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result()
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        pump = asyncio.ensure_future(self._pump(reader, back, None))
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump(there, writer, self._bytes_before_drop())
        pump.cancel()
        for end in (writer, back):
            end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int | None) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if left is not None and len(data) >= left:
                    self.dropped += 1
                    writer.write(data[:left])
                    await writer.drain()
                    return
                if left is not None:
                    left -= len(data)
                writer.write(data)
                await writer.drain()
