"""Sessions of a server: where each environment is, in which order its calls came, and when it is given up."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import inspect
import logging
import secrets
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from agentgym_envs.core import MAX_ACTION_CHARS, TextEnv
from agentgym_envs.errors import AgentGymError, OutOfOrder, ServerFull, SessionLost, TooLarge, UsageError
from agentgym_envs.hosting.connection import Connection, PendingCall, RemoteSession, check_seconds
from agentgym_envs.hosting.session_host import SessionHost
from agentgym_envs.hosting.worker import WorkerPool, WorkerProcess
from agentgym_envs.http.protocol import Limits, check_depth
from agentgym_envs.http.wire import dump
from agentgym_envs.registration import env_class

_OPENERS = 32
"""How many environments are made at a time in worker processes; some take seconds."""
_TAKERS = 2
"""How many lists of tasks are made at a time beside the loop, which they slow down."""
_ACTION_BYTES = 64  # what keeping an action costs beside its text
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Session:
    """One environment that a client holds. `worker` is None if it is in the server's own process."""

    token: str
    env_id: str
    options: dict[str, Any]
    name: str
    worker: WorkerProcess | None
    description: Mapping[str, Any]
    used: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    closed: bool = False
    seq: int = 0
    last: Any = None
    outcome: Any = None
    spent: int = 0

    @property
    def lost(self) -> bool:
        """Whether the process that held the environment is gone."""
        return self.worker is not None and not self.worker.alive

    def remembered(self, seq: int | None, method: str, arguments: Mapping[str, Any]) -> bool:
        """Whether this call was carried out already. Raises OutOfOrder if it is neither that nor the next."""
        if seq is None or seq == self.seq + 1:
            return False
        if seq == self.seq and self.last == _fingerprint(method, arguments):
            return True
        raise OutOfOrder(f"the next call of this session has the sequence number {self.seq + 1}, not {seq}")

    def remember(self, seq: int | None, method: str, arguments: Mapping[str, Any], outcome: Any) -> None:
        """Keep the outcome of a call until the next."""
        if seq is not None:
            self.seq, self.last, self.outcome = seq, _fingerprint(method, arguments), outcome

    def spend(self, method: str, arguments: Mapping[str, Any], most: int) -> None:
        """Count what an episode's actions hold, for they are kept until the next begins. Raises TooLarge."""
        if method in ("reset", "restore"):
            self.spent = 0
        elif method == "step":
            self.spent += _ACTION_BYTES + min(len(arguments["action"]), MAX_ACTION_CHARS)
            if self.spent > most:
                raise TooLarge(f"the actions of an episode may hold {most} bytes in all; reset the session")


class Sessions:
    """The bounded table of sessions. Everything runs on one event loop."""

    def __init__(
        self,
        env_ids: list[str],
        *,
        workers: int | None = None,
        max_sessions: int = 1024,
        idle_seconds: float = 900.0,
        call_seconds: float = 300.0,
        isolate: bool = False,
        limits: Limits | None = None,
        env_args: Mapping[str, Any] | None = None,
    ) -> None:
        """`isolate` keeps every environment in a worker process, not only those that are heavy or wait.

        An id may be `module:id`: the module, which registers the id, is imported here and in the workers.
        `env_args` are arguments of every environment that knows them; what a client asks for goes before.
        Raises UsageError for an id that is not an environment of this suite, for bounds that cannot be, and for an
        argument that none of the environments knows.
        """
        if max_sessions < 1:
            raise UsageError(f"max_sessions must be at least 1, got {max_sessions}")
        check_seconds("idle_seconds", idle_seconds)
        check_seconds("call_seconds", call_seconds)
        self.full_ids = {name.rpartition(":")[2]: name for name in env_ids}
        """By id, as `gym.make` knows it in any process: `module:id` where that was given."""
        self.classes: dict[str, type[TextEnv]] = {env_id: _class_of(name) for env_id, name in self.full_ids.items()}
        self._defaults = _defaults(self.classes, env_args or {})
        self.max_sessions, self.idle_seconds, self.call_seconds = max_sessions, idle_seconds, call_seconds
        self.limits = limits or Limits()
        self.on_reaped: Callable[[Session], None] = lambda session: None
        self._isolate, self.workers = isolate, workers or 1
        self._host, self._pool = SessionHost(), WorkerPool(self.workers)
        self._table: dict[str, Session] = {}
        self._described: dict[str, Mapping[str, Any]] = {}
        self._openers = ThreadPoolExecutor(_OPENERS, thread_name_prefix="agentgym-open")
        self._takers = ThreadPoolExecutor(_TAKERS, thread_name_prefix="agentgym-take")
        self._opening = 0
        self._outboxes: dict[Connection, list[PendingCall]] = {}

    def __len__(self) -> int:
        return len(self._table) + self._opening

    def count(self, env_id: str) -> int:
        """How many sessions of an id there are."""
        return sum(session.env_id == env_id for session in self._table.values())

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that live."""
        return [worker.pid for worker in self._pool.workers]

    def hosted(self, env_id: str) -> str:
        """Where environments of that id live: "server" or "worker"."""
        needed = self.classes[env_id].needs_worker(self._defaults[env_id])
        return "worker" if self._isolate or needed else "server"

    async def warm_up(self) -> None:
        """Load what the first sessions need, where that costs no process."""
        for env_id in self.classes:
            if self.hosted(env_id) == "server":
                await self.describe(env_id)

    async def describe(self, env_id: str) -> Mapping[str, Any]:
        """What `describe_env` says of an environment of that id without options."""
        if env_id not in self._described:
            session = await self._make(env_id, {})
            self._described[env_id] = session.description
            self._free(session)
        return self._described[env_id]

    async def open(self, env_id: str, options: dict[str, Any]) -> Session:
        """A new session. Raises ServerFull, UsageError, MissingExtra or EnvError."""
        self._check(env_id, options)
        if len(self) >= self.max_sessions:
            self.reap()
        if len(self) >= self.max_sessions:
            raise ServerFull(f"this server holds {self.max_sessions} sessions, which is as many as it may")
        self._opening += 1
        try:
            session = await self._make(env_id, options)
        finally:
            self._opening -= 1
        self._table[session.token] = session
        return session

    def get(self, token: str) -> Session:
        """The session of a token. Raises SessionLost."""
        try:
            return self._table[token]
        except KeyError:
            raise SessionLost("this server has no such session (any more)") from None

    async def call(self, token: str, method: str, arguments: Mapping[str, Any], seq: int | None = None) -> Any:
        """Carry out a method, or answer from memory if it was. Raises what it raised, or OutOfOrder."""
        session = self.get(token)
        if method == "sample" and session.worker is None:
            return _result(await self._take_here(session, arguments, seq))
        if session.worker is None:
            return _result(self.call_here(session, method, arguments, seq))
        async with session.lock:
            if session.closed:
                raise SessionLost("this session was closed")
            if session.remembered(seq, method, arguments):
                return _result(session.outcome)
            session.spend(method, arguments, self.limits.episode_bytes)
            try:
                outcome = await self._ask_worker(session, session.worker, method, arguments)
            except asyncio.CancelledError:
                self.close(token)  # nobody will ever know whether the call was carried out
                raise
            session.remember(seq, method, arguments, outcome)
            return _result(outcome)

    def call_here(self, session: Session, method: str, arguments: Mapping[str, Any], seq: int | None) -> Any:
        """The outcome, as a value or an exception, of a call of an environment in the server's own process."""
        try:
            if session.remembered(seq, method, arguments):
                return session.outcome
            session.spend(method, arguments, self.limits.episode_bytes)
        except (OutOfOrder, TooLarge) as error:
            return error
        session.used = time.monotonic()
        outcome: Any
        try:
            outcome = self._host.call(session.name, method, arguments)
        except AgentGymError as error:
            outcome = error
        session.remember(seq, method, arguments, outcome)
        return outcome

    async def _take_here(self, session: Session, arguments: Mapping[str, Any], seq: int | None) -> Any:
        """As `call_here`, but in a thread: some tasks take minutes to make, and they touch no episode."""
        if session.remembered(seq, "sample", arguments):
            return session.outcome
        session.used = time.monotonic()
        loop = asyncio.get_running_loop()
        outcome: Any
        try:
            outcome = await loop.run_in_executor(self._takers, self._host.call, session.name, "sample", arguments)
        except AgentGymError as error:
            outcome = error
        if seq == session.seq + 1:  # else another call of that number was carried out meanwhile
            session.remember(seq, "sample", arguments, outcome)
        return outcome

    async def fork(self, token: str) -> Session:
        """A new session in the state of another."""
        session = self.get(token)
        state = await self.call(token, "snapshot", {})
        if len(state["actions"]) > self.limits.restore_actions:
            raise TooLarge(f"a snapshot may hold {self.limits.restore_actions} actions")
        copy = await self.open(session.env_id, session.options)
        try:
            await self.call(copy.token, "restore", state)
        except BaseException:
            self.close(copy.token)
            raise
        return copy

    def close(self, token: str) -> None:
        """Close a session; one that is not there is fine. What it holds is freed once its call is over."""
        session = self._table.pop(token, None)
        if session is None:
            return
        self._free(session)

    def _free(self, session: Session) -> None:
        session.closed = True
        if session.worker is None:
            self._host.close(session.name)
        else:
            session.worker.close_session(session.name)

    async def reap_forever(self) -> None:
        """Close sessions that were idle for too long, until cancelled."""
        while True:
            await asyncio.sleep(min(self.idle_seconds / 4, 10.0))
            self.reap()

    def reap(self) -> None:
        """Close the sessions that are idle for too long, and those whose process is gone."""
        deadline = time.monotonic() - self.idle_seconds
        for session in list(self._table.values()):
            if session.lost or (session.used < deadline and not session.lock.locked()):
                _log.info("a session of %s is closed: %s", session.env_id, "lost" if session.lost else "idle")
                self.close(session.token)
                self.on_reaped(session)

    async def shut_down(self) -> None:
        """Close everything."""
        for token in list(self._table):
            self.close(token)
        self._openers.shutdown(wait=False, cancel_futures=True)
        self._takers.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._pool.close)

    def _check(self, env_id: str, options: dict[str, Any]) -> None:
        if env_id not in self.classes:
            raise UsageError(f"this server does not serve {env_id!r}, only {', '.join(self.classes)}")
        allowed = self.classes[env_id].remote_options
        if refused := sorted(set(options) - allowed):
            raise UsageError(f"a server takes the options {', '.join(sorted(allowed))} of {env_id}, not {refused}")
        check_depth(options)
        if len(dump(options)) > self.limits.option_bytes:
            raise UsageError(f"the options are longer than {self.limits.option_bytes} bytes")

    async def _make(self, env_id: str, options: dict[str, Any]) -> Session:
        token, whole = secrets.token_urlsafe(24), {**self._defaults[env_id], **options}
        if self.hosted(env_id) == "server":
            description = self._host.open(token, self.full_ids[env_id], whole)
            return Session(token, env_id, options, token, None, description, time.monotonic())
        opened = await self._open_in_worker(env_id, whole)
        assert isinstance(opened.connection, WorkerProcess)
        return Session(token, env_id, options, opened.session, opened.connection, opened.description, time.monotonic())

    async def _open_in_worker(self, env_id: str, options: dict[str, Any]) -> RemoteSession:
        """Make an environment in a worker; one that is ready when nobody waits any more is closed again."""
        opening = self._openers.submit(self._pool.open, self.full_ids[env_id], options, self.call_seconds)
        waiter = asyncio.wrap_future(opening)
        try:
            return await asyncio.shield(waiter)
        except asyncio.CancelledError:
            waiter.add_done_callback(_close_late)
            raise

    async def _ask_worker(
        self, session: Session, worker: WorkerProcess, method: str, arguments: Mapping[str, Any]
    ) -> Any:
        """The outcome of a call in a worker process, as a value or an exception."""
        loop = asyncio.get_running_loop()
        future: Future[Any] = loop.create_future()

        def done(outcome: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(outcome))

        self._post(loop, worker, PendingCall(session.name, method, arguments, done))
        try:
            outcome = await asyncio.wait_for(future, self.call_seconds)
        except TimeoutError:
            worker.abandon(session.name)
            outcome = SessionLost(f"the environment did not answer within {self.call_seconds:g} s")
        session.used = time.monotonic()
        if isinstance(outcome, SessionLost):
            self.close(session.token)
        return outcome

    def _post(self, loop: AbstractEventLoop, worker: Connection, call: PendingCall) -> None:
        """Post at the end of this turn of the loop, so that the calls of a batch go to a worker together."""
        if not self._outboxes:
            loop.call_soon(self._flush)
        self._outboxes.setdefault(worker, []).append(call)

    def _flush(self) -> None:
        outboxes, self._outboxes = self._outboxes, {}
        for worker, calls in outboxes.items():
            worker.post(calls)


def _class_of(name: str) -> type[TextEnv]:
    module, _, env_id = name.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        return env_class(env_id)
    except (ImportError, gym.error.Error) as error:
        raise UsageError(f"cannot serve {name!r}: {error}") from None


def _defaults(classes: Mapping[str, type[TextEnv]], env_args: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For each environment, those arguments that it knows. Raises UsageError for one that none of them knows."""
    known = {env_id: _arguments_of(kind) for env_id, kind in classes.items()}
    if unknown := sorted(set(env_args) - set().union(*known.values())):
        choices = "; ".join(f"{env_id} has {', '.join(sorted(names))}" for env_id, names in known.items())
        raise UsageError(f"no served environment has an argument {', '.join(unknown)}: {choices or 'there is none'}")
    return {env_id: {key: env_args[key] for key in env_args if key in names} for env_id, names in known.items()}


def _arguments_of(kind: type[TextEnv]) -> set[str]:
    """The names of the arguments of a class, and of its bases as far as it hands further ones on."""
    names = set[str]()
    for base in kind.__mro__:
        if "__init__" in base.__dict__:
            parameters = inspect.signature(base.__dict__["__init__"]).parameters.values()
            names |= {each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}
            if all(each.kind is not each.VAR_KEYWORD for each in parameters):
                break
    return names - {"self"}


def _close_late(waiter: Future[RemoteSession]) -> None:
    if not waiter.cancelled() and waiter.exception() is None:
        opened = waiter.result()
        opened.connection.close_session(opened.session)


def _result(outcome: Any) -> Any:
    if isinstance(outcome, Exception):
        raise outcome.with_traceback(None)  # it is kept, and would keep every request that it is raised for
    return outcome


def _fingerprint(method: str, arguments: Mapping[str, Any]) -> Any:
    """What tells a call from another; small, for every session keeps one."""
    if method == "step" and len(arguments["action"]) <= MAX_ACTION_CHARS:
        return arguments["action"]
    return hashlib.blake2b(dump([method, arguments]), digest_size=16).digest()
