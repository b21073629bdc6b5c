"""Worker processes that host environments, and the pool that starts and replaces them.

A worker runs its own program (`worker_main.py`). It is not forked, so threads and CUDA in the caller are safe, and it
does not import the caller's `__main__`. Frames go through its stdin and stdout. Both sides run the same code as the
same user, so pickles are safe here; they never cross a network.
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
from agentgym_envs.hosting.frames import GRACE_SECONDS, NumberedCall, receive, send
from agentgym_envs.hosting.json_forms import error_from_json
from agentgym_envs.registration import entry_point_of

_log = logging.getLogger(__name__)


class WorkerProcess(Connection):
    """A process that hosts environments. It ends when this object is closed or this process dies."""

    def __init__(self) -> None:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command = [sys.executable, "-m", "agentgym_envs.hosting.worker_main"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
        self._numbers = itertools.count()
        self._pending: dict[int, Done] = {}
        self._lock = threading.Lock()
        self._outbox: queue.SimpleQueue[list[NumberedCall] | None] = queue.SimpleQueue()
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
        """True if the process still takes calls."""
        return not (self._dead or self._killed)

    def open(self, session: str, env_id: str, options: Mapping[str, Any], seconds: float | None = None) -> Any:
        """Make an environment in the process and return its description. Raises what making it locally raises.

        If the environment is not ready after `seconds`, end the process and raise EnvError.
        """
        self.sessions.add(session)
        try:
            _check_pickles(options)
            arguments = {"env_id": env_id, "options": options, "entry_point": _importable(env_id)}
            return self.submit_and_wait(session, "open", arguments, seconds)
        except queue.Empty:
            self.abandon(session)
            raise EnvError(f"{env_id} was not ready within {seconds:g} s") from None
        except BaseException:
            self.sessions.discard(session)
            raise

    def submit(self, calls: Sequence[PendingCall]) -> None:
        """Send the calls in one frame; see `Connection.submit`."""
        frame: list[NumberedCall] = []
        with self._lock:
            lost = self._dead
            for session, method, arguments, done in () if lost else calls:
                number = next(self._numbers)
                self._pending[number] = done
                frame.append((number, session, method, arguments))
        if lost:
            for call in calls:
                deliver(call.done, SessionLost("the worker process is gone"))
        else:
            self._outbox.put(frame)

    def close_session(self, session: str) -> None:
        """Close a session; see `Connection.close_session`."""
        self._closing.add(session)
        self.submit([PendingCall(session, "close", {}, lambda _: self._forget(session))])

    @property
    def load(self) -> int:
        """The number of sessions. A session that is being closed counts twice, since one of its calls may hang."""
        return len(self.sessions) + len(self._closing)

    def _forget(self, session: str) -> None:
        self.sessions.discard(session)
        self._closing.discard(session)

    def abandon(self, session: str) -> None:
        """End the process, the only way to stop a call that hangs. Its other sessions are lost too."""
        self.sessions.discard(session)
        self.kill()

    def kill(self) -> None:
        """End the process now; every pending call raises SessionLost."""
        self._killed = True
        self._process.kill()

    def begin_close(self) -> None:
        """Ask the process to end when it has closed its environments."""
        self._outbox.put(None)

    def close(self) -> None:
        """End the process after it has closed its environments, or by force after five seconds."""
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
            pass  # the reading thread notices that the process is gone
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
                        done = self._pending.pop(number)
                    deliver(done, value if error is None else error_from_json(error))
                    del done, value  # or this thread would keep the objects of the last call alive
        except Exception:
            _log.exception("a reply of a worker process could not be read")
            self._process.kill()
        self._end()
        pipe.close()

    def _end(self) -> None:
        self._process.wait()
        with self._lock:
            self._dead = True
            pending, self._pending = self._pending, {}
        self._outbox.put(None)
        code = self._process.returncode
        if code and self.sessions:
            _log.warning("a worker process ended (exit status %d) with %d environments", code, len(self.sessions))
        for done in pending.values():
            deliver(done, SessionLost(f"the worker process ended (exit status {code})"))

    def _after_fork(self) -> None:
        """In a forked child: the process and the threads of its pipes belong to the parent."""
        self._lock, self._dead, self._pending = threading.Lock(), True, {}


class WorkerPool(PicklesByReference):
    """A pool of workers. A new session goes to the worker with the fewest; opening replaces dead workers."""

    def __init__(self, size: int) -> None:
        """`size` is the most processes; they are started when needed."""
        if size < 1:
            raise UsageError(f"a pool of worker processes needs at least 1, got {size}")
        self._size, self._names = size, itertools.count()
        self._workers: list[WorkerProcess] = []
        self._lock = threading.Lock()
        self._closed = False
        super().__init__(size=size)
        _pools.add(self)
        self._end = weakref.finalize(self, _end_all, self._workers)  # also when garbage-collected, and at exit

    def open(self, env_id: str, options: Mapping[str, Any], seconds: float | None = None) -> RemoteSession:
        """Make an environment; see `EnvProvider.open`. If it is not ready after `seconds`, end its worker."""
        session = f"s{next(self._names)}"
        worker = self._pick(session)
        try:
            return RemoteSession(worker, session, worker.open(session, env_id, options, seconds))
        except SessionLost:  # another session may have ended the process meanwhile
            worker = self._pick(session)
            return RemoteSession(worker, session, worker.open(session, env_id, options, seconds))

    @property
    def workers(self) -> list[WorkerProcess]:
        """The live workers."""
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
    """The entry point of an id. Raises UsageError if another process cannot import it."""
    entry_point = entry_point_of(env_id)
    if entry_point is not None and entry_point.startswith("__main__:"):
        raise UsageError(f"{env_id} is a class of the main program, which worker processes lack: put it in a module")
    return entry_point


def _check_pickles(options: Mapping[str, Any]) -> None:
    """Raise UsageError for options without a pickle: sending them would break the pipe to the process."""
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
