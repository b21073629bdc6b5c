"""The connections of a client that httpx serves: TLS, streamed replies, and replies that `PlainClient` leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import httpx

from agentgym_envs.http.address import ServerAddress
from agentgym_envs.http.idle_pool import KEEP_ALIVE_SECONDS, IdlePool
from agentgym_envs.http.one_segment import one_segment_transport


class Transports:
    """A pool with one `httpx.HTTPTransport` for each connection: httpx's own pool checks all connections every time."""

    def __init__(self, address: ServerAddress) -> None:
        """`address` is the server's."""
        self._context = httpx.create_ssl_context(verify=address.url.scheme == "https")  # reading certificates is slow
        self._socket_path = address.socket_path
        self._pool = IdlePool(self._make)

    @contextlib.contextmanager
    def send(self, request: httpx.Request, seconds: float) -> Iterator[httpx.Response]:
        """Send a request; yields the unread response. Raises httpx.TransportError, also if no connection is free."""
        transport = self._pool.take(seconds)
        try:
            response = transport.handle_request(request)
            try:
                yield response
            finally:
                response.close()
        finally:
            self._pool.give_back(transport)

    def close(self) -> None:
        """Close the connections; none may be in use."""
        self._pool.close()

    def _make(self) -> httpx.HTTPTransport:
        return one_segment_transport(self._context, KEEP_ALIVE_SECONDS, self._socket_path)
