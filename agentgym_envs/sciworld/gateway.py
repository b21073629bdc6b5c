"""The connection to py4j's gateway in a Java machine, over which nothing is sent that nobody waits for."""

from __future__ import annotations

import socket
import time
from collections import deque
from typing import Any

ADDRESS = "127.0.0.1"
_BLOCK = 1 << 16


class GatewayLost(Exception):
    """The machine can be asked no more."""

    def __init__(self, why: str, late: bool = False) -> None:
        super().__init__(why)
        self.late = late
        """Whether it did not answer in time."""


class Client:
    """What py4j's objects need of its `GatewayClient`: safe for threads, each call on a socket that no other uses.

    py4j's own sends a command again if it is not sure that it arrived, logs what fails with a traceback, and frees
    objects over the network from wherever Python's garbage collector happens to run, which may be the child of a fork
    or a thread in the middle of another call.
    """

    address = ADDRESS
    is_connected = True
    converters: Any = None
    gateway_property: Any = None

    def __init__(self, port: int, token: str, seconds: float) -> None:
        """Connect. `seconds` is how long an answer may take. Raises GatewayLost."""
        self.port = port
        self.seconds = seconds
        self.lost = False
        """Whether a call was begun whose answer was not read. It may go on there, so nothing more is asked."""
        self._token = token
        self._unused: deque[str] = deque()
        self._lines: set[_Line] = set()
        self._free_lines: deque[_Line] = deque([self._connect()])

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> str:
        """Send a command of py4j's protocol and wait for the answer. Raises GatewayLost."""
        if self.lost:
            raise GatewayLost("it was given up")
        try:
            line = self._free_lines.pop()
        except IndexError:
            line = self._connect()
        answer = self._ask(line, command)
        self._free_lines.append(line)
        if self.lost:
            self.close()
        return answer

    def garbage_collect_object(self, target_id: str) -> None:
        """Note that an object there is not used any more; `free` tells the machine."""
        self._unused.append(target_id)

    def free(self) -> None:
        """Free in the machine what is not used here any more. Raises GatewayLost."""
        while self._unused:
            self.send_command(f"m\nd\n{self._unused.popleft()}\ne\n")

    def close(self) -> None:
        """Hang up, after the machine has ended: a call in another thread finds that out and ends in GatewayLost."""
        self.lost = True
        while self._free_lines:
            self._hang_up(self._free_lines.pop())

    def leave_to_parent(self) -> None:
        """In the child of a fork: hang up without a word, and on the lines of threads that do not exist here, too."""
        self.lost = True
        for line in list(self._lines):
            self._hang_up(line)

    def _connect(self) -> _Line:
        try:
            line = _Line(self.port, self.seconds)
        except OSError as error:
            raise GatewayLost(f"{type(error).__name__}: {error}") from error
        self._lines.add(line)
        self._ask(line, f"A\n{self._token}\n")
        return line

    def _ask(self, line: _Line, command: str) -> str:
        message, start = command.encode(), time.monotonic()
        try:
            return line.ask(message).removeprefix("!")
        except BaseException as error:
            self.lost = True
            self._hang_up(line)
            late = isinstance(error, TimeoutError) and time.monotonic() - start >= self.seconds
            if late or isinstance(error, ConnectionError):
                raise GatewayLost(f"{type(error).__name__}: {error}", late) from error
            raise  # what a signal handler raised

    def _hang_up(self, line: _Line) -> None:
        self._lines.discard(line)
        line.close()


class _Line:
    """A socket on which one call is made at a time."""

    def __init__(self, port: int, seconds: float) -> None:
        self._socket = socket.create_connection((ADDRESS, port), timeout=seconds)
        self._received = bytearray()

    def ask(self, message: bytes) -> str:
        self._socket.sendall(message)
        end = -1
        while end < 0:
            start = len(self._received)
            block = self._socket.recv(_BLOCK)
            if not block:
                raise ConnectionError("it hung up")
            self._received += block
            end = self._received.find(b"\n", start)
        line = self._received[:end].decode()
        del self._received[: end + 1]
        return line

    def close(self) -> None:
        self._socket.close()


def connect(port: int, token: str, seconds: float) -> tuple[Client, Any]:
    """A connection and py4j's `JavaGateway` over it. Raises GatewayLost."""
    from py4j.java_gateway import GatewayParameters, JavaGateway

    client = Client(port, token, seconds)

    class Gateway(JavaGateway):  # type: ignore[misc]
        def _create_gateway_client(self) -> Client:
            return client

    return client, Gateway(gateway_parameters=GatewayParameters(address=ADDRESS, port=port, auth_token=token))
