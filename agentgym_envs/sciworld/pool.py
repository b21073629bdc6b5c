"""The Java machines of this process: environments share them, and one that nobody uses ends."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import queue
import threading
import time
from collections import deque
from typing import NamedTuple

from agentgym_envs.sciworld.jvm import Jvm
from agentgym_envs.sciworld.simulation import Simulation

ENVIRONMENTS_PER_JVM = 8
"""From this many on a further machine is started, if there may be one."""
FULL_JVM = 24
"""From this many on one is started unless the number was given: with the default heap 32 ran, and 64 did not."""
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
        self.over = False
        self._world: Simulation | None = None

    def world(self) -> Simulation:
        """A world in it, until the part is given back: one that another environment left, or a new one.

        Raises EnvError.
        The simulator takes longer to make an empty world than to load a task into it.
        """
        if self._world is None:
            try:
                self._world = _spare.get(self.jvm, []).pop()
            except IndexError:
                self._world = Simulation(self.jvm)
        return self._world

    def end(self) -> None:
        """What giving back means, once the pool gets to it."""
        self.over = True
        self.jvm.environments -= 1
        if self._world is not None and self.jvm.alive:
            _spare.setdefault(self.jvm, []).append(self._world)

    def give_back(self) -> None:
        """Say that the environment needs the machine no more; twice is fine.

        Takes no lock: the garbage collector calls it, in the middle of anything.
        """
        _pool.returned.append(self)
        _pool.wakes.put(None)


class _Pool:
    """The machines, by their options. A thread, the keeper, ends those that nobody uses; it lives while there are any.

    What has a machine started holds the lock: whoever else needs one meanwhile is likely to share it.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """Begin anew. In the child of a fork, too: the locks may be held by threads that do not exist there."""
        self.returned: deque[Lease] = deque()
        self.wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._jvms: dict[JvmOptions, list[Jvm]] = {}
        self._idle_since: dict[Jvm, float] = {}
        self._keeper: threading.Thread | None = None

    def enter(self, options: JvmOptions, most: int | None) -> Lease:
        with self._lock:
            self._tidy()
            jvms = self._jvms.setdefault(options, [])
            least = min(jvms, key=lambda jvm: jvm.environments, default=None)
            if least is None or least.environments >= _room(len(jvms), most):
                least = Jvm(*options)
                jvms.append(least)
                self._keep()
            least.environments += 1
            self._idle_since.pop(least, None)
            return Lease(least)

    def end_all(self) -> None:
        with self._lock:
            self._end_all()

    def end_at_exit(self) -> None:
        """What starts in a thread that nobody waits for ends by itself, when its pipe breaks."""
        if self._lock.acquire(timeout=1.0):
            self._end_all()

    def _end_all(self) -> None:
        for jvms in self._jvms.values():
            for jvm in jvms:
                jvm.kill("all machines were shut down")
        self._tidy()
        self.wakes.put(None)

    def _tidy(self) -> None:
        """Take back what was returned, and forget machines that ended."""
        while self.returned:
            lease = self.returned.popleft()
            if not lease.over:
                lease.end()
                if lease.jvm.environments == 0:
                    self._idle_since[lease.jvm] = time.monotonic()
        for jvms in self._jvms.values():
            for jvm in [jvm for jvm in jvms if not jvm.alive]:
                jvm.kill()  # to close what is open of it
                jvms.remove(jvm)
                _spare.pop(jvm, None)
        self._idle_since = {jvm: since for jvm, since in self._idle_since.items() if jvm.alive}

    def _keep(self) -> None:
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._end_idle, name="sciworld machines", daemon=True)
            self._keeper.start()

    def _end_idle(self) -> None:
        wait: float | None = None
        while True:
            with contextlib.suppress(queue.Empty):
                self.wakes.get(timeout=wait)
            with self._lock:
                self._tidy()
                now = time.monotonic()
                for jvm, since in list(self._idle_since.items()):
                    if now - since >= IDLE_SECONDS:
                        jvm.kill("nobody used it")
                self._tidy()
                if not any(self._jvms.values()):
                    self._keeper = None
                    return
                soonest = min(self._idle_since.values(), default=None)
                wait = None if soonest is None else max(0.0, soonest + IDLE_SECONDS - now)

    def leave_to_parent(self) -> None:
        """In the child of a fork, which has none of the parent's machines."""
        _spare.clear()
        for jvms in self._jvms.values():
            for jvm in jvms:
                jvm.leave_to_parent()
        self._forget()


def _room(machines: int, most: int | None) -> float:
    """How many environments each machine takes before another is started."""
    if machines < (most or os.cpu_count() or 1):
        return ENVIRONMENTS_PER_JVM
    return FULL_JVM if most is None else math.inf


def lease(options: JvmOptions, most: int | None) -> Lease:
    """A machine for an environment: a new one if there is none, or if all are full and there are fewer than `most`.

    With `most=None` there is one for each core, and more if each of them has as many environments as its heap holds.

    Raises MissingExtra and EnvError.
    """
    return _pool.enter(options, most)


def shut_down() -> None:
    """End every machine of this process at once. Episodes that still run in one end as `env_error`."""
    _pool.end_all()


_spare: dict[Jvm, list[Simulation]] = {}
"""Worlds that nobody uses, by their machines."""
_pool = _Pool()
atexit.register(_pool.end_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.leave_to_parent)
