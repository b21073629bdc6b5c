"""Environments on the nodes of a Ray cluster.

A host is a Ray actor that keeps worker processes on its node, so that an environment that crashes or hangs costs one
process and never the actor. What is asked of a host's environments is gathered into frames, as in the pipe of a worker
process: a call of Ray costs as much as a hundred steps of TextCraft, and a frame carries as many of them as there are.

The processes are one user's and of one program, and Ray itself speaks pickle between them, so a pickle is safe here.
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
"""How long making one environment may take; after that, the worker process in which it hangs is ended."""
_HARDLY_ANY = 0.001
"""CPUs. Ray puts an actor that asks for nothing on any node, wherever it ought to be."""
_UNDER_WAY = 2
"""How many frames are under way to a host at a time: one that waits there for replies, and one that brings calls."""


class EnvHost:
    """The actor: worker processes on the node where Ray put it. Its methods run in threads."""

    def __init__(self, workers: int) -> None:
        """`workers` is the most processes there are; they are started when they are needed."""
        self._pool = WorkerPool(workers)
        self._sessions: dict[str, RemoteSession] = {}
        self._replies: list[NumberedReply] = []
        self._changed = threading.Condition()
        self._frames = 0

    def node(self) -> str:
        """The id of the node; the answer says that the host is ready."""
        return str(ray.get_runtime_context().get_node_id())

    def exchange(self, frame: bytes) -> bytes:
        """Take calls, and return the replies that are there by then: of these calls, or of earlier ones.

        Waits for a reply, but no longer than until the next frame comes: one frame is all that waits here.
        """
        self._take(pickle.loads(frame))
        with self._changed:
            self._frames += 1
            mine = self._frames
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._replies or mine != self._frames)
            replies, self._replies = self._replies, []
        return pickle.dumps(replies, pickle.HIGHEST_PROTOCOL)

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def _take(self, calls: Sequence[NumberedCall]) -> None:
        together: list[RoutedCall] = []
        for number, session, method, arguments in calls:
            opened = self._sessions.get(session)
            if method == "open":
                threading.Thread(target=self._open, args=(number, session, arguments), daemon=True).start()
            elif opened is None:
                self._reply(number, session, SessionLost("this host has no such session (any more)"))
            elif method in _ENDS:
                self._sessions.pop(session, None)  # it may be lost at this very moment
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
                register(env_id, entry_point)  # the caller's own, whose module nothing here has imported
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
    """To one host. Calls may come from any thread; a thread of its own speaks with Ray.

    With the host, or its node, every session there is lost at once, and the host is never asked again.
    """

    def __init__(self, actor: Any, changed: threading.Condition) -> None:
        """`actor` is that of an `EnvHost`; `changed` is notified when it is ready, and when it is gone."""
        self._actor, self._changed = actor, changed
        self._inbox: queue.SimpleQueue[Sequence[PendingCall] | Future[Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self.sessions: set[str] = set()
        self.node: str | None = None
        """The id of its node; None until it is ready."""
        self.lost: str | None = None
        """Why it cannot be asked any more."""
        self.hopeless = False
        """Whether another in its place would fail of the same, as where a package is missing."""
        threading.Thread(target=self._work, daemon=True, name="agentgym-ray").start()
        actor.node.remote().future().add_done_callback(self._inbox.put)  # Ray's own thread must not wait for locks

    @property
    def ready(self) -> bool:
        """Whether it can be asked."""
        return self.node is not None and self.lost is None

    def open(self, session: str, arguments: Mapping[str, Any]) -> Any:
        """Make an environment there; returns its description. Raises what making it here would raise, and EnvError."""
        try:
            return self.submit_and_wait(session, "open", arguments, _OPEN_SECONDS + 2 * GRACE_SECONDS)
        except queue.Empty:
            self.abandon(session)
            raise EnvError(f"a host did not make {arguments['env_id']} within {_OPEN_SECONDS:g} s") from None
        except BaseException:
            self.sessions.discard(session)
            raise

    def submit(self, calls: Sequence[PendingCall]) -> None:
        """Queue the calls for the host; see `Connection.submit`."""
        with self._lock:
            if self.lost is None:
                self._inbox.put(calls)
                return
        for call in calls:
            self._hand_over(call.session, call.done, self._gone())

    def close_session(self, session: str) -> None:
        """See `Connection.close_session`."""
        self._leave(session, "close")

    def abandon(self, session: str) -> None:
        """End the worker process of a session: nothing else frees a call that hangs."""
        self._leave(session, "abandon")

    def begin_close(self) -> Any:
        """Ask the host to end; returns what Ray's wait takes, or None if there is nothing to wait for."""
        with contextlib.suppress(Exception):  # Ray may be shut down
            if self.ready:
                return self._actor.close.remote()
        return None

    def end(self, why: str) -> None:
        """End the actor, whatever it does."""
        self._lose(why)
        with contextlib.suppress(Exception):
            ray.kill(self._actor)

    def _leave(self, session: str, method: str) -> None:
        if session in self.sessions:
            self.sessions.discard(session)
            self.submit([PendingCall(session, method, {}, lambda _: None)])

    def _work(self) -> None:
        """Speak with Ray until the host is gone."""
        waiting: dict[int, tuple[str, Done]] = {}
        try:
            self._await_start()
            self._exchange(waiting)
        except Exception as error:
            what = "a host could not be started" if self.node is None else f"the host on node {self.node} is gone"
            self.hopeless = self.node is None and _is_its_own(error)
            why = f"{what}: {_why(error)}"
            if self.lost is None:
                _log.warning("%s; it held %d environments", why, len(self.sessions))
            self.end(why)
        for session, done in waiting.values():
            self._hand_over(session, done, self._gone())
        while not self._inbox.empty():
            event = self._inbox.get()
            for call in () if isinstance(event, Future) else event:
                self._hand_over(call.session, call.done, self._gone())

    def _await_start(self) -> None:
        """The first that comes: the answer of the actor, or word that the host is given up."""
        event = self._inbox.get()
        if isinstance(event, Future):
            with self._changed:
                self.node = event.result()
                self._changed.notify_all()

    def _exchange(self, waiting: dict[int, tuple[str, Done]]) -> None:
        numbers, outbox, under_way = itertools.count(), list[NumberedCall](), 0
        while self.lost is None:
            for event in self._events():
                if isinstance(event, Future):
                    under_way -= 1
                    self._settle(waiting, pickle.loads(event.result()))
                    continue
                for session, method, arguments, done in event:
                    number = next(numbers)
                    waiting[number] = session, done
                    outbox.append((number, session, method, arguments))
            if under_way < _UNDER_WAY and (outbox or (waiting and not under_way)):
                self._send(outbox)
                outbox, under_way = [], under_way + 1

    def _events(self) -> Iterator[Sequence[PendingCall] | Future[Any]]:
        """What has come: at least one, and all that is there."""
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
            self._hand_over(session, done, value if error is None else error_from_json(error))

    def _hand_over(self, session: str, done: Done, reply: Any) -> None:
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
            self._inbox.put([])  # so that the thread sees it
        with self._changed:
            self._changed.notify_all()


class RayPool(PicklesByReference):
    """Hosts on a Ray cluster, each session on the one with the fewest; one that is gone is replaced, if there is room.

    The hosts belong to the process that made the pool, and end with it.
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
        """Nothing is started before the first session. Raises UsageError for what cannot be.

        Args:
            hosts: how many actors, at least 1. Fewer do for as long as the cluster has no room for all.
            workers: the most worker processes of each.
            placement: "spread" over all nodes, "near" the caller's if there is room, or a custom resource, of which
                each host takes 1.
            cpus: what Ray reserves for each host; by default as many as `workers`.
            connect_timeout: seconds to wait for a host if none is there, as when a node is lost or has yet to join.
        """
        for name, number in (("hosts", hosts), ("workers", workers)):
            if type(number) is not int or number < 1:
                raise UsageError(f"{name} must be a whole number of at least 1, got {number!r}")
        check_seconds("connect_timeout", connect_timeout)
        self._terms = _Terms(hosts, workers, placement, workers if cpus is None else cpus, connect_timeout)
        self._names = itertools.count()
        self._hosts: list[RayConnection] = []
        self._changed = threading.Condition()
        self._closed = False
        super().__init__(**self._terms._asdict())
        self._end = weakref.finalize(self, _end_all, self._hosts)  # also if it is forgotten, and at exit

    @property
    def hosts(self) -> list[RayConnection]:
        """Those that can be asked."""
        return [host for host in self._hosts if host.ready]

    def open(self, env_id: str, options: Mapping[str, Any]) -> RemoteSession:
        """See `EnvProvider.open`. Waits for a host if there is none, but no longer than `connect_timeout`."""
        arguments = {"env_id": env_id, "entry_point": entry_point_of(env_id), "options": _pickled(env_id, options)}
        deadline, session = time.monotonic() + self._terms.connect_timeout, f"s{next(self._names)}"
        lost = SessionLost("")
        for _ in range(self._terms.hosts + 1):
            host = self._pick(session, deadline)
            try:
                return RemoteSession(host, session, host.open(session, arguments))
            except SessionLost as error:  # its host or worker may have ended, before anyone could know
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
        """Start what is missing; returns the hosts that can be asked. One may wait for room while others work."""
        if self._closed:
            raise EnvError("the pool of hosts is closed")
        self._hosts[:] = [host for host in self._hosts if host.lost is None]
        while len(self._hosts) < self._terms.hosts:
            self._hosts.append(RayConnection(self._terms.start(), self._changed))
        return self.hosts


class _Terms(NamedTuple):
    """The arguments of a `RayPool`, and what is asked of Ray for them."""

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
        """An actor of this process; beside the frames, it has room for calls that end it."""
        if not ray.is_initialized():
            raise UsageError("environments on Ray need a cluster: call ray.init() first")
        near = self.placement == "near"
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        options = {"num_cpus": self.cpus or _HARDLY_ANY, "resources": self.resource, "max_concurrency": _UNDER_WAY + 2}
        return (
            ray.remote(EnvHost).options(scheduling_strategy=here if near else "SPREAD", **options).remote(self.workers)
        )

    def no_room(self) -> str:
        """What was asked for in vain, and what the cluster has."""
        asked = {"CPU": self.cpus, **self.resource}
        wanted = ", ".join(f"{number:g} {name}" for name, number in asked.items())
        has, free = ray.cluster_resources(), ray.available_resources()
        there = ", ".join(f"{has.get(name, 0):g} {name} ({free.get(name, 0):g} free)" for name in asked)
        nodes = sum(node["Alive"] for node in ray.nodes())
        return (
            f"no host for environments was ready within {self.connect_timeout:g} s: each asks Ray for {wanted} on one "
            f"node; "
            f"the cluster has {nodes} nodes with {there} in all"
        )


_ENDS: dict[str, Callable[[RemoteSession], None]] = {
    "close": lambda opened: opened.connection.close_session(opened.session),
    "abandon": lambda opened: opened.connection.abandon(opened.session),
}


def _end_all(hosts: list[RayConnection]) -> None:
    refs = [ref for host in hosts if (ref := host.begin_close())]
    if refs and ray.is_initialized():  # else Ray has ended them; to wait would start a cluster
        with contextlib.suppress(Exception):
            ray.wait(refs, num_returns=len(refs), timeout=2 * GRACE_SECONDS)
    for host in hosts:
        host.end("the pool of hosts is closed")
    hosts.clear()


def _pickled(env_id: str, options: Mapping[str, Any]) -> bytes:
    try:
        return pickle.dumps(dict(options), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise UsageError(f"{env_id} on Ray takes options that can be pickled, got {options!r:.200}") from error


def _unpickled(env_id: str, options: bytes) -> Mapping[str, Any]:
    try:
        return dict(pickle.loads(options))
    except Exception as error:
        raise UsageError(f"a node of the Ray cluster cannot read the options of {env_id}: {describe(error)}") from error


def _is_its_own(error: Exception) -> bool:
    """Whether the actor failed by itself, and not for its node's sake."""
    return not isinstance(error, RayActorError) or bool(error.actor_init_failed)


def _why(error: BaseException) -> str:
    """What Ray says first and last; between them is a traceback, or pages of advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {' ... '.join(dict.fromkeys((lines[0], lines[-1])))}"
