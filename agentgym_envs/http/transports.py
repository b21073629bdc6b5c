"""The network connections of a client to one server, each used by one request at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import httpx

_CONNECTIONS = 128
_KEEP_ALIVE_SECONDS = 30.0  # less than the server's, so that no request uses a connection that the server is closing


class Transports:
    """A pool with one `httpx.HTTPTransport` for each connection: httpx's own pool checks all connections every time.

    The most recently used connection is used first, so that only as many are open as are needed.
    """

    def __init__(self, url: httpx.URL) -> None:
        """`url` is the server's address."""
        self._context = httpx.create_ssl_context(verify=url.scheme == "https")  # reading certificates is slow
        self._free: list[httpx.HTTPTransport] = []
        self._room = threading.Semaphore(_CONNECTIONS)

    @contextlib.contextmanager
    def send(self, request: httpx.Request, seconds: float) -> Iterator[httpx.Response]:
        """Send a request; yields the unread response. Raises httpx.TransportError, also if no connection is free."""
        if not self._room.acquire(timeout=seconds):
            raise httpx.PoolTimeout(f"all {_CONNECTIONS} connections were in use for {seconds:g} s")
        try:
            transport = self._free.pop() if self._free else self._make()
        except IndexError:  # another thread has taken it
            transport = self._make()
        try:
            response = transport.handle_request(request)
            try:
                yield response
            finally:
                response.close()
        finally:
            self._free.append(transport)
            self._room.release()

    def close(self) -> None:
        """Close the connections; none may be in use."""
        while self._free:
            self._free.pop().close()

    def _make(self) -> httpx.HTTPTransport:
        limits = httpx.Limits(max_connections=1, keepalive_expiry=_KEEP_ALIVE_SECONDS)
        return httpx.HTTPTransport(verify=self._context, limits=limits, trust_env=False)
