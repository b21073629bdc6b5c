"""The Java machines of this process: environments share them, and one that nobody uses ends."""

from __future__ import annotations

import atexit
import os
import threading
from typing import NamedTuple

from agentgym_envs.sciworld.jvm import Jvm

ENVIRONMENTS_PER_JVM = 8
"""From this many on a further machine is started, if there may be one."""
IDLE_SECONDS = 10.0
"""How long a machine waits for the next environment, since to start one takes a second or two."""


class JvmOptions(NamedTuple):
    """What a machine is started with; see `SciWorldEnv`."""

    java_path: str | None = None
    heap_mb: int = 600
    call_seconds: float = 60.0


class Lease:
    """An environment's part in a machine."""

    def __init__(self, jvm: Jvm) -> None:
        self.jvm = jvm
        self._given_back = False

    def give_back(self) -> None:
        """Say that the environment needs the machine no more; twice is fine."""
        with _pool.lock:
            given_back, self._given_back = self._given_back, True
        if not given_back:
            _pool.leave(self.jvm)


class _Pool:
    """The machines, by their options."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._jvms: dict[JvmOptions, list[Jvm]] = {}

    def enter(self, options: JvmOptions, most: int) -> Lease:
        with self.lock:
            jvms = self._jvms.setdefault(options, [])
            jvms[:] = [jvm for jvm in jvms if jvm.alive]
            least = min(jvms, key=lambda jvm: jvm.environments, default=None)
            if least is None or (least.environments >= ENVIRONMENTS_PER_JVM and len(jvms) < most):
                least = Jvm(*options)
                jvms.append(least)
            least.environments += 1
            return Lease(least)

    def leave(self, jvm: Jvm) -> None:
        with self.lock:
            jvm.environments -= 1
            if jvm.environments == 0 and jvm.alive:
                timer = threading.Timer(IDLE_SECONDS, self._end_if_idle, [jvm])
                timer.daemon = True
                timer.start()

    def _end_if_idle(self, jvm: Jvm) -> None:
        with self.lock:
            if jvm.environments == 0:
                jvm.kill()

    def end_all(self) -> None:
        with self.lock:
            for jvms in self._jvms.values():
                for jvm in jvms:
                    jvm.kill()
            self._jvms.clear()

    def forget(self) -> None:
        """In the child of a fork."""
        self.lock = threading.RLock()
        for jvms in self._jvms.values():
            for jvm in jvms:
                jvm.disown()
        self._jvms.clear()


def lease(options: JvmOptions, most: int) -> Lease:
    """A machine for an environment: a new one if there is none, or if all are full and there are fewer than `most`.

    Raises MissingExtra and EnvError.
    """
    return _pool.enter(options, most)


def shut_down() -> None:
    """End every machine of this process at once. Episodes that still run in one end as `env_error`."""
    _pool.end_all()


_pool = _Pool()
atexit.register(_pool.end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)
