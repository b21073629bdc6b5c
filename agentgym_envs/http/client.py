"""The client: connections to servers, and the pool of servers that a remote environment comes from."""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import httpx

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import AgentGymError, EnvError, ServerFull, SessionLost, UsageError
from agentgym_envs.hosting.connection import Connection, Opened, Posted
from agentgym_envs.hosting.host import error_from_json
from agentgym_envs.hosting.twin import TwinEnv
from agentgym_envs.http.wire import NDJSON, NOT_CARRIED_OUT, PREFIX, dump

_log = logging.getLogger(__name__)
_CHANGES = frozenset({"reset", "step", "restore"})
"""Verbs that carry a sequence number, so that they can be sent again."""
_TRIES = 4
_BACKOFF_SECONDS = 0.1
_BATCH = 256
_SENDERS = 8
_KEEP_ALIVE_SECONDS = 30.0  # less than the server's, so that no request meets a connection that is being closed


class ServerConnection(Connection):
    """To one server. Calls may come from any thread; posted calls are sent together, a few requests at a time."""

    def __init__(self, url: str, token: str | None = None, timeout: float = 120.0) -> None:
        """`timeout` is the seconds that a server may be silent over a request before it is sent again."""
        self.url, self._token = url.rstrip("/"), token
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=5.0, pool=None),
            limits=httpx.Limits(max_connections=64, keepalive_expiry=_KEEP_ALIVE_SECONDS),
            trust_env=False,
        )
        self._numbers: dict[str, int] = {}
        self._outbox: queue.SimpleQueue[list[_Sending] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._senders = self._idle = 0
        weakref.finalize(self, _shut, self._http, self._outbox)

    def open(self, env_id: str, options: Mapping[str, Any]) -> tuple[Opened, Mapping[str, Any]]:
        """A new session, and the server's load. Raises ServerFull, SessionLost if it cannot be reached, ..."""
        reply = self._request("POST", f"{PREFIX}/sessions", {"env": env_id, "options": dict(options)}, tries=1)
        self._numbers[reply["session"]] = 0
        return Opened(self, reply["session"], reply["description"]), reply["load"]

    def call(self, session: str, verb: str, arguments: Mapping[str, Any]) -> Any:
        """See `Connection.call`."""
        body = {key: value for key, value in arguments.items() if value is not None}
        path = f"{PREFIX}/sessions/{session}/{verb}"
        if verb not in _CHANGES:
            return self._request("POST", path, body)
        body["seq"] = self._numbers.get(session, 0) + 1
        try:
            reply = self._request("POST", path, body)
        except AgentGymError as error:
            self._count(session, error)
            raise
        self._count(session, None)
        return reply

    def post(self, calls: Sequence[Posted]) -> None:
        """See `Connection.post`."""
        with self._lock:
            if not self._idle and self._senders < _SENDERS:
                self._senders += 1
                threading.Thread(target=_send_forever, args=(weakref.ref(self), self._outbox), daemon=True).start()
        for start in range(0, len(calls), _BATCH):
            self._outbox.put([self._sendable(call) for call in calls[start : start + _BATCH]])

    def close_session(self, session: str) -> None:
        """See `Connection.close_session`."""
        self._numbers.pop(session, None)
        try:
            self._http.delete(f"{PREFIX}/sessions/{session}", timeout=5.0)
        except httpx.HTTPError as error:
            _log.debug("a session at %s could not be closed: %s", self.url, error)

    def abandon(self, session: str) -> None:
        """Close the session aside: its server may be what hangs."""
        threading.Thread(target=self.close_session, args=(session,), daemon=True).start()

    @property
    def sessions(self) -> int:
        """How many sessions this process holds there."""
        return len(self._numbers)

    def health(self) -> Mapping[str, Any]:
        """How full the server is. Raises SessionLost if it cannot be reached."""
        reply: Mapping[str, Any] = self._request("GET", "/health", None, tries=1)
        return reply

    def _sendable(self, call: Posted) -> _Sending:
        body = {"session": call.session, "verb": call.verb, "seq": self._numbers.get(call.session, 0) + 1}
        return _Sending(call, {**body, **{key: value for key, value in call.arguments.items() if value is not None}})

    def _count(self, session: str, error: BaseException | None) -> None:
        """The call was carried out, so the next has another number."""
        if session in self._numbers and type(error).__name__ not in NOT_CARRIED_OUT:
            self._numbers[session] += 1

    def _request(self, method: str, path: str, body: Any, tries: int = _TRIES) -> Any:
        """Send a request, again if the way fails. Raises the server's error, or SessionLost."""
        content = None if body is None else dump(body)
        for attempt in range(tries):
            try:
                response = self._http.request(method, path, content=content)
                if response.status_code not in (502, 503, 504):
                    return _read(response)
                problem: Any = f"HTTP status {response.status_code}"
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
            if attempt < tries - 1:
                time.sleep(_BACKOFF_SECONDS * 2**attempt)
        raise SessionLost(f"{self.url} cannot be reached ({problem})")

    def _send(self, sendings: Sequence[_Sending]) -> None:
        """Send calls in one request, and again those whose reply did not come."""
        left = dict(enumerate(sendings))
        problem: Exception = SessionLost("")
        for attempt in range(_TRIES):
            try:
                for index, result in self._exchange(left):
                    self._deliver(left.pop(index), result)
                return
            except (httpx.TransportError, _Unwell) as error:
                problem = SessionLost(f"{self.url} cannot be reached ({type(error).__name__}: {error})")
            except AgentGymError as error:
                problem = error
                break
            if attempt < _TRIES - 1:
                time.sleep(_BACKOFF_SECONDS * 2**attempt)
        for sending in left.values():
            self._deliver(sending, problem)

    def _exchange(self, sendings: Mapping[int, _Sending]) -> Iterator[tuple[int, Any]]:
        """The results of calls by number, as they come."""
        numbers = list(sendings)
        body = dump({"calls": [sendings[number].body for number in numbers], "stream": True})
        with self._http.stream("POST", f"{PREFIX}/batch", content=body) as response:
            if response.headers.get("content-type") == NDJSON:
                for line in response.iter_lines():
                    row = json.loads(line)
                    yield numbers[row["index"]], row["result"]
                return
            response.read()
            if response.status_code in (502, 503, 504):
                raise _Unwell(f"HTTP status {response.status_code}")
            yield from zip(numbers, _read(response)["results"], strict=True)

    def _deliver(self, sending: _Sending, result: Any) -> None:
        if isinstance(result, dict) and "error" in result and "observation" not in result:
            result = error_from_json(result["error"])
        self._count(sending.call.session, result if isinstance(result, BaseException) else None)
        try:
            sending.call.done(result)
        except Exception:
            _log.exception("a reply could not be handed over")


class ServerPool:
    """Servers that serve the same environments. A new session goes to the one with the least load."""

    def __init__(self, urls: Sequence[str], token: str | None, timeout: float, patience: float) -> None:
        """`patience` is how many seconds are spent on finding a server that has room."""
        self._settings = (tuple(urls), token, timeout, patience)
        self._patience = patience
        self._servers = [_Server(ServerConnection(url, token, timeout)) for url in urls]
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return server_pool, self._settings

    def open(self, env_id: str, options: Mapping[str, Any]) -> Opened:
        """See `Opener.open`: tries one server after the other until one takes the session."""
        end = time.monotonic() + self._patience
        problems: dict[str, str] = {}
        while True:
            for server in self._candidates():
                try:
                    return server.open(env_id, options)
                except (SessionLost, ServerFull) as error:
                    problems[server.connection.url] = str(error)
            if time.monotonic() >= end:
                raise EnvError("no server has room: " + "; ".join(f"{k}: {v}" for k, v in problems.items()))
            time.sleep(min(0.25, max(0.0, end - time.monotonic())))

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
        self._failures = 0
        self._reported, self._room = 0, 1
        self._own_then = 0

    @property
    def load(self) -> float:
        """The share of the server's sessions that are taken, as far as is known: others may have come or gone."""
        return (self._reported + self.connection.sessions - self._own_then) / self._room

    def open(self, env_id: str, options: Mapping[str, Any]) -> Opened:
        try:
            opened, load = self.connection.open(env_id, options)
        except SessionLost:
            self._failures += 1
            self.left_out_until = time.monotonic() + min(30.0, 0.5 * 2**self._failures)
            raise
        self._failures, self.left_out_until = 0, 0.0
        self._reported, self._room = load["sessions"], load["max_sessions"]
        self._own_then = self.connection.sessions
        return opened


class _Unwell(Exception):
    """A gateway before the server, or the server itself, cannot serve at the moment."""


class _Sending(NamedTuple):
    call: Posted
    body: dict[str, Any]


def server_pool(urls: Sequence[str], token: str | None, timeout: float, patience: float) -> ServerPool:
    """The pool of these servers; one for all environments of a process, so that they share connections."""
    key = (os.getpid(), tuple(urls), token, timeout, patience)
    with _pools_lock:
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = ServerPool(urls, token, timeout, patience)
        return pool


def remote_env(
    env_id: str,
    *,
    base_url: str | Sequence[str],
    token: str | None = None,
    dialect: str | None = None,
    timeout: float = 120.0,
    patience: float = 10.0,
    **options: Any,
) -> TextEnv:
    """The environment of that id on a server; what `gym.make(env_id, base_url=...)` calls.

    Args:
        env_id: an id that the server serves.
        base_url: the server's address, or several, over which sessions are spread.
        token: the server's token; by default that of the environment variable AGENTGYM_TOKEN.
        dialect: "agentgym" for a server of AgentGym itself; None is this suite's own protocol.
        timeout: seconds that a server may be silent before a request is sent again.
        patience: seconds to look for a server with room before that is an error.
        **options: arguments of the environment.

    Raises:
        UsageError: arguments that cannot be, or that the environment refuses.
        EnvError: no server can be reached or has room.
    """
    urls = [base_url] if isinstance(base_url, str) else list(base_url)
    if not urls or not all(isinstance(url, str) and url.startswith(("http://", "https://")) for url in urls):
        raise UsageError(f"base_url must be an address like http://127.0.0.1:8000, or a list of them, got {base_url!r}")
    if dialect is not None:
        raise UsageError(f"dialect must be None, got {dialect!r}")
    try:
        json.dumps(options)
    except (TypeError, ValueError):
        raise UsageError(f"a remote environment takes options that are JSON, got {options!r:.200}") from None
    pool = server_pool(urls, token or os.environ.get("AGENTGYM_TOKEN"), timeout, patience)
    return TwinEnv(env_id, pool, options)


_pools: weakref.WeakValueDictionary[tuple[Any, ...], ServerPool] = weakref.WeakValueDictionary()
_pools_lock = threading.Lock()


def _read(response: httpx.Response) -> Any:
    """The JSON of a reply. Raises the error that it tells of."""
    if response.status_code == 204:
        return None
    try:
        data = response.json()
    except ValueError:
        raise EnvError(
            f"{response.url} answered HTTP {response.status_code} without JSON: no server of ours?"
        ) from None
    if response.is_success:
        return data
    if not isinstance(data, dict) or "error" not in data:
        raise EnvError(f"{response.url} answered HTTP {response.status_code}: {str(data)[:200]}")
    raise error_from_json(data["error"])


def _shut(http: httpx.Client, outbox: queue.SimpleQueue[list[_Sending] | None]) -> None:
    http.close()
    outbox.put(None)


def _send_forever(connection: weakref.ref[ServerConnection], outbox: queue.SimpleQueue[list[_Sending] | None]) -> None:
    """A thread that sends what is in the outbox, together what is there together."""
    while True:
        _idle(connection, 1)
        sendings = outbox.get()
        _idle(connection, -1)
        if sendings is None:
            outbox.put(None)  # for the next thread
            return
        while len(sendings) < _BATCH and not outbox.empty():
            more = outbox.get()
            if more is None:
                outbox.put(None)
                break
            sendings += more
        if (sender := connection()) is not None:
            sender._send(sendings)
        del sender


def _idle(connection: weakref.ref[ServerConnection], change: int) -> None:
    if (sender := connection()) is not None:
        with sender._lock:
            sender._idle += change
