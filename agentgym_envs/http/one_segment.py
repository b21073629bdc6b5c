"""Make httpx send the head and body of a request together, in one segment or one TLS record.

Sent apart, they cost the client a system call and wake the server twice.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import Any

import httpcore
import httpx

_HELD_BYTES = 2**16


def one_segment_transport(
    context: ssl.SSLContext, keep_alive_seconds: float, socket_path: str | None
) -> httpx.HTTPTransport:
    """A transport with one connection that holds what is written until it reads."""
    transport = httpx.HTTPTransport(verify=context, trust_env=False, uds=socket_path)
    transport._pool = httpcore.ConnectionPool(  # httpx has no parameter for the backend
        ssl_context=context,
        max_connections=1,
        keepalive_expiry=keep_alive_seconds,
        uds=socket_path,
        network_backend=_HoldingBackend(),
    )
    return transport


class _HoldingBackend(httpcore.SyncBackend):
    """Opens connections that hold what is written."""

    def connect_tcp(self, *arguments: Any, **settings: Any) -> httpcore.NetworkStream:
        return _HoldingStream(super().connect_tcp(*arguments, **settings))

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Any = None
    ) -> httpcore.NetworkStream:
        _probe(path, timeout)
        return _HoldingStream(super().connect_unix_socket(path, timeout, socket_options))


def _probe(path: str, timeout: float | None) -> None:
    """Raise httpcore.ConnectError if no server listens: httpcore leaves the socket of such an attempt open."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(timeout)
        try:
            probe.connect(path)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error


class _HoldingStream(httpcore.NetworkStream):
    """A connection that sends what was written when it reads, or when it is much."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._held: list[bytes] = []
        self._timeout: float | None = None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with contextlib.suppress(httpcore.WriteError):  # as httpcore does: the server may have refused the body
            self._send()
        return self._stream.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._held.append(buffer)
        self._timeout = timeout
        if len(buffer) > _HELD_BYTES:
            self._send()

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self._send()
        return _HoldingStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _send(self) -> None:
        held, self._held = b"".join(self._held), []
        if held:
            self._stream.write(held, self._timeout)
