"""A Java machine that holds the worlds of many environments, and gives each the globals that it would have alone."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from agentgym_envs.errors import EnvError
from agentgym_envs.sciworld.java import end_process, start_java

GLOBALS = (
    "scala.util.Random$",
    "util.UniqueIdentifier$",
    "main.scala.scienceworld.runtime.SimplifierProcessor$",
)
"""The simulator's process-wide state: its random generator, its counter of objects and its simplifications. Each is a
singleton behind a static field, so a world that owns one of each is switched to by setting three fields."""


class Jvm:
    """A machine. The simulator is not safe for threads, so one call at a time is made, by whoever holds the turn."""

    def __init__(self, java_path: str | None, heap_mb: int, call_seconds: float) -> None:
        """Start it. Raises MissingExtra and EnvError as `start_java` does."""
        self._process, port, token = start_java(java_path, heap_mb)
        self.call_seconds = call_seconds
        self.environments = 0
        """How many use it; the pool counts."""
        self._lock = threading.RLock()
        self._at_turn: object = None
        self._dead = False
        try:
            self._gateway = _connect(port, token, call_seconds)
            self._quieten()
            self._fields = [self._singleton_field(name) for name in GLOBALS]
        except BaseException:
            self.kill()
            raise

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._dead and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def java(self) -> Any:
        """py4j's view of the machine; to be used within a `turn`."""
        return self._gateway.jvm

    @contextlib.contextmanager
    def turn(self, owner: object, own_globals: list[Any] | None = None) -> Iterator[None]:
        """Calls within are those of `owner` alone, with its globals (in the order of `GLOBALS`) in their places.

        Raises EnvError for what goes wrong there. A machine that ended, or took longer than `call_seconds` for a call,
        is killed, and every world in it is lost.
        """
        with self._lock:
            if not self.alive:
                raise EnvError("the Java machine of this environment has ended")
            try:
                if own_globals is not None and self._at_turn is not owner:
                    self._at_turn = owner
                    for field, value in zip(self._fields, own_globals, strict=True):
                        field.set(None, value)
                yield
            except Exception as error:
                raise self._failure(error) from error
            except BaseException:
                self.kill()  # the call that was interrupted goes on there, and nobody may come between
                raise

    def new_globals(self) -> list[Any]:
        """One of each of `GLOBALS`, for a world to own; to be used within a `turn`. They are in their places then."""
        self._at_turn = None
        made = []
        for name in GLOBALS:
            maker = self.java.java.lang.Class.forName(name).getDeclaredConstructor(self._array("Class"))
            maker.setAccessible(True)
            made.append(maker.newInstance(self._array("Object")))
        return made

    def kill(self) -> None:
        """End it at once."""
        self._dead = True
        end_process(self._process)

    def disown(self) -> None:
        """In the child of a fork: the machine is the parent's, and must not outlive it because of this process."""
        self._dead = True
        self._lock = threading.RLock()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            os.close(self._process.stdin.fileno())

    def _quieten(self) -> None:
        """The simulator prints several lines a step; nobody reads them."""
        nowhere = self.java.java.io.PrintStream(self.java.java.io.OutputStream.nullOutputStream())
        self.java.java.lang.System.setOut(nowhere)
        self.java.java.lang.System.setErr(nowhere)

    def _singleton_field(self, name: str) -> Any:
        return self.java.java.lang.Class.forName(name).getField("MODULE$")

    def _array(self, kind: str) -> Any:
        return self._gateway.new_array(getattr(self.java.java.lang, kind), 0)

    def _failure(self, error: Exception) -> Exception:
        """What is raised for an error, by whose fault it is: the simulator's, the machine's or ours."""
        from py4j.protocol import Py4JJavaError, Py4JNetworkError

        if isinstance(error, Py4JJavaError):
            return EnvError(f"the simulator failed: {error.java_exception.toString()}")
        if not isinstance(error, Py4JNetworkError | OSError):
            return error
        self.kill()
        if isinstance(getattr(error, "cause", error), TimeoutError):
            return EnvError(f"the simulator did not answer within {self.call_seconds:g} s")
        return EnvError(f"the Java machine ended or could not be reached ({type(error).__name__}: {error})")


def _connect(port: int, token: str, seconds: float) -> Any:
    from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway

    class Client(GatewayClient):  # type: ignore[misc]
        """py4j's own sends a command again if it is not sure that it arrived, and logs failures with a traceback."""

        def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
            connection = self._get_connection()
            try:
                answer = connection.send_command(command)
            except BaseException:
                connection.close(reset=True)
                raise
            self._give_back_connection(connection)
            return answer

    class Gateway(JavaGateway):  # type: ignore[misc]
        def _create_gateway_client(self) -> Client:
            return Client(gateway_parameters=self.gateway_parameters)

    return Gateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, read_timeout=seconds))
