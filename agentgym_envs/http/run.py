"""Run a server in the foreground (`agentgym serve`) or in a background thread."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import uvicorn

from agentgym_envs.errors import EnvError
from agentgym_envs.http.app import create_app
from agentgym_envs.http.unix_socket import UNIX, UnixListener, socket_path
from agentgym_envs.http.uvicorn_protocol import http_protocol

KEEP_ALIVE_SECONDS = 75


def is_loopback(host: str) -> bool:
    """True if only this machine can reach a server on that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name; others than this one may resolve to any address
        return host == "localhost"


def make_server(app: Any, host: str, port: int, *, fast_steps: bool = True, **options: Any) -> uvicorn.Server:
    """Make a server without starting it.

    Args:
        app: made by `create_app`.
        host: the address to listen on.
        port: the port.
        fast_steps: answer whole step requests without a task; replies and effects are the same.
        **options: uvicorn's.
    """
    settings: dict[str, Any] = {
        "log_level": "warning",
        "access_log": False,  # paths contain the tokens of sessions
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": 10,
        "http": http_protocol(app, fast_steps),
        "server_header": False,
    }
    config = uvicorn.Config(app, host=host, port=port, **{**settings, **options})
    logging.getLogger("uvicorn.error").addFilter(_not_cancelled)
    return uvicorn.Server(config)


def _not_cancelled(record: logging.LogRecord) -> bool:
    """Drop the traceback of a request that shutdown cancels; one line with their number is logged anyway."""
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


@contextlib.contextmanager
def background_server(
    env_ids: Sequence[str], *, host: str = "127.0.0.1", port: int = 0, fast_steps: bool = True, **settings: Any
) -> Iterator[str]:
    """Serve in a thread while the context is open; yields the server's address.

    Args:
        env_ids: registered ids.
        host: the address to listen on, or `unix:/path` for a Unix socket.
        port: the port; 0 picks a free one.
        fast_steps: see `make_server`.
        **settings: those of `create_app`.

    Raises:
        EnvError: the address is not available.
    """
    app = create_app(env_ids, **settings)
    try:
        listener = _listen(host, port)
    except OSError as error:
        raise EnvError(f"cannot listen on {host}:{port}: {error}") from error
    server = make_server(app, host, port, fast_steps=fast_steps)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        _wait_until_started(server, thread)
        yield host if isinstance(listener, UnixListener) else f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


def _listen(host: str, port: int) -> socket.socket:
    return UnixListener(socket_path(host)) if host.startswith(UNIX) else socket.create_server((host, port))


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    while not server.started:
        thread.join(0.01)
        if not thread.is_alive():
            raise EnvError("the server ended before it was ready; its log says why")
