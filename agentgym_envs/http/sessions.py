"""The sessions of a server: the location of each environment, the order of its calls, and its expiry."""

from __future__ import annotations

import asyncio
import hashlib
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
from agentgym_envs.hosting.methods import METHODS
from agentgym_envs.hosting.session_host import SessionHost
from agentgym_envs.hosting.worker import WorkerPool, WorkerProcess
from agentgym_envs.http.protocol import ServerLimits, check_depth
from agentgym_envs.http.wire import dump
from agentgym_envs.registration import env_class

_OPENING_THREADS = 32
"""The most environments that are made at a time in worker processes; some take seconds."""
_SLOW_CALL_THREADS = 2
"""The most slow calls that run at a time outside the event loop; each slows the loop down."""
_ACTION_BYTES = 64  # the memory of an action besides its text
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class HttpSession:
    """One environment of a client. An environment in the server's own process has no `worker`.

    Attributes:
        name: the session's name in its process.
        used: the time of the last call.
        seq: the number of the last numbered call; `last` identifies that call, and `outcome` is its result.
        action_bytes: the memory of the actions of the running episode.
    """

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
    action_bytes: int = 0

    @property
    def lost(self) -> bool:
        """True if the process of the environment is gone."""
        return self.worker is not None and not self.worker.alive

    def remembered(self, seq: int | None, method: str, arguments: Mapping[str, Any]) -> bool:
        """True if this is the last numbered call again. Raises OutOfOrder if it is not the next one either."""
        if seq is None or seq == self.seq + 1:
            return False
        if seq == self.seq and self.last == _fingerprint(method, arguments):
            return True
        raise OutOfOrder(f"the next call of this session has the sequence number {self.seq + 1}, not {seq}")

    def remember(self, seq: int | None, method: str, arguments: Mapping[str, Any], outcome: Any) -> None:
        """Keep the outcome of a numbered call until the next one."""
        if seq is not None:
            self.seq, self.last, self.outcome = seq, _fingerprint(method, arguments), outcome

    def count_action(self, method: str, arguments: Mapping[str, Any], limit: int) -> None:
        """Count the memory of an episode's actions, which are kept until the next episode. Raises TooLarge."""
        effect = METHODS[method].effect
        if effect == "starts":
            self.action_bytes = 0
        elif effect == "steps":
            self.action_bytes += _ACTION_BYTES + min(len(arguments["action"]), MAX_ACTION_CHARS)
            if self.action_bytes > limit:
                raise TooLarge(f"the actions of an episode may hold {limit} bytes in all; reset the session")


class Sessions:
    """The bounded table of sessions. All methods run on one event loop."""

    def __init__(
        self,
        env_ids: list[str],
        *,
        workers: int | None = None,
        max_sessions: int = 1024,
        idle_seconds: float = 900.0,
        call_seconds: float = 300.0,
        isolate: bool = False,
        limits: ServerLimits | None = None,
        env_args: Mapping[str, Any] | None = None,
    ) -> None:
        """Make an empty table.

        Args:
            env_ids: the ids that are served. In `module:id` the module registers the id; it is imported here and in
                the workers.
            workers: the most worker processes.
            max_sessions: the most open sessions.
            idle_seconds: a session that is not used for longer is closed.
            call_seconds: a call in a worker that takes longer ends the worker.
            isolate: run every environment in a worker process, not only heavy and blocking ones.
            limits: the bounds of requests.
            env_args: arguments of every environment whose constructor accepts them. A client's options override them.

        Raises:
            UsageError: an id that is not an environment of this suite, a bound out of range, or an argument that no
                served environment accepts.
        """
        if max_sessions < 1:
            raise UsageError(f"max_sessions must be at least 1, got {max_sessions}")
        check_seconds("idle_seconds", idle_seconds)
        check_seconds("call_seconds", call_seconds)
        self.full_ids = {name.rpartition(":")[2]: name for name in env_ids}
        """The name for `gym.make` in any process, by id: `module:id` where that was given."""
        self.classes: dict[str, type[TextEnv]] = {env_id: _class_of(name) for env_id, name in self.full_ids.items()}
        self.defaults = _defaults(self.classes, env_args or {})
        """The arguments of each environment that the server was started with."""
        self.max_sessions, self.idle_seconds, self.call_seconds = max_sessions, idle_seconds, call_seconds
        self.limits = limits or ServerLimits()
        self.on_reaped: Callable[[HttpSession], None] = lambda session: None
        self._isolate, self.workers = isolate, workers or 1
        self._host, self._pool = SessionHost(), WorkerPool(self.workers)
        self._table: dict[str, HttpSession] = {}
        self._described: dict[str, Mapping[str, Any]] = {}
        self._opening_threads = ThreadPoolExecutor(_OPENING_THREADS, thread_name_prefix="agentgym-open")
        self._slow_call_threads = ThreadPoolExecutor(_SLOW_CALL_THREADS, thread_name_prefix="agentgym-slow-call")
        self._opening = 0
        self._outboxes: dict[Connection, list[PendingCall]] = {}

    def __len__(self) -> int:
        return len(self._table) + self._opening

    def count(self, env_id: str) -> int:
        """The number of sessions of an id."""
        return sum(session.env_id == env_id for session in self._table.values())

    @property
    def pids(self) -> list[int]:
        """The process ids of the live workers."""
        return [worker.pid for worker in self._pool.workers]

    def hosted(self, env_id: str) -> str:
        """The kind of process that runs environments of that id: "server" or "worker"."""
        needed = self.classes[env_id].needs_worker(self.defaults[env_id])
        return "worker" if self._isolate or needed else "server"

    async def warm_up(self) -> None:
        """Load the data of the environments that run in the server's own process."""
        for env_id in self.classes:
            if self.hosted(env_id) == "server":
                await self.describe(env_id)

    async def describe(self, env_id: str) -> Mapping[str, Any]:
        """The description of an environment of that id without options; see `describe_env`."""
        if env_id not in self._described:
            session = await self._make(env_id, {})
            self._described[env_id] = session.description
            self._free(session)
        return self._described[env_id]

    async def open(self, env_id: str, options: dict[str, Any]) -> HttpSession:
        """Make a session. Raises ServerFull, UsageError, MissingExtra or EnvError."""
        self._check(env_id, options)
        if len(self) >= self.max_sessions:
            self.reap()
        if len(self) >= self.max_sessions:
            raise ServerFull(f"this server holds {self.max_sessions} sessions, which is its maximum")
        self._opening += 1
        try:
            session = await self._make(env_id, options)
        finally:
            self._opening -= 1
        self._table[session.token] = session
        return session

    def find(self, token: str) -> HttpSession | None:
        """The session of a token, if there is one."""
        return self._table.get(token)

    def get(self, token: str) -> HttpSession:
        """The session of a token. Raises SessionLost."""
        try:
            return self._table[token]
        except KeyError:
            raise SessionLost("this server has no such session (any more)") from None

    async def call(self, token: str, method: str, arguments: Mapping[str, Any], seq: int | None = None) -> Any:
        """Call a method, or return the kept outcome of a repeated call. Raises OutOfOrder and the method's errors."""
        session = self.get(token)
        if session.worker is None and METHODS[method].threaded:
            return _result(await self._call_in_thread(session, method, arguments, seq))
        if session.worker is None:
            return _result(self.call_here(session, method, arguments, seq))
        async with session.lock:
            if session.closed:
                raise SessionLost("this session was closed")
            if session.remembered(seq, method, arguments):
                return _result(session.outcome)
            session.count_action(method, arguments, self.limits.episode_bytes)
            try:
                outcome = await self._call_worker(session, session.worker, method, arguments)
            except asyncio.CancelledError:
                self.close(token)  # its state is unknown: the call may or may not have been carried out
                raise
            session.remember(seq, method, arguments, outcome)
            return _result(outcome)

    def call_here(self, session: HttpSession, method: str, arguments: Mapping[str, Any], seq: int | None) -> Any:
        """Call a method of an environment in the server's own process. Returns a value or an exception."""
        try:
            if session.remembered(seq, method, arguments):
                return session.outcome
            session.count_action(method, arguments, self.limits.episode_bytes)
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

    async def _call_in_thread(
        self, session: HttpSession, method: str, arguments: Mapping[str, Any], seq: int | None
    ) -> Any:
        """Do as `call_here`, but in a thread: some tasks take minutes to generate, and they touch no episode."""
        if session.remembered(seq, method, arguments):
            return session.outcome
        session.used = time.monotonic()
        loop = asyncio.get_running_loop()
        outcome: Any
        try:
            outcome = await loop.run_in_executor(
                self._slow_call_threads, self._host.call, session.name, method, arguments
            )
        except AgentGymError as error:
            outcome = error
        if seq == session.seq + 1:  # else another call of that number was carried out meanwhile
            session.remember(seq, method, arguments, outcome)
        return outcome

    async def fork(self, token: str) -> HttpSession:
        """Make a session in the state of another."""
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
        """Close a session; an unknown token is fine. Its environment is closed after a running call ends."""
        session = self._table.pop(token, None)
        if session is None:
            return
        self._free(session)

    def _free(self, session: HttpSession) -> None:
        session.closed = True
        if session.worker is None:
            self._host.close(session.name)
        else:
            session.worker.close_session(session.name)

    async def reap_forever(self) -> None:
        """Close expired sessions until cancelled."""
        while True:
            await asyncio.sleep(min(self.idle_seconds / 4, 10.0))
            self.reap()

    def reap(self) -> None:
        """Close the sessions that were idle for too long, and those whose process is gone."""
        deadline = time.monotonic() - self.idle_seconds
        for session in list(self._table.values()):
            if session.lost or (session.used < deadline and not session.lock.locked()):
                _log.info("a session of %s is closed: %s", session.env_id, "lost" if session.lost else "idle")
                self.close(session.token)
                self.on_reaped(session)

    async def shut_down(self) -> None:
        """Close all sessions and worker processes."""
        for token in list(self._table):
            self.close(token)
        self._opening_threads.shutdown(wait=False, cancel_futures=True)
        self._slow_call_threads.shutdown(wait=False, cancel_futures=True)
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

    async def _make(self, env_id: str, options: dict[str, Any]) -> HttpSession:
        token, whole = secrets.token_urlsafe(24), {**self.defaults[env_id], **options}
        if self.hosted(env_id) == "server":
            description = self._host.open(token, self.full_ids[env_id], whole)
            return HttpSession(token, env_id, options, token, None, description, time.monotonic())
        opened = await self._open_in_worker(env_id, whole)
        assert isinstance(opened.connection, WorkerProcess)
        return HttpSession(
            token, env_id, options, opened.session, opened.connection, opened.description, time.monotonic()
        )

    async def _open_in_worker(self, env_id: str, options: dict[str, Any]) -> RemoteSession:
        """Make an environment in a worker. If the caller is cancelled meanwhile, close it once it is ready."""
        opening = self._opening_threads.submit(self._pool.open, self.full_ids[env_id], options, self.call_seconds)
        waiter = asyncio.wrap_future(opening)
        try:
            return await asyncio.shield(waiter)
        except asyncio.CancelledError:
            waiter.add_done_callback(_close_late)
            raise

    async def _call_worker(
        self, session: HttpSession, worker: WorkerProcess, method: str, arguments: Mapping[str, Any]
    ) -> Any:
        """Call a method of an environment in a worker process. Returns a value or an exception."""
        loop = asyncio.get_running_loop()
        future: Future[Any] = loop.create_future()

        def done(outcome: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(outcome))

        self._submit(loop, worker, PendingCall(session.name, method, arguments, done))
        try:
            outcome = await asyncio.wait_for(future, self.call_seconds)
        except TimeoutError:
            worker.abandon(session.name)
            outcome = SessionLost(f"the environment did not answer within {self.call_seconds:g} s")
        session.used = time.monotonic()
        if isinstance(outcome, SessionLost):
            self.close(session.token)
        return outcome

    def _submit(self, loop: AbstractEventLoop, worker: Connection, call: PendingCall) -> None:
        """Submit at the end of this loop iteration, so that the calls of a batch reach a worker together."""
        if not self._outboxes:
            loop.call_soon(self._flush)
        self._outboxes.setdefault(worker, []).append(call)

    def _flush(self) -> None:
        outboxes, self._outboxes = self._outboxes, {}
        for worker, calls in outboxes.items():
            worker.submit(calls)


def _class_of(name: str) -> type[TextEnv]:
    try:
        return env_class(name)
    except (ImportError, gym.error.Error) as error:
        raise UsageError(f"cannot serve {name!r}: {error}") from None


def _defaults(classes: Mapping[str, type[TextEnv]], env_args: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For each environment, the arguments that it accepts. Raises UsageError for one that none of them accepts."""
    known = {env_id: _arguments_of(kind) for env_id, kind in classes.items()}
    if unknown := sorted(set(env_args) - set().union(*known.values())):
        choices = "; ".join(f"{env_id} has {', '.join(sorted(names))}" for env_id, names in known.items())
        raise UsageError(
            f"no served environment has an argument {', '.join(unknown)}: {choices or 'no environment is served'}"
        )
    return {env_id: {key: env_args[key] for key in env_args if key in names} for env_id, names in known.items()}


def _arguments_of(kind: type[TextEnv]) -> set[str]:
    """The names of the arguments of a class, including those that it passes on to its bases."""
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
        raise outcome.with_traceback(None)  # it is kept; its traceback would keep every request alive
    return outcome


def _fingerprint(method: str, arguments: Mapping[str, Any]) -> Any:
    """A small value that identifies a call; every session keeps one."""
    if arguments.keys() == {"action"} and len(arguments["action"]) <= MAX_ACTION_CHARS:
        return method, arguments["action"]
    return hashlib.blake2b(dump([method, arguments]), digest_size=16).digest()
