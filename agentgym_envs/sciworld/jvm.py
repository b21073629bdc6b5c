"""A Java machine that holds the worlds of many environments, and gives each the globals that it would have alone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from agentgym_envs.errors import EnvError
from agentgym_envs.sciworld.gateway import GatewayLost
from agentgym_envs.sciworld.java import end_process, last_words, start_java

GLOBALS = (
    "scala.util.Random$",
    "util.UniqueIdentifier$",
    "main.scala.scienceworld.runtime.SimplifierProcessor$",
)
"""The simulator's process-wide state: its random generator, its counter of objects and its simplifications. Each is a
singleton behind a static field, so a world that owns one of each is switched to by setting three fields."""
_LAST_WORDS_SECONDS = 2.0


class Jvm:
    """A machine. The simulator is not safe for threads, so one call at a time is made, by whoever holds the turn."""

    def __init__(self, java_path: str | None, heap_mb: int, call_seconds: float) -> None:
        """Start it. Raises MissingExtra and EnvError as `start_java` does."""
        self._process, self._complaints, self._client, self._gateway = start_java(java_path, heap_mb, call_seconds)
        self.call_seconds = call_seconds
        self.environments = 0
        """How many use it; the pool counts."""
        self._lock = threading.RLock()
        self._at_turn: object = None
        self._ended = ""
        try:
            with self.turn(None):
                self._quieten()
                self._fields = [self._singleton_field(name) for name in GLOBALS]
        except BaseException:
            self.kill("it could not be made ready")
            raise

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._ended and self._process.poll() is None

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
        is killed, and every world in it is lost. So it is if a call is interrupted: it goes on there, and nobody may
        come between.
        """
        with self._lock:
            if not self.alive:
                self.kill()
                raise EnvError(f"the Java machine of this environment is gone: {self._ended}")
            try:
                self._client.free()
                if own_globals is not None and self._at_turn is not owner:
                    self._switch(owner, own_globals)
                yield
            except BaseException as error:
                if said := self._explained(error):
                    raise EnvError(said) from None
                raise
            finally:
                if self._client.lost:
                    self.kill("a call was interrupted")

    def new_globals(self) -> list[Any]:
        """One of each of `GLOBALS`, for a world to own; to be used within a `turn`. They are in their places then."""
        self._at_turn = None
        made = []
        for name in GLOBALS:
            maker = self.java.java.lang.Class.forName(name).getDeclaredConstructor(self._array("Class"))
            maker.setAccessible(True)
            made.append(maker.newInstance(self._array("Object")))
        return made

    def release(self, unused: Any) -> None:
        """Let an object go at the next turn. Python itself would only notice after a while: py4j's are in cycles."""
        unused._detach()

    def kill(self, why: str = "") -> None:
        """End it at once; `why` is told to those whose worlds are lost: by default, how it ended by itself."""
        self._ended = self._ended or why or self._last_words()
        end_process(self._process)
        self._client.close()
        self._complaints.close()

    def leave_to_parent(self) -> None:
        """In the child of a fork: the machine is the parent's."""
        self._ended = "it belongs to another process"
        self._lock = threading.RLock()
        self._client.leave_to_parent()
        self._complaints.close()

    def _switch(self, owner: object, own_globals: list[Any]) -> None:
        self._at_turn = None  # until all are set
        for field, value in zip(self._fields, own_globals, strict=True):
            field.set(None, value)
        self._at_turn = owner

    def _quieten(self) -> None:
        """The simulator prints several lines a step, which nobody reads, and would write its table of types down."""
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

    def _explained(self, error: BaseException) -> str:
        """What an EnvError tells, if it is the simulator's or the machine's; "" if it is ours, or the caller's."""
        from py4j.protocol import Py4JError, Py4JJavaError

        if isinstance(error, GatewayLost):
            late = f"the simulator did not answer within {self.call_seconds:g} s"
            self.kill(late if error.late else "")
            return late if error.late else f"the Java machine is gone: {self._ended}"
        if isinstance(error, Py4JJavaError):  # whose str() asks the machine for its stack trace
            try:
                return f"the simulator failed: {error.java_exception.toString()}"
            except GatewayLost as lost:
                return self._explained(lost)
        return f"the simulator failed: {str(error).splitlines()[0]}" if isinstance(error, Py4JError) else ""

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_WORDS_SECONDS)
        return last_words(self._process, self._complaints)
