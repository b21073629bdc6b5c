"""Worker processes that host environments, and the pool that keeps them alive.

A worker is a program of its own (`worker_main.py`): no fork, so it is safe beside threads and CUDA, and no import of
the caller's `__main__`. Frames go through its stdin and stdout. The two sides are one program and one user, so a
pickle is safe here; nothing of it ever crosses a network.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.errors import EnvError, SessionLost, UsageError
from agentgym_envs.hosting.by_reference import PicklesByReference
from agentgym_envs.hosting.connection import Connection, Done, PendingCall, RemoteSession, deliver
from agentgym_envs.hosting.frames import GRACE_SECONDS, Call, receive, send
from agentgym_envs.hosting.session_host import error_from_json
from agentgym_envs.registration import entry_point_of

_log = logging.getLogger(__name__)


class WorkerProcess(Connection):
    """A process that hosts environments. It ends when this object is closed, or when this process dies."""

    def __init__(self) -> None:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command = [sys.executable, "-m", "agentgym_envs.hosting.worker_main"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
        self._numbers = itertools.count()
        self._waiting: dict[int, Done] = {}
        self._lock = threading.Lock()
        self._outbox: queue.SimpleQueue[list[Call] | None] = queue.SimpleQueue()
        self._dead = self._killed = False
        self.sessions: set[str] = set()
        self._closing: set[str] = set()
        _processes.add(self)
        for target in (self._write, self._read):
            threading.Thread(target=target, daemon=True).start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not (self._dead or self._killed)

    def open(self, session: str, env_id: str, options: Mapping[str, Any], seconds: float | None = None) -> Any:
        """Make an environment in the process; returns its description. Raises what making it here would raise.

        One that is not ready after `seconds` ends the process, as a step that hangs does, and is an EnvError.
        """
        self.sessions.add(session)
        try:
            _check_pickles(options)
            known_as = {"env_id": env_id, "options": options, "entry_point": _importable(env_id)}
            return self.ask(session, "open", known_as, seconds)
        except queue.Empty:
            self.abandon(session)
            raise EnvError(f"{env_id} was not ready within {seconds:g} s") from None
        except BaseException:
            self.sessions.discard(session)
            raise

    def post(self, calls: Sequence[PendingCall]) -> None:
        """See `Connection.post`."""
        frame: list[Call] = []
        with self._lock:
            lost = self._dead
            for session, method, arguments, done in () if lost else calls:
                number = next(self._numbers)
                self._waiting[number] = done
                frame.append((number, session, method, arguments))
        if lost:
            for call in calls:
                deliver(call.done, SessionLost("the worker process is gone"))
        else:
            self._outbox.put(frame)

    def close_session(self, session: str) -> None:
        """See `Connection.close_session`."""
        self._closing.add(session)
        self.post([PendingCall(session, "close", {}, lambda _: self._forget(session))])

    @property
    def load(self) -> int:
        """How many sessions there are. One that is being closed counts twice: a call of it may hang."""
        return len(self.sessions) + len(self._closing)

    def _forget(self, session: str) -> None:
        self.sessions.discard(session)
        self._closing.discard(session)

    def abandon(self, session: str) -> None:
        """End the process: nothing else frees a call that hangs. Its other sessions are lost with it."""
        self.sessions.discard(session)
        self.kill()

    def kill(self) -> None:
        """End the process now; every call under way ends in SessionLost."""
        self._killed = True
        self._process.kill()

    def begin_close(self) -> None:
        """Ask the process to end when it has closed its environments."""
        self._outbox.put(None)

    def close(self) -> None:
        """End the process in an orderly way; by force if it takes longer than five seconds."""
        self.begin_close()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _write(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            while (frame := self._outbox.get()) is not None:
                send(pipe, frame)
        except (OSError, ValueError):
            pass  # the reader notices that the process is gone
        except Exception:
            _log.exception("a call could not be sent to a worker process")
            self._process.kill()
        with contextlib.suppress(OSError):
            pipe.close()

    def _read(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        try:
            while (replies := receive(pipe)) is not None:
                for number, value, error in replies:
                    with self._lock:
                        done = self._waiting.pop(number)
                    deliver(done, value if error is None else error_from_json(error))
                    del done, value  # or this thread would keep alive what it last worked for
        except Exception:
            _log.exception("a reply of a worker process could not be taken")
            self._process.kill()
        self._end()
        pipe.close()

    def _end(self) -> None:
        self._process.wait()
        with self._lock:
            self._dead = True
            waiting, self._waiting = self._waiting, {}
        self._outbox.put(None)
        code = self._process.returncode
        if code and self.sessions:
            _log.warning("a worker process ended (exit status %d) with %d environments", code, len(self.sessions))
        for done in waiting.values():
            deliver(done, SessionLost(f"the worker process ended (exit status {code})"))

    def _after_fork(self) -> None:
        """In the child: the process is the parent's, and the threads that speak with it are not here."""
        self._lock, self._dead, self._waiting = threading.Lock(), True, {}


class WorkerPool(PicklesByReference):
    """Workers, each session on the one with the fewest; a worker that died is replaced at the next opening."""

    def __init__(self, size: int) -> None:
        """`size` is the most processes there are; they are started when they are needed."""
        if size < 1:
            raise UsageError(f"a pool of worker processes needs at least 1, got {size}")
        self._size, self._names = size, itertools.count()
        self._workers: list[WorkerProcess] = []
        self._lock = threading.Lock()
        self._closed = False
        super().__init__(size=size)
        _pools.add(self)
        self._end = weakref.finalize(self, _end_all, self._workers)  # also if it is forgotten, and at exit

    def open(self, env_id: str, options: Mapping[str, Any], seconds: float | None = None) -> RemoteSession:
        """See `Opener.open`; after `seconds` without success, the worker that hangs is ended."""
        session = f"s{next(self._names)}"
        worker = self._pick(session)
        try:
            return RemoteSession(worker, session, worker.open(session, env_id, options, seconds))
        except SessionLost:  # its process may have ended for another's sake, before anyone could know
            worker = self._pick(session)
            return RemoteSession(worker, session, worker.open(session, env_id, options, seconds))

    @property
    def workers(self) -> list[WorkerProcess]:
        """Those that live."""
        return [worker for worker in self._workers if worker.alive]

    def close(self) -> None:
        """End every worker."""
        with self._lock:
            self._closed = True
        self._end()

    def _pick(self, session: str) -> WorkerProcess:
        with self._lock:
            if self._closed:
                raise EnvError("the pool of worker processes is closed")
            self._workers[:] = self.workers
            idle = next((worker for worker in self._workers if not worker.sessions), None)
            if idle is None and len(self._workers) < self._size:
                idle = WorkerProcess()
                self._workers.append(idle)
            worker = idle or min(self._workers, key=lambda worker: worker.load)
            worker.sessions.add(session)
            return worker


_processes: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()
_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


def _after_fork() -> None:
    for worker in list(_processes):
        worker._after_fork()
    for pool in list(_pools):
        pool._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _importable(env_id: str) -> str | None:
    """The entry point of an id, for another process. Raises UsageError if there is none that it could import."""
    entry_point = entry_point_of(env_id)
    if entry_point is not None and entry_point.startswith("__main__:"):
        raise UsageError(f"{env_id} is a class of the main program, which worker processes lack: put it in a module")
    return entry_point


def _check_pickles(options: Mapping[str, Any]) -> None:
    """Sending what cannot be pickled would cost the process, and with it every session there."""
    try:
        pickle.dumps(options)
    except Exception as error:
        raise UsageError(f"a worker process takes options that can be pickled, got {options!r:.200}") from error


def _end_all(workers: list[WorkerProcess]) -> None:
    for worker in workers:
        worker.begin_close()
    for worker in workers:
        worker.close()
    workers.clear()
