"""Connections to a model server for many requests at a time; a module of its own, since importing httpx is slow."""

from __future__ import annotations

import itertools

import httpx

_POOLS = 16
_KEPT_IDLE_SECONDS = 2.0  # well below the 5 s after which vLLM closes idle connections


class ConnectionPools(httpx.AsyncBaseTransport):
    """Several small connection pools, since httpcore's work per request grows with the square of a pool's size.

    With 256 connections in one pool, this was most of a client's time.
    """

    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=None, keepalive_expiry=_KEPT_IDLE_SECONDS)
        verify = httpx.create_ssl_context()  # slow to make, so all pools share it
        self._pools = [httpx.AsyncHTTPTransport(verify=verify, limits=limits) for _ in range(_POOLS)]
        self._turn = itertools.cycle(self._pools)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request through the next pool."""
        return await next(self._turn).handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await pool.aclose()
