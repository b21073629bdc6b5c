"""A JVM that holds the worlds of many environments, and switches the simulator's global state between them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from agentgym_envs.errors import EnvError
from agentgym_envs.sciworld.gateway import GatewayLost, Watch
from agentgym_envs.sciworld.java import describe_exit, end_process, start_java

GLOBALS = (
    "scala.util.Random$",
    "util.UniqueIdentifier$",
    "main.scala.scienceworld.runtime.SimplifierProcessor$",
)
"""The simulator's global state: its random generator, its object counter and its simplifications. Each is a singleton
behind a static field. A world owns one of each, and switching to it means setting three fields."""
_EXIT_SECONDS = 2.0


class Jvm:
    """A running JVM. The simulator is not thread-safe, so calls are made one at a time, within `exclusive`."""

    def __init__(self, java_path: str | None, heap_mb: int, call_seconds: float) -> None:
        """Start the JVM. Raises MissingExtra and EnvError as `start_java` does."""
        self._process, self._stderr, self._client, self._gateway = start_java(java_path, heap_mb, call_seconds)
        self.call_seconds = call_seconds
        self.environments = 0
        """The number of environments that use it, counted by the pool."""
        self._lock = threading.RLock()
        self._owner: object = None
        self._ended = ""
        try:
            with self.exclusive(None):
                self._silence()
                self._fields = [self._singleton_field(name) for name in GLOBALS]
        except BaseException:
            self.kill("it could not be initialized")
            raise

    @property
    def alive(self) -> bool:
        """True if it can be called."""
        return not self._ended and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def java(self) -> Any:
        """py4j's view of the JVM; use it within `exclusive`."""
        return self._gateway.jvm

    @contextlib.contextmanager
    def exclusive(self, owner: object, own_globals: list[Any] | None = None) -> Iterator[None]:
        """Hold the lock of the JVM, with the globals of `owner` (in the order of `GLOBALS`) installed.

        Errors in Java raise EnvError. If the JVM has ended, or takes longer than `call_seconds` for a call, it is
        killed and every world in it is lost. The same happens if a call is interrupted, because it continues in the
        JVM and no other call may run meanwhile.
        """
        with self._lock:
            if not self.alive:
                self.kill()
                raise EnvError(f"the JVM of this environment has ended: {self._ended}")
            try:
                self._client.free()
                if own_globals is not None and self._owner is not owner:
                    self._switch(owner, own_globals)
                yield
            except BaseException as error:
                if message := self._explain(error):
                    raise EnvError(message) from None
                raise
            finally:
                if self._client.lost:
                    self.kill("a call was interrupted")

    @contextlib.contextmanager
    def watched(self, watch: Watch) -> Iterator[None]:
        """Let the next call take longer than `call_seconds`, watched by `watch`. Use it within `exclusive`."""
        self._client.watch_next = watch
        try:
            yield
        finally:
            self._client.watch_next = None

    def new_globals(self) -> list[Any]:
        """Create one of each of `GLOBALS` for a world, and install them. Use it within `exclusive`."""
        self._owner = None
        made = []
        for name in GLOBALS:
            maker = self.java.java.lang.Class.forName(name).getDeclaredConstructor(self._array("Class"))
            maker.setAccessible(True)
            made.append(maker.newInstance(self._array("Object")))
        return made

    def release(self, unused: Any) -> None:
        """Release an object at the next call. The garbage collector would be late: py4j's objects are in cycles."""
        unused._detach()

    def kill(self, why: str = "") -> None:
        """Kill the JVM. Environments in it report `why`, by default the exit status of the process."""
        self._ended = self._ended or why or self._describe_exit()
        end_process(self._process)
        self._client.close()
        self._stderr.close()

    def leave_to_parent(self) -> None:
        """Give up the JVM in a forked child; it belongs to the parent."""
        self._ended = "it belongs to another process"
        self._lock = threading.RLock()
        self._client.leave_to_parent()
        self._stderr.close()

    def _switch(self, owner: object, own_globals: list[Any]) -> None:
        self._owner = None  # until all fields are set
        for field, value in zip(self._fields, own_globals, strict=True):
            field.set(None, value)
        self._owner = owner

    def _silence(self) -> None:
        """Discard the simulator's output (several lines a step), and keep it from writing its table of types."""
        java = self.java.java
        nowhere = java.io.PrintStream(java.io.OutputStream.nullOutputStream())
        java.lang.System.setOut(nowhere)
        java.lang.System.setErr(nowhere)
        file = java.lang.Class.forName("util.UniqueTypeID$").getDeclaredField("FILENAME_IDS")
        file.setAccessible(True)
        file.set(self._singleton_field("util.UniqueTypeID$").get(None), os.devnull)

    def _singleton_field(self, name: str) -> Any:
        return self.java.java.lang.Class.forName(name).getField("MODULE$")

    def _array(self, kind: str) -> Any:
        return self._gateway.new_array(getattr(self.java.java.lang, kind), 0)

    def _explain(self, error: BaseException) -> str:
        """Return the message for an error of the simulator or the JVM; "" for any other error."""
        from py4j.protocol import Py4JError, Py4JJavaError

        if isinstance(error, GatewayLost):
            late = f"the simulator did not answer within {self.call_seconds:g} s"
            self.kill(late if error.late else "")
            return late if error.late else f"the JVM has ended: {self._ended}"
        if isinstance(error, Py4JJavaError):  # its str() would call the JVM for a stack trace
            try:
                return f"the simulator failed: {error.java_exception.toString()}"
            except GatewayLost as lost:
                return self._explain(lost)
        return f"the simulator failed: {str(error).splitlines()[0]}" if isinstance(error, Py4JError) else ""

    def _describe_exit(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        return describe_exit(self._process, self._stderr)
