"""The JVMs of this process: environments share them, and idle ones are ended."""

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
"""With this many environments in each JVM, another JVM is started, up to the limit."""
FULL_JVM = 24
"""With this many environments in each JVM, another JVM is started if no limit is given. With the default heap, 32
environments ran and 64 did not."""
SPARE_WORLDS = 4
"""The number of unused worlds that a JVM keeps. Each of them takes about ten of the 600 MB of the default heap."""
IDLE_SECONDS = 10.0
"""An idle JVM is kept for this long, because starting one takes a second or two."""


class JvmOptions(NamedTuple):
    """The options of a JVM, as documented by `SciWorldEnv`."""

    java_path: str | None = None
    heap_mb: int = 600
    call_seconds: float = 60.0


class Lease:
    """An environment's share of a JVM."""

    def __init__(self, jvm: Jvm) -> None:
        self.jvm = jvm
        self.over = False
        self._world: Simulation | None = None

    def world(self) -> Simulation:
        """Return a world in the JVM for the time of the lease.

        Worlds of ended leases are reused, because creating a world takes longer than loading a task. Raises EnvError.
        """
        if self._world is None:
            try:
                self._world = _spare.get(self.jvm, []).pop()
            except IndexError:
                self._world = Simulation(self.jvm)
        return self._world

    def end(self) -> None:
        """End the lease; called by the pool."""
        self.over = True
        self.jvm.environments -= 1
        if self._world is not None and self.jvm.alive:
            _keep_or_discard(self._world)
        self._world = None

    def give_back(self) -> None:
        """Return the lease to the pool; calling this twice is allowed.

        It takes no lock, because the garbage collector may call it at any time.
        """
        _pool.returned.append(self)
        _pool.wakes.put(None)


class _Pool:
    """JVMs by their options. While there are any, a reaper thread ends the idle ones.

    The lock is held while a JVM starts, because other callers are likely to share it.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        """Reset the state, also in a forked child, where the threads that held the locks do not exist."""
        self.returned: deque[Lease] = deque()
        self.wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._jvms: dict[JvmOptions, list[Jvm]] = {}
        self._idle_since: dict[Jvm, float] = {}
        self._reaper: threading.Thread | None = None

    def enter(self, options: JvmOptions, maximum: int | None) -> Lease:
        with self._lock:
            self._tidy()
            jvms = self._jvms.setdefault(options, [])
            least = min(jvms, key=lambda jvm: jvm.environments, default=None)
            if least is None or least.environments >= _capacity(len(jvms), maximum):
                least = Jvm(*options)
                jvms.append(least)
                self._start_reaper()
            least.environments += 1
            self._idle_since.pop(least, None)
            return Lease(least)

    def end_all(self) -> None:
        with self._lock:
            self._end_all()

    def end_at_exit(self) -> None:
        """End all JVMs at exit. One that is still starting ends by itself when its pipe closes."""
        if self._lock.acquire(timeout=1.0):
            self._end_all()

    def _end_all(self) -> None:
        for jvms in self._jvms.values():
            for jvm in jvms:
                jvm.kill("all JVMs were shut down")
        self._tidy()
        self.wakes.put(None)

    def _tidy(self) -> None:
        """Process returned leases, and forget JVMs that have ended."""
        while self.returned:
            lease = self.returned.popleft()
            if not lease.over:
                lease.end()
                if lease.jvm.environments == 0:
                    self._idle_since[lease.jvm] = time.monotonic()
        for jvms in self._jvms.values():
            for jvm in [jvm for jvm in jvms if not jvm.alive]:
                jvm.kill()  # closes its files and connections
                jvms.remove(jvm)
                _spare.pop(jvm, None)
        self._idle_since = {jvm: since for jvm, since in self._idle_since.items() if jvm.alive}

    def _start_reaper(self) -> None:
        if self._reaper is None:
            self._reaper = threading.Thread(target=self._end_idle, name="sciworld JVM reaper", daemon=True)
            self._reaper.start()

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
                        jvm.kill("it was idle")
                self._tidy()
                if not any(self._jvms.values()):
                    self._reaper = None
                    return
                soonest = min(self._idle_since.values(), default=None)
                wait = None if soonest is None else max(0.0, soonest + IDLE_SECONDS - now)

    def leave_to_parent(self) -> None:
        """Give up the parent's JVMs in a forked child."""
        _spare.clear()
        for jvms in self._jvms.values():
            for jvm in jvms:
                jvm.leave_to_parent()
        self._reset()


def _capacity(jvms: int, maximum: int | None) -> float:
    """The number of environments in each JVM at which another JVM is started."""
    if jvms < (maximum or os.cpu_count() or 1):
        return ENVIRONMENTS_PER_JVM
    return FULL_JVM if maximum is None else math.inf


def lease(options: JvmOptions, maximum: int | None) -> Lease:
    """Lease a JVM for an environment. A new one is started if all are full and there are fewer than `maximum`.

    With `maximum=None` there is one per core, and more if each of them has `FULL_JVM` environments.

    Raises MissingExtra and EnvError.
    """
    return _pool.enter(options, maximum)


def shut_down() -> None:
    """End every JVM of this process. Episodes that are still running end as `env_error`."""
    _pool.end_all()


_spare: dict[Jvm, list[Simulation]] = {}
"""Unused worlds, by JVM, at most `SPARE_WORLDS` of each."""


def _keep_or_discard(world: Simulation) -> None:
    worlds = _spare.setdefault(world.jvm, [])
    if len(worlds) < SPARE_WORLDS:
        worlds.append(world)
    else:
        world.discard()


_pool = _Pool()
atexit.register(_pool.end_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.leave_to_parent)
