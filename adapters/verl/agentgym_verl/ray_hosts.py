"""Environments on the nodes of a Ray cluster.

A host is a Ray actor with worker processes on its node: an environment that crashes or hangs ends one process and not
the actor. The calls to a host are batched into frames, as in the pipe of a worker process: a call of Ray costs as much
as a hundred steps of TextCraft, and a frame has all calls that are waiting.

All processes belong to one user and one program, and Ray itself uses pickle between them, so pickle is safe here.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import pickle
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from agentgym_envs.core import describe
from agentgym_envs.errors import EnvError, SessionLost, UsageError
from agentgym_envs.hosting.by_reference import PicklesByReference
from agentgym_envs.hosting.connection import Connection, Done, PendingCall, RemoteSession, check_seconds, deliver
from agentgym_envs.hosting.frames import GRACE_SECONDS, NumberedCall, NumberedReply
from agentgym_envs.hosting.json_forms import error_from_json, error_to_json
from agentgym_envs.hosting.worker import WorkerPool
from agentgym_envs.registration import entry_point_of, register
from agentgym_envs.vector.runner import RoutedCall, submit

_log = logging.getLogger(__name__)
_OPEN_SECONDS = 300.0
"""The timeout for making one environment; after it, the worker process is ended."""
_MIN_CPUS = 0.001
"""The CPUs of an actor that reserves none: with 0, Ray would ignore its placement."""
_MAX_FRAMES = 2
"""The max frames in flight to a host: one that waits there for replies, and one with new calls."""


class EnvHost:
    """The actor: owns worker processes on its node. Its methods run in threads."""

    def __init__(self, workers: int) -> None:
        """`workers` is the max number of processes, which are started when needed."""
        self._pool = WorkerPool(workers)
        self._sessions: dict[str, RemoteSession] = {}
        self._replies: list[NumberedReply] = []
        self._changed = threading.Condition()
        self._frames = 0

    def node(self) -> str:
        """The id of the node; the reply means that the host is ready."""
        return str(ray.get_runtime_context().get_node_id())

    def exchange(self, frame: bytes) -> bytes:
        """Start the calls of a frame, and return the available replies, to these calls or to earlier ones.

        Waits for a reply, but only until the next frame arrives, so at most one frame waits here.
        """
        self._start(pickle.loads(frame))
        with self._changed:
            self._frames += 1
            number = self._frames
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._replies or number != self._frames)
            replies, self._replies = self._replies, []
        return pickle.dumps(replies, pickle.HIGHEST_PROTOCOL)

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def _start(self, calls: Sequence[NumberedCall]) -> None:
        together: list[RoutedCall] = []
        for number, session, method, arguments in calls:
            opened = self._sessions.get(session)
            if method == "open":
                threading.Thread(target=self._open, args=(number, session, arguments), daemon=True).start()
            elif opened is None:
                self._reply(number, session, SessionLost("this host no longer has this session"))
            elif method in _ENDS:
                self._sessions.pop(session, None)  # another thread may remove it at the same time
                _ENDS[method](opened)
                self._reply(number, session, None)
            else:
                done = partial(self._reply, number, session)
                together.append((opened.connection, PendingCall(opened.session, method, arguments, done)))
        submit(together)

    def _open(self, number: int, session: str, arguments: Mapping[str, Any]) -> None:
        try:
            env_id, entry_point = arguments["env_id"], arguments["entry_point"]
            if entry_point is not None:
                register(env_id, entry_point)  # the caller's own id, whose module is not imported here
            opened = self._pool.open(env_id, _unpickled(env_id, arguments["options"]), _OPEN_SECONDS)
            self._sessions[session] = opened
            self._reply(number, session, opened.description)
        except Exception as error:
            self._reply(number, session, error)

    def _reply(self, number: int, session: str, result: Any) -> None:
        failed = isinstance(result, BaseException)
        if isinstance(result, SessionLost):
            self._sessions.pop(session, None)
        reply = (number, None, error_to_json(result)) if failed else (number, result, None)
        with self._changed:
            self._replies.append(reply)
            self._changed.notify_all()


class RayConnection(Connection):
    """The connection to one host. Calls may come from any thread; one thread of its own talks to Ray.

    If the host or its node dies, all of its sessions are lost at once, and the host is not called again.
    """

    def __init__(self, actor: Any, changed: threading.Condition) -> None:
        """`actor` is the handle of an `EnvHost`; `changed` is notified when it is ready, and when it is lost."""
        self._actor, self._changed = actor, changed
        self._inbox: queue.SimpleQueue[Sequence[PendingCall] | Future[Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self.sessions: set[str] = set()
        self.node: str | None = None
        """The id of its node; None until it is ready."""
        self.lost: str | None = None
        """The reason why it cannot be called any more."""
        self.hopeless = False
        """True if a replacement would fail for the same reason, such as a missing package."""
        threading.Thread(target=self._work, daemon=True, name="agentgym-ray").start()
        actor.node.remote().future().add_done_callback(self._inbox.put)  # Ray's own thread must not wait for locks

    @property
    def ready(self) -> bool:
        """True if it can be called."""
        return self.node is not None and self.lost is None

    def open(self, session: str, arguments: Mapping[str, Any]) -> Any:
        """Make an environment on the host; return its description. Raises the errors of making it, and EnvError."""
        try:
            return self.submit_and_wait(session, "open", arguments, _OPEN_SECONDS + 2 * GRACE_SECONDS)
        except queue.Empty:
            self.abandon(session)
            raise EnvError(f"a host did not make {arguments['env_id']} within {_OPEN_SECONDS:g} s") from None
        except BaseException:
            self.sessions.discard(session)
            raise

    def submit(self, calls: Sequence[PendingCall]) -> None:
        """Send calls to the host; returns at once."""
        with self._lock:
            if self.lost is None:
                self._inbox.put(calls)
                return
        for call in calls:
            self._deliver(call.session, call.done, self._gone())

    def close_session(self, session: str) -> None:
        """Close a session; does not raise."""
        self._leave(session, "close")

    def abandon(self, session: str) -> None:
        """End the worker process of a session, which is the only way to stop a hanging call."""
        self._leave(session, "abandon")

    def begin_close(self) -> Any:
        """Ask the host to close; return a reference for `ray.wait`, or None if there is nothing to wait for."""
        with contextlib.suppress(Exception):  # Ray may be shut down
            if self.ready:
                return self._actor.close.remote()
        return None

    def end(self, why: str) -> None:
        """Kill the actor."""
        self._lose(why)
        with contextlib.suppress(Exception):
            ray.kill(self._actor)

    def _leave(self, session: str, method: str) -> None:
        if session in self.sessions:
            self.sessions.discard(session)
            self.submit([PendingCall(session, method, {}, lambda _: None)])

    def _work(self) -> None:
        """Exchange frames with the host until it is lost."""
        waiting: dict[int, tuple[str, Done]] = {}
        try:
            self._await_start()
            self._exchange(waiting)
        except Exception as error:
            what = "a host could not be started" if self.node is None else f"the host on node {self.node} was lost"
            self.hopeless = self.node is None and _is_own_failure(error)
            why = f"{what}: {_why(error)}"
            if self.lost is None:
                _log.warning("%s; it held %d environments", why, len(self.sessions))
            self.end(why)
        for session, done in waiting.values():
            self._deliver(session, done, self._gone())
        while not self._inbox.empty():
            event = self._inbox.get()
            for call in () if isinstance(event, Future) else event:
                self._deliver(call.session, call.done, self._gone())

    def _await_start(self) -> None:
        """Wait for the first event: the reply of the actor, or an empty list if the host was ended."""
        event = self._inbox.get()
        if isinstance(event, Future):
            with self._changed:
                self.node = event.result()
                self._changed.notify_all()

    def _exchange(self, waiting: dict[int, tuple[str, Done]]) -> None:
        numbers, outbox, in_flight = itertools.count(), list[NumberedCall](), 0
        while self.lost is None:
            for event in self._events():
                if isinstance(event, Future):
                    in_flight -= 1
                    self._settle(waiting, pickle.loads(event.result()))
                    continue
                for session, method, arguments, done in event:
                    number = next(numbers)
                    waiting[number] = session, done
                    outbox.append((number, session, method, arguments))
            if in_flight < _MAX_FRAMES and (outbox or (waiting and not in_flight)):
                self._send(outbox)
                outbox, in_flight = [], in_flight + 1

    def _events(self) -> Iterator[Sequence[PendingCall] | Future[Any]]:
        """Wait for one event, and yield it with all others that are available."""
        yield self._inbox.get()
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._inbox.get_nowait()

    def _send(self, calls: list[NumberedCall]) -> None:
        frame = pickle.dumps(calls, pickle.HIGHEST_PROTOCOL)
        self._actor.exchange.remote(frame).future().add_done_callback(self._inbox.put)

    def _settle(self, waiting: dict[int, tuple[str, Done]], replies: Sequence[NumberedReply]) -> None:
        for number, value, error in replies:
            session, done = waiting.pop(number)
            self._deliver(session, done, value if error is None else error_from_json(error))

    def _deliver(self, session: str, done: Done, reply: Any) -> None:
        if isinstance(reply, SessionLost):
            self.sessions.discard(session)
        deliver(done, reply)

    def _gone(self) -> SessionLost:
        return SessionLost(self.lost)

    def _lose(self, why: str) -> None:
        with self._lock:
            if self.lost is not None:
                return
            self.lost = why
            self._inbox.put([])  # wakes the thread
        with self._changed:
            self._changed.notify_all()


class RayPool(PicklesByReference):
    """Hosts on a Ray cluster; a new session goes to the host with the fewest sessions.

    A lost host is replaced if the cluster has room. The hosts end with the process that made the pool.
    """

    def __init__(
        self,
        hosts: int = 1,
        workers: int = 4,
        placement: str = "spread",
        *,
        cpus: float | None = None,
        connect_timeout: float = 60.0,
    ) -> None:
        """Start nothing; the first session starts the hosts. Raises UsageError for invalid arguments.

        Args:
            hosts: the number of actors, at least 1. The pool works with fewer while the cluster has no room for all.
            workers: the max number of worker processes per host.
            placement: "spread" over all nodes, "near" the caller's node if it has room, or a custom resource;
                each host takes 1 of it.
            cpus: the CPUs that Ray reserves for each host; by default one per worker.
            connect_timeout: seconds to wait for a host if none is ready, for example while a node joins the cluster.
        """
        for name, number in (("hosts", hosts), ("workers", workers)):
            if type(number) is not int or number < 1:
                raise UsageError(f"{name} must be an integer of at least 1, got {number!r}")
        check_seconds("connect_timeout", connect_timeout)
        self._terms = _Terms(hosts, workers, placement, workers if cpus is None else cpus, connect_timeout)
        self._names = itertools.count()
        self._hosts: list[RayConnection] = []
        self._changed = threading.Condition()
        self._closed = False
        super().__init__(**self._terms._asdict())
        self._end = weakref.finalize(self, _end_all, self._hosts)  # also when it is garbage collected, and at exit

    @property
    def hosts(self) -> list[RayConnection]:
        """The hosts that can be called."""
        return [host for host in self._hosts if host.ready]

    def open(self, env_id: str, options: Mapping[str, Any]) -> RemoteSession:
        """Make an environment on a host; waits up to `connect_timeout` for a host if none is ready."""
        arguments = {"env_id": env_id, "entry_point": entry_point_of(env_id), "options": _pickled(env_id, options)}
        deadline, session = time.monotonic() + self._terms.connect_timeout, f"s{next(self._names)}"
        lost = SessionLost("")
        for _ in range(self._terms.hosts + 1):
            host = self._pick(session, deadline)
            try:
                return RemoteSession(host, session, host.open(session, arguments))
            except SessionLost as error:  # its host or worker ended in the meantime
                lost = error
        raise lost

    def close(self) -> None:
        """End every host and its processes."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._end()

    def _pick(self, session: str, deadline: float) -> RayConnection:
        with self._changed:
            while not (ready := self._fill()):
                starting = list(self._hosts)
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise EnvError(self._terms.no_room())
                if hopeless := [host for host in starting if host.hopeless]:
                    raise EnvError(hopeless[0].lost)
            host = min(ready, key=lambda host: len(host.sessions))
            host.sessions.add(session)
            return host

    def _fill(self) -> list[RayConnection]:
        """Start missing hosts; return the hosts that can be called. Some may wait for room while others work."""
        if self._closed:
            raise EnvError("the pool of hosts is closed")
        self._hosts[:] = [host for host in self._hosts if host.lost is None]
        while len(self._hosts) < self._terms.hosts:
            self._hosts.append(RayConnection(self._terms.start(), self._changed))
        return self.hosts


class _Terms(NamedTuple):
    """The arguments of a `RayPool`, and the resources that it asks Ray for."""

    hosts: int
    workers: int
    placement: str
    cpus: float
    connect_timeout: float

    @property
    def resource(self) -> dict[str, float]:
        """The custom resource that a host takes."""
        return {} if self.placement in ("spread", "near") else {self.placement: 1}

    def start(self) -> Any:
        """Start an actor. It can run more calls than frames, so that `close` is never blocked."""
        if not ray.is_initialized():
            raise UsageError("environments on Ray need a cluster: call ray.init() first")
        near = self.placement == "near"
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        options = {"num_cpus": self.cpus or _MIN_CPUS, "resources": self.resource, "max_concurrency": _MAX_FRAMES + 2}
        return (
            ray.remote(EnvHost).options(scheduling_strategy=here if near else "SPREAD", **options).remote(self.workers)
        )

    def no_room(self) -> str:
        """The error message for missing resources: those of a host, and those of the cluster."""
        needed = {"CPU": self.cpus, **self.resource}
        per_host = ", ".join(f"{number:g} {name}" for name, number in needed.items())
        total, free = ray.cluster_resources(), ray.available_resources()
        there = ", ".join(f"{total.get(name, 0):g} {name} ({free.get(name, 0):g} free)" for name in needed)
        nodes = sum(node["Alive"] for node in ray.nodes())
        return (
            f"no host for environments was ready within {self.connect_timeout:g} s: each needs {per_host} on one node; "
            f"the cluster has {nodes} nodes with {there} in total"
        )


_ENDS: dict[str, Callable[[RemoteSession], None]] = {
    "close": lambda opened: opened.connection.close_session(opened.session),
    "abandon": lambda opened: opened.connection.abandon(opened.session),
}


def _end_all(hosts: list[RayConnection]) -> None:
    refs = [ref for host in hosts if (ref := host.begin_close())]
    if refs and ray.is_initialized():  # else Ray has ended them, and waiting would start a cluster
        with contextlib.suppress(Exception):
            ray.wait(refs, num_returns=len(refs), timeout=2 * GRACE_SECONDS)
    for host in hosts:
        host.end("the pool of hosts is closed")
    hosts.clear()


def _pickled(env_id: str, options: Mapping[str, Any]) -> bytes:
    try:
        return pickle.dumps(dict(options), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise UsageError(f"{env_id} on Ray needs options that can be pickled, got {options!r:.200}") from error


def _unpickled(env_id: str, options: bytes) -> Mapping[str, Any]:
    try:
        return dict(pickle.loads(options))
    except Exception as error:
        raise UsageError(f"a node of the Ray cluster cannot read the options of {env_id}: {describe(error)}") from error


def _is_own_failure(error: Exception) -> bool:
    """True if the actor itself failed, and not its node."""
    return not isinstance(error, RayActorError) or bool(error.actor_init_failed)


def _why(error: BaseException) -> str:
    """The first and the last line of Ray's message, without the traceback or advice between them."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {' ... '.join(dict.fromkeys((lines[0], lines[-1])))}"
