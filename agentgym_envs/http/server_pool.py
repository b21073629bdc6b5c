"""`ServerPool`: several servers of the native protocol, among which sessions are spread."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.errors import EnvError, ServerFull, SessionLost
from agentgym_envs.hosting.connection import RemoteSession
from agentgym_envs.http.server_connection import BACKOFF_SECONDS, ServerConnection


class ServerPool:
    """Servers that serve the same environments. A new session goes to the one with the least load."""

    def __init__(self, urls: Sequence[str], token: str | None, timeout: float, connect_timeout: float) -> None:
        """`connect_timeout` is the number of seconds to look for a server with room."""
        self._arguments = (tuple(urls), token, timeout, connect_timeout)
        self._connect_timeout = connect_timeout
        self._servers = [_Server(ServerConnection(url, token, timeout)) for url in dict.fromkeys(urls)]

    def __reduce__(self) -> Any:
        return server_pool, self._arguments

    def open(self, env_id: str, options: Mapping[str, Any]) -> RemoteSession:
        """Make a session on the first server that accepts it; see `EnvProvider.open`."""
        end = time.monotonic() + self._connect_timeout
        problems: dict[str, str] = {}
        pause = BACKOFF_SECONDS
        while True:
            for server in self._candidates():
                try:
                    return server.open(env_id, options)
                except (SessionLost, ServerFull) as error:
                    problems[server.connection.url] = _with_url(server.connection.url, error)
            remaining = end - time.monotonic()
            if remaining <= 0:
                raise EnvError("no server took the environment: " + "; ".join(problems.values()))
            time.sleep(min(pause, remaining))
            pause = min(1.0, pause * 2)

    def _candidates(self) -> list[_Server]:
        """The servers that are not excluded (all if every one is), the least loaded first."""
        now = time.monotonic()
        available = [server for server in self._servers if server.excluded_until <= now]
        return sorted(available or self._servers, key=lambda server: server.load)


class _Server:
    """One server of a pool, its load and its failures."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.excluded_until = 0.0
        self._failures = self._opening = 0
        self._others, self._room = 0, 1

    @property
    def load(self) -> float:
        """The share of the server's sessions in use, estimated from its last reply."""
        return (self._others + self.connection.sessions + self._opening) / self._room

    def open(self, env_id: str, options: Mapping[str, Any]) -> RemoteSession:
        self._opening += 1  # so that other threads open their sessions elsewhere
        try:
            opened, load = self.connection.open(env_id, options)
        except SessionLost:
            self._failures = min(self._failures + 1, 6)
            self.excluded_until = time.monotonic() + 0.5 * 2**self._failures
            raise
        finally:
            self._opening -= 1
        self._failures, self.excluded_until = 0, 0.0
        self._others, self._room = max(0, load["sessions"] - self.connection.sessions), load["max_sessions"]
        return opened


def server_pool(urls: Sequence[str], token: str | None, timeout: float, connect_timeout: float) -> ServerPool:
    """The pool of these servers; all environments of a process share it and its connections."""
    key = (os.getpid(), tuple(urls), token, timeout, connect_timeout)
    with _pools_lock:
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = ServerPool(urls, token, timeout, connect_timeout)
        return pool


_pools: weakref.WeakValueDictionary[tuple[Any, ...], ServerPool] = weakref.WeakValueDictionary()
_pools_lock = threading.Lock()


def _after_fork() -> None:
    global _pools_lock
    _pools_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _with_url(url: str, error: BaseException) -> str:
    """The message of an error, with the server's address in it."""
    return str(error) if url in str(error) else f"{url}: {error}"
