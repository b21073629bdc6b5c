"""The connection to py4j's gateway in a JVM. Commands are sent only from calls that wait for the answer."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any

ADDRESS = "127.0.0.1"
_BLOCK = 1 << 16
_WATCH_SECONDS = 1.0
Watch = Callable[[], None]
"""A function that is called during a long call. It raises TimeoutError to give the call up."""


class GatewayLost(Exception):
    """Raised when the JVM cannot be called any more."""

    def __init__(self, why: str, late: bool = False) -> None:
        super().__init__(why)
        self.late = late
        """True if it did not answer in time."""


class Client:
    """A thread-safe replacement for py4j's `GatewayClient`: each call has a socket to itself.

    py4j's own client sends a command again if it may not have arrived, and logs errors with a traceback. It also frees
    objects over the network whenever Python's garbage collector runs, which may be in a forked child or in the middle
    of another call.
    """

    address = ADDRESS
    is_connected = True
    converters: Any = None
    gateway_property: Any = None

    def __init__(self, port: int, token: str, seconds: float) -> None:
        """Connect. An answer may take up to `seconds`. Raises GatewayLost."""
        self.port = port
        self.seconds = seconds
        self.lost = False
        """True if the answer of a call was not read. The call may still be running, so no further call is made."""
        self.watch_next: Watch | None = None
        """The watch of the next call, which may then take longer than `seconds`. The watch itself may make calls."""
        self._token = token
        self._unused: deque[str] = deque()
        self._connections: set[_Connection] = set()
        self._free_connections: deque[_Connection] = deque([self._connect()])

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> str:
        """Send a command of py4j's protocol and wait for the answer. Raises GatewayLost."""
        if self.lost:
            raise GatewayLost("the connection was given up")
        watch, self.watch_next = self.watch_next, None
        try:
            connection = self._free_connections.pop()
        except IndexError:
            connection = self._connect()
        answer = self._call(connection, command, watch)
        self._free_connections.append(connection)
        if self.lost:
            self.close()
        return answer

    def garbage_collect_object(self, target_id: str) -> None:
        """Record that a Java object is no longer used; `free` releases it."""
        self._unused.append(target_id)

    def free(self) -> None:
        """Release the Java objects that are no longer used. Raises GatewayLost."""
        while self._unused:
            self.send_command(f"m\nd\n{self._unused.popleft()}\ne\n")

    def close(self) -> None:
        """Close the connections, after the JVM has ended. A call in another thread raises GatewayLost."""
        self.lost = True
        while self._free_connections:
            self._disconnect(self._free_connections.pop())

    def leave_to_parent(self) -> None:
        """Close all connections in a forked child without sending anything."""
        self.lost = True
        for connection in list(self._connections):
            self._disconnect(connection)

    def _connect(self) -> _Connection:
        try:
            connection = _Connection(self.port, self.seconds)
        except OSError as error:
            raise GatewayLost(f"{type(error).__name__}: {error}") from error
        self._connections.add(connection)
        self._call(connection, f"A\n{self._token}\n")
        return connection

    def _call(self, connection: _Connection, command: str, watch: Watch | None = None) -> str:
        message, start = command.encode(), time.monotonic()
        try:
            return connection.call(message, watch).removeprefix("!")
        except BaseException as error:
            self.lost = True
            self._disconnect(connection)
            late = isinstance(error, TimeoutError) and time.monotonic() - start >= self.seconds
            if late or isinstance(error, ConnectionError):
                raise GatewayLost(f"{type(error).__name__}: {error}", late) from error
            raise  # raised by a signal handler

    def _disconnect(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        connection.close()


class _Connection:
    """A socket for one call at a time."""

    def __init__(self, port: int, seconds: float) -> None:
        self._socket = socket.create_connection((ADDRESS, port), timeout=seconds)
        self._seconds = seconds
        self._received = bytearray()

    def call(self, message: bytes, watch: Watch | None) -> str:
        self._socket.sendall(message)
        if watch is not None:
            self._wait(watch)
        end = -1
        while end < 0:
            start = len(self._received)
            block = self._socket.recv(_BLOCK)
            if not block:
                raise ConnectionError("the JVM closed the connection")
            self._received += block
            end = self._received.find(b"\n", start)
        line = self._received[:end].decode()
        del self._received[: end + 1]
        return line

    def _wait(self, watch: Watch) -> None:
        """Wait until the answer begins."""
        self._socket.settimeout(min(_WATCH_SECONDS, self._seconds / 4))
        while True:
            try:
                self._socket.recv(1, socket.MSG_PEEK)
                break
            except TimeoutError:
                watch()
        self._socket.settimeout(self._seconds)

    def close(self) -> None:
        self._socket.close()


def connect(port: int, token: str, seconds: float) -> tuple[Client, Any]:
    """Return a connected client and py4j's `JavaGateway` over it. Raises GatewayLost."""
    from py4j.java_gateway import GatewayParameters, JavaGateway

    client = Client(port, token, seconds)

    class Gateway(JavaGateway):  # type: ignore[misc]
        def _create_gateway_client(self) -> Client:
            return client

    return client, Gateway(gateway_parameters=GatewayParameters(address=ADDRESS, port=port, auth_token=token))
