"""The client: connections to servers, and the pool of servers that a remote environment comes from."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import httpx

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import AgentGymError, EnvError, ServerFull, SessionLost, UsageError
from agentgym_envs.hosting.connection import Connection, PendingCall, RemoteSession, check_seconds, deliver
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.session_host import error_from_json
from agentgym_envs.http.dialects.agentgym.client import agentgym_env
from agentgym_envs.http.senders import BATCH, Senders, Sending
from agentgym_envs.http.transports import Transports
from agentgym_envs.http.wire import NDJSON, NOT_CARRIED_OUT, PREFIX, dump, is_token

_log = logging.getLogger(__name__)
_CHANGES = frozenset({"reset", "step", "restore"})
"""Verbs that carry a sequence number, so that they can be sent again."""
_TRIES = 4
_BACKOFF_SECONDS = 0.1
_CONNECT_SECONDS = 5.0
_UNWELL = frozenset({502, 503, 504})
_IN_PARTS = frozenset({"BadRequest", "Malformed", "TooLarge"})
"""Why a server may refuse a whole batch for the sake of one of its calls."""


class ServerConnection(Connection):
    """To one server. Calls may come from any thread; posted calls are sent together, a few requests at a time.

    After a fork the child's sessions are lost: they are the parent's.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 120.0) -> None:
        """`timeout` is the seconds that a server may be silent over a request before it is sent again."""
        self.url = url.rstrip("/")
        self._headers = [("Content-Type", "application/json")]
        if token is not None:
            self._headers.append(("Authorization", f"Bearer {token}"))
        self._timeout, self._silent_until = timeout, 0.0
        self._start()
        _connections.add(self)

    def open(self, env_id: str, options: Mapping[str, Any]) -> tuple[RemoteSession, Mapping[str, Any]]:
        """A new session, and the server's load. Raises ServerFull, SessionLost if it cannot be reached, ..."""
        body = {"env": env_id, "options": dict(options)}
        reply = _value(self._request("POST", f"{PREFIX}/sessions", body, tries=1))
        try:
            opened = RemoteSession(self, str(reply["session"]), reply["description"])
            load = reply["load"]
        except (KeyError, TypeError):
            raise SessionLost(f"{self.url} does not answer as a server of ours") from None
        self._numbers[opened.session] = 0
        return opened, load

    def call(self, session: str, method: str, arguments: Mapping[str, Any]) -> Any:
        """See `Connection.call`."""
        self._check(session)
        body = {key: value for key, value in arguments.items() if value is not None}
        if method in _CHANGES:
            body["seq"] = self._numbers[session] + 1
        try:
            reply = self._request("POST", f"{PREFIX}/sessions/{session}/{method}", body)
        except SessionLost:
            self._numbers.pop(session, None)
            raise
        self._note(session, method, reply)
        return _value(reply)

    def post(self, calls: Sequence[PendingCall]) -> None:
        """See `Connection.post`."""
        held = [call.session in self._numbers for call in calls]  # once: another thread may lose one meanwhile
        sendings = [self._sendable(call) for call, holds in zip(calls, held, strict=True) if holds]
        for start in range(0, len(sendings), BATCH):
            self._senders.put(self, sendings[start : start + BATCH])
        for call, holds in zip(calls, held, strict=True):
            if not holds:
                call.done(_lost())

    def send(self, sendings: Sequence[Sending]) -> None:
        """Send calls in one request, and again those whose reply did not come. Never raises."""
        left = dict(enumerate(sendings))
        outcome: Any = None
        try:
            outcome = self._send_all(left)
            if type(outcome) is _Failure and outcome.type in _IN_PARTS and len(left) > 1:
                rest = list(left.values())
                left.clear()
                self.send(rest[: len(rest) // 2])
                self.send(rest[len(rest) // 2 :])
        except Exception as error:  # else nobody would ever hear of it
            _log.exception("a batch could not be sent")
            outcome = _Failure("SessionLost", SessionLost(f"the request failed ({_why(error)})"))
        for sending in left.values():
            self._deliver(sending, outcome)

    def close_session(self, session: str) -> None:
        """See `Connection.close_session`. The server frees it some time later if it cannot be told."""
        if self._numbers.pop(session, None) is None or time.monotonic() < self._silent_until:
            return
        try:
            with self._exchange("DELETE", f"{PREFIX}/sessions/{session}", None, _CONNECT_SECONDS) as response:
                response.read()
        except httpx.HTTPError as error:
            self._silent_until = time.monotonic() + _CONNECT_SECONDS  # many sessions may have to be closed
            _log.debug("a session at %s could not be closed: %s", self.url, error)

    def abandon(self, session: str) -> None:
        """Close the session aside: its server may be what hangs."""
        threading.Thread(target=self.close_session, args=(session,), daemon=True).start()

    @property
    def sessions(self) -> int:
        """How many sessions this process holds there."""
        return len(self._numbers)

    def _start(self) -> None:
        self._base = httpx.URL(self.url)
        self._transports = Transports(self._base)
        self._numbers: dict[str, int] = {}
        self._senders = Senders()
        self._finalizer = weakref.finalize(self, _shut, self._transports, self._senders)
        self._finalizer.atexit = False

    def _after_fork(self) -> None:
        """In the child: connections and threads are the parent's."""
        self._finalizer.detach()
        self._start()

    def _check(self, session: str) -> None:
        if session not in self._numbers:
            raise _lost()

    def _sendable(self, call: PendingCall) -> Sending:
        body = {"session": call.session, "method": call.method, "seq": self._numbers.get(call.session, 0) + 1}
        for key, value in call.arguments.items():
            if value is not None:
                body[key] = value
        return Sending(call, body)

    def _note(self, session: str, method: str, reply: Any) -> None:
        """If the call was carried out, the next has another number; if the session is lost, there is no next."""
        if type(reply) is _Failure:
            if isinstance(reply.error, SessionLost):
                self._numbers.pop(session, None)
            if reply.type in NOT_CARRIED_OUT:
                return
        if method in _CHANGES and session in self._numbers:
            self._numbers[session] += 1

    def _request(self, method: str, path: str, body: Any, tries: int = _TRIES) -> Any:
        """The reply or `_Failure` that a request is answered with; sent again if the way fails. Raises SessionLost."""
        content = None if body is None else dump(body)
        for attempt in range(tries):
            try:
                with self._exchange(method, path, content, self._timeout) as response:
                    response.read()
                return _read(response)
            except (httpx.TransportError, _Unwell) as error:
                problem = _why(error)
            if attempt < tries - 1:
                time.sleep(_BACKOFF_SECONDS * 2**attempt)
        raise SessionLost(f"{self.url} cannot be reached ({problem})")

    def _exchange(
        self, method: str, path: str, content: bytes | None, timeout: float
    ) -> contextlib.AbstractContextManager[httpx.Response]:
        """Send a request. The transport without `httpx.Client` around it costs half as much."""
        limits = {"connect": min(timeout, _CONNECT_SECONDS), "read": timeout, "write": timeout, "pool": timeout}
        url = _url(self._base, path)
        request = httpx.Request(method, url, headers=self._headers, content=content, extensions={"timeout": limits})
        return self._transports.send(request, timeout)

    def _send_all(self, left: dict[int, Sending]) -> _Failure | None:
        """Take out of `left` what is answered; returns why the rest is not."""
        problem = ""
        for attempt in range(_TRIES):
            try:
                failure = self._try(left)
                if failure is not None or not left:
                    return failure
                problem = "the reply was cut short"
            except (httpx.TransportError, _Unwell) as error:
                problem = _why(error)
            if attempt < _TRIES - 1:
                time.sleep(_BACKOFF_SECONDS * 2**attempt)
        return _Failure("SessionLost", SessionLost(f"{self.url} cannot be reached ({problem})"))

    def _try(self, left: dict[int, Sending]) -> _Failure | None:
        """Send a batch once and hand over what comes, as it comes; returns why the whole was refused."""
        numbers = list(left)
        content = dump({"calls": [left[number].body for number in numbers], "stream": True})
        with self._exchange("POST", f"{PREFIX}/batch", content, self._timeout) as response:
            if response.headers.get("content-type") == NDJSON:
                with self._senders.waiting(self):
                    for line in _lines(response):
                        row = json.loads(line)
                        self._deliver(left.pop(numbers[row["index"]]), row["result"])
                return None
            response.read()
        reply = _read(response)
        if type(reply) is _Failure:
            return reply
        for number, result in zip(numbers, reply["results"], strict=True):
            self._deliver(left.pop(number), result)
        return None

    def _deliver(self, sending: Sending, result: Any) -> None:
        call = sending.call
        if type(result) is dict and "error" in result and "observation" not in result:
            result = _failure(result["error"])
        self._note(call.session, call.method, result)
        deliver(call.done, result.error if type(result) is _Failure else result)


class ServerPool:
    """Servers that serve the same environments. A new session goes to the one with the least load."""

    def __init__(self, urls: Sequence[str], token: str | None, timeout: float, connect_timeout: float) -> None:
        """`connect_timeout` is how many seconds are spent on finding a server that has room."""
        self._settings = (tuple(urls), token, timeout, connect_timeout)
        self._connect_timeout = connect_timeout
        self._servers = [_Server(ServerConnection(url, token, timeout)) for url in dict.fromkeys(urls)]

    def __reduce__(self) -> Any:
        return server_pool, self._settings

    def open(self, env_id: str, options: Mapping[str, Any]) -> RemoteSession:
        """See `Opener.open`: tries one server after the other until one takes the session."""
        end = time.monotonic() + self._connect_timeout
        problems: dict[str, str] = {}
        pause = _BACKOFF_SECONDS
        while True:
            for server in self._candidates():
                try:
                    return server.open(env_id, options)
                except (SessionLost, ServerFull) as error:
                    problems[server.connection.url] = _about(server.connection.url, error)
            left = end - time.monotonic()
            if left <= 0:
                raise EnvError("no server took the environment: " + "; ".join(problems.values()))
            time.sleep(min(pause, left))
            pause = min(1.0, pause * 2)

    def _candidates(self) -> list[_Server]:
        """Those that may be tried now, the least loaded first; if all are left out, all."""
        now = time.monotonic()
        alive = [server for server in self._servers if server.left_out_until <= now]
        return sorted(alive or self._servers, key=lambda server: server.load)


class _Server:
    """One server of a pool, and what is known of it."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.left_out_until = 0.0
        self._failures = self._opening = 0
        self._others, self._room = 0, 1

    @property
    def load(self) -> float:
        """The share of the server's sessions that are taken, as far as is known: others may have come or gone."""
        return (self._others + self.connection.sessions + self._opening) / self._room

    def open(self, env_id: str, options: Mapping[str, Any]) -> RemoteSession:
        self._opening += 1  # the threads that open beside this one go elsewhere
        try:
            opened, load = self.connection.open(env_id, options)
        except SessionLost:
            self._failures = min(self._failures + 1, 6)
            self.left_out_until = time.monotonic() + 0.5 * 2**self._failures
            raise
        finally:
            self._opening -= 1
        self._failures, self.left_out_until = 0, 0.0
        self._others, self._room = max(0, load["sessions"] - self.connection.sessions), load["max_sessions"]
        return opened


class _Unwell(Exception):
    """A gateway before the server, or the server itself, cannot serve at the moment."""


class _Failure(NamedTuple):
    """An error that a server told of, and its type there, which this process need not know."""

    type: str
    error: AgentGymError


def server_pool(urls: Sequence[str], token: str | None, timeout: float, connect_timeout: float) -> ServerPool:
    """The pool of these servers; one for all environments of a process, so that they share connections."""
    key = (os.getpid(), tuple(urls), token, timeout, connect_timeout)
    with _pools_lock:
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = ServerPool(urls, token, timeout, connect_timeout)
        return pool


def remote_env(
    env_id: str,
    *,
    base_url: str | Sequence[str],
    token: str | None = None,
    dialect: str | None = None,
    timeout: float = 120.0,
    connect_timeout: float = 10.0,
    **options: Any,
) -> TextEnv:
    """The environment of that id on a server; what `gym.make(env_id, base_url=...)` calls.

    Args:
        env_id: an id that the server serves.
        base_url: the server's address, or several, over which sessions are spread.
        token: the server's token; by default that of the environment variable AGENTGYM_TOKEN.
        dialect: "agentgym" for a server of AgentGym itself; None is this suite's own protocol.
        timeout: seconds that a server may be silent before a request is sent again.
        connect_timeout: seconds to look for a server with room before that is an error.
        **options: arguments of the environment.

    Raises:
        UsageError: arguments that cannot be, or that the environment refuses.
        EnvError: no server can be reached or has room.
    """
    urls = [base_url] if isinstance(base_url, str) else base_url
    if not isinstance(urls, Sequence) or not urls or not all(map(_is_address, urls)):
        raise UsageError(f"base_url must be an address like http://127.0.0.1:8000, or a list of them, got {base_url!r}")
    token = token or os.environ.get("AGENTGYM_TOKEN")
    if token is not None and not is_token(token):
        raise UsageError("the token (token=... or AGENTGYM_TOKEN) must be one word of ASCII letters, digits and signs")
    check_seconds("timeout", timeout)
    check_seconds("connect_timeout", connect_timeout, or_zero=True)
    if dialect == "agentgym":
        return agentgym_env(env_id, urls, token=token, timeout=timeout, connect_timeout=connect_timeout, **options)
    if dialect is not None:
        raise UsageError(f"dialect must be 'agentgym' or None, got {dialect!r}")
    try:
        json.dumps(options)
    except (TypeError, ValueError):
        raise UsageError(f"a remote environment takes options that are JSON, got {options!r:.200}") from None
    pool = server_pool(urls, token, timeout, connect_timeout)
    return RemoteEnv(env_id, pool, options)


_pools: weakref.WeakValueDictionary[tuple[Any, ...], ServerPool] = weakref.WeakValueDictionary()
_pools_lock = threading.Lock()
_connections: weakref.WeakSet[ServerConnection] = weakref.WeakSet()


def _after_fork() -> None:
    global _pools_lock
    _pools_lock = threading.Lock()
    for connection in list(_connections):
        connection._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _read(response: httpx.Response) -> Any:
    """The JSON of a reply that was read, or the failure that it tells of. Raises _Unwell for any other reply."""
    status = response.status_code
    if status in _UNWELL:
        raise _Unwell(f"HTTP status {status}")
    try:
        data = json.loads(response.content)
    except (ValueError, RecursionError):
        raise _Unwell(f"HTTP status {status} without JSON: no server of ours?") from None
    if 200 <= status < 300:
        return data
    if not isinstance(data, dict) or "error" not in data:
        raise _Unwell(f"HTTP status {status}: {str(data)[:200]}")
    return _failure(data["error"])


def _is_address(url: Any) -> bool:
    try:
        parts = httpx.URL(url if isinstance(url, str) else "")
    except httpx.InvalidURL:
        return False
    return parts.scheme in ("http", "https") and bool(parts.host) and not parts.query and (parts.port or 0) < 2**16


def _about(url: str, error: BaseException) -> str:
    """The error, with the server that it is about."""
    return str(error) if url in str(error) else f"{url}: {error}"


def _failure(told: Any) -> _Failure:
    if not isinstance(told, dict):
        return _Failure("", EnvError(str(told)))
    kind = str(told.get("type"))
    if kind in ("BadRequest", "Malformed"):
        return _Failure(kind, UsageError(str(told.get("message"))))
    if kind == "NotFound":
        return _Failure(kind, SessionLost(str(told.get("message"))))
    return _Failure(kind, error_from_json(told))


def _value(reply: Any) -> Any:
    if type(reply) is _Failure:
        raise reply.error
    return reply


def _lines(response: httpx.Response) -> Iterator[bytes]:
    """The lines of a reply, as they come; a last one without an end is not whole, and left out."""
    rest = b""
    for chunk in response.iter_raw():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _lost() -> SessionLost:
    return SessionLost("this process does not hold that session (any more)")


def _why(error: BaseException) -> str:
    return str(error) if isinstance(error, _Unwell) else f"{type(error).__name__}: {error}"


@lru_cache(4096)
def _url(base: httpx.URL, path: str) -> httpx.URL:
    return base.copy_with(path=base.path.rstrip("/") + path)


def _shut(transports: Transports, senders: Senders) -> None:
    transports.close()
    senders.end()
