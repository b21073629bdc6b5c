"""Connections of a client to one server, each used by one request at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import httpx

_CONNECTIONS = 128
_KEEP_ALIVE_SECONDS = 30.0  # less than the server's, so that no request meets a connection that is being closed


class Transports:
    """One `httpx.HTTPTransport` a connection: a pool of httpx looks at all of them for every request.

    The last that was used is used first, so that no more are open than are needed at a time.
    """

    def __init__(self, url: httpx.URL) -> None:
        """`url` is the server's."""
        self._context = httpx.create_ssl_context(verify=url.scheme == "https")  # reading certificates takes long
        self._free: list[httpx.HTTPTransport] = []
        self._room = threading.Semaphore(_CONNECTIONS)

    @contextlib.contextmanager
    def send(self, request: httpx.Request, seconds: float) -> Iterator[httpx.Response]:
        """The reply to a request, not read yet. Raises httpx.TransportError, also if no connection becomes free."""
        if not self._room.acquire(timeout=seconds):
            raise httpx.PoolTimeout(f"all {_CONNECTIONS} connections were in use for {seconds:g} s")
        try:
            transport = self._free.pop() if self._free else self._make()
        except IndexError:  # another thread was faster
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
