"""The sites of this process: one HTTP server on the loopback interface, with one ASGI application per host name."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from agentgym_envs.errors import EnvError
from agentgym_envs.webarena.browser.per_process import once_per_process

App = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[MutableMapping[str, Any]], Awaitable[None]]],
    Awaitable[None],
]
"""An ASGI application."""
_START_SECONDS = 10.0


class LocalSites:
    """A server in its own thread. It runs until the process ends."""

    def __init__(self) -> None:
        """Start the server. Raises EnvError if it does not start."""
        import uvicorn

        self._apps: dict[str, App] = {}
        quiet: dict[str, Any] = {"log_config": None, "lifespan": "off", "access_log": False}
        config = uvicorn.Config(self._serve, interface="asgi3", host="127.0.0.1", port=0, **quiet)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="agentgym-sites", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise EnvError("the server of the local sites does not start")
            time.sleep(0.005)

    @property
    def address(self) -> str:
        """The address of the server, "127.0.0.1:<port>"."""
        return f"127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def mount(self, host: str, app: App) -> None:
        """Serve an ASGI application under a host name, written in lower case."""
        self._apps[host] = app

    async def _serve(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        headers: list[tuple[bytes, bytes]] = scope.get("headers", [])
        host = dict(headers).get(b"host", b"").decode("latin-1")
        app: App = self._apps.get(host.partition(":")[0], _unknown_host)
        await app(scope, receive, send)


@once_per_process
def local_sites() -> LocalSites:
    """The server of this process, started on first use."""
    return LocalSites()


async def _unknown_host(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """Answer 404 for a host without an application."""
    await send({"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"There is no such site."})
