"""`PlainClient`: calls over a kept-open socket, each request sent in one segment.

httpx sends head and body apart and parses every reply in Python, which takes longer than the call itself. This client
understands one form of reply: HTTP/1.1, a final status, and a body with a Content-Length. It leaves everything else to
httpx by raising `OddReply`; the caller then repeats the call, which its sequence number makes harmless.
"""

from __future__ import annotations

import math
import re
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import httpx

from agentgym_envs.http.address import ServerAddress
from agentgym_envs.http.idle_pool import KEEP_ALIVE_SECONDS, IdlePool

_READ_BYTES = 2**16
_HEAD_BYTES = 2**16
_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([245]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*?)[\t ]*")
_LENGTH = re.compile(rb"\d{1,15}")


class OddReply(Exception):
    """A reply of another form than this client understands; httpx may understand it."""


class PlainReply(NamedTuple):
    """The status and body of a reply."""

    status: int
    content: bytes


class ReplyHead(NamedTuple):
    """The parts of a reply's head that matter here. The connection ends after the reply unless `keep_open`."""

    status: int
    length: int
    keep_open: bool


class PlainClient:
    """Posts requests to one server that needs no TLS. Any thread may call it."""

    def __init__(self, address: ServerAddress, headers: Sequence[tuple[str, str]], timeout: float, connect: float):
        """Prepare the head of all requests; connects at the first one.

        Args:
            address: the server's.
            headers: of every request, besides Host and Content-Length.
            timeout: seconds that the server may be silent.
            connect: seconds for a connection.
        """
        self._address, self._timeout, self._connect_seconds = address, timeout, connect
        self._base = str(address.url)
        host = b"Host: " + address.url.netloc
        fields = [host, *(f"{name}: {value}".encode("ascii") for name, value in headers), b"Content-Length: "]
        self._fields = b" HTTP/1.1\r\n" + b"\r\n".join(fields)
        self._pool = IdlePool(self._connect)

    def post(self, path: str, content: bytes) -> PlainReply:
        """Send a request and read its reply.

        A kept-open connection that the server closed meanwhile is replaced and the request repeated, so it must be one
        that may be repeated.

        Raises:
            OddReply: the reply is not one that this client understands.
            httpx.TransportError: the connection failed.
        """
        request = b"POST %b%b%d\r\n\r\n%b" % (_target(self._base, path), self._fields, len(content), content)
        channel = self._pool.take(self._timeout)
        try:
            try:
                return channel.exchange(request)
            except _Stale:
                return channel.exchange(request)  # on a new connection, since the failure closed the old one
        finally:
            self._pool.give_back(channel)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._pool.close()

    def _connect(self) -> _Channel:
        return _Channel(self._address, self._timeout, self._connect_seconds)


class _Stale(Exception):
    """The server closed a kept-open connection before it replied."""


class _Channel:
    """One connection, opened when it is first used."""

    def __init__(self, address: ServerAddress, timeout: float, connect: float) -> None:
        self._address, self._timeout, self._connect_seconds = address, timeout, connect
        self._socket: socket.socket | None = None
        self._has_input: Callable[[], bool] = bool
        self._used = 0.0
        self._replied = False

    def exchange(self, request: bytes) -> PlainReply:
        """Send a request and read its reply; a failure closes the connection. Raises _Stale if it was closed before."""
        kept = self._is_usable()
        if not kept:
            self.reopen()
        self._replied = False
        try:
            reply, keep_open = self._exchange(request)
        except BaseException as error:
            self.close()
            if kept and not self._replied and isinstance(error, ConnectionError):
                raise _Stale from None
            if isinstance(error, OSError):
                raise _transport_error(error) from error
            raise
        if not keep_open:
            self.close()
        self._used = time.monotonic()
        return reply

    def reopen(self) -> None:
        """Open the connection in place of one that is closed. Raises httpx.ConnectError or httpx.ConnectTimeout."""
        self.close()
        try:
            self._socket = self._open()
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        self._has_input = _input_test(self._socket)

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _is_usable(self) -> bool:
        """True if the connection is open, was used recently, and has nothing to read, such as its end."""
        if self._socket is None or time.monotonic() - self._used > KEEP_ALIVE_SECONDS:
            return False
        return not self._has_input()

    def _open(self) -> socket.socket:
        url = self._address.url
        if self._address.socket_path is None:
            address = url.raw_host.decode("ascii"), url.port or 80
            opened = socket.create_connection(address, self._connect_seconds)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                opened.settimeout(self._connect_seconds)
                opened.connect(self._address.socket_path)
            except BaseException:
                opened.close()
                raise
        _set_timeout(opened, self._timeout)
        return opened

    def _exchange(self, request: bytes) -> tuple[PlainReply, bool]:
        assert self._socket is not None
        self._socket.sendall(request)
        data = self._receive()
        while (end := data.find(b"\r\n\r\n")) < 0:
            if len(data) > _HEAD_BYTES:
                raise OddReply("the head of the reply is too long")
            data += self._receive()
        head = read_head(data[:end])
        content = data[end + 4 :]
        if len(content) < head.length:
            content = self._receive_rest(content, head.length)
        if len(content) > head.length:
            raise OddReply("there are bytes after the reply")
        return PlainReply(head.status, content), head.keep_open

    def _receive(self) -> bytes:
        assert self._socket is not None
        data = self._socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        self._replied = True
        return data

    def _receive_rest(self, begun: bytes, length: int) -> bytes:
        parts, size = [begun], len(begun)
        while size < length:
            parts.append(self._receive())
            size += len(parts[-1])
        return b"".join(parts)


@lru_cache(256)
def read_head(head: bytes) -> ReplyHead:
    """Read the head of a reply, without the empty line at its end. Raises OddReply."""
    first, *lines = head.split(b"\r\n")
    status_line = _STATUS_LINE.fullmatch(first)
    if status_line is None:
        raise OddReply("a status line of another form")
    fields: dict[bytes, bytes] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None or (name := field[1].lower()) in fields:
            raise OddReply("a header field of another form, or one that comes twice")
        fields[name] = field[2]
    status = int(status_line[1])
    if fields.keys() & {b"transfer-encoding", b"content-encoding", b"upgrade"}:
        raise OddReply("an encoded reply")
    return ReplyHead(status, _length(status, fields), fields.get(b"connection", b"").lower() in (b"", b"keep-alive"))


def _length(status: int, fields: dict[bytes, bytes]) -> int:
    """The number of bytes after the head. A reply of status 204 has none."""
    length = fields.get(b"content-length", b"0" if status == 204 else b"")
    if _LENGTH.fullmatch(length) is None or (status == 204 and int(length)):
        raise OddReply("a reply without its length")
    return int(length)


@lru_cache(4096)
def _target(base: str, path: str) -> bytes:
    """The path in the first line of a request, percent-encoded."""
    url = httpx.URL(base)
    return url.copy_with(path=url.path.rstrip("/") + path).raw_path


def _input_test(connection: socket.socket) -> Callable[[], bool]:
    """A function that returns True if reading from the connection would not wait."""
    if not hasattr(select, "poll"):
        return lambda: bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return lambda: bool(poll.poll(0))


def _set_timeout(connection: socket.socket, seconds: float) -> None:
    """Let each send and receive wait for at most that many seconds.

    After `settimeout`, Python polls before each of them. If the system ends the wait, a request needs two system calls
    fewer.
    """
    if sys.platform != "linux" or sys.maxsize < 2**32:  # the form of the option differs
        connection.settimeout(seconds)
        return
    limit = struct.pack("@ll", *divmod(math.ceil(seconds * 1e6), 10**6))  # rounded up: 0 is no limit
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, limit)
    connection.settimeout(None)


def _transport_error(error: OSError) -> httpx.TransportError:
    """The error of httpx for one of a socket."""
    if isinstance(error, TimeoutError | BlockingIOError):  # the latter where the system ended the wait
        return httpx.ReadTimeout("the server did not reply in time")
    return httpx.ReadError(str(error))
