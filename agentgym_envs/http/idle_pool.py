"""`IdlePool`: a bounded number of network connections, each used by one request at a time."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import httpx

_CONNECTIONS = 128
KEEP_ALIVE_SECONDS = 30.0
"""Less than the server's, so that no request uses a connection that the server is closing."""


class Closable(Protocol):
    """An object that can be closed."""

    def close(self) -> None:
        """Close it."""


T = TypeVar("T", bound=Closable)


class IdlePool(Generic[T]):
    """Connections without a request. The last one used is taken first, so that only as many are open as are needed."""

    def __init__(self, make: Callable[[], T]) -> None:
        """`make` makes another connection."""
        self._make = make
        self._idle: list[T] = []
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()  # a semaphore, but faster
        for _ in range(_CONNECTIONS):
            self._room.put(None)

    def take(self, seconds: float) -> T:
        """An idle connection, or a new one. Give it back. Raises httpx.PoolTimeout if none is free in time."""
        try:
            self._room.get(timeout=seconds)
        except queue.Empty:
            raise httpx.PoolTimeout(f"all {_CONNECTIONS} connections were in use for {seconds:g} s") from None
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._make()
        except BaseException:
            self._room.put(None)
            raise

    def give_back(self, connection: T) -> None:
        """Return a connection that was taken."""
        self._idle.append(connection)
        self._room.put(None)

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()
