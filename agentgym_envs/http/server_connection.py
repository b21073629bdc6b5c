"""`ServerConnection`: the client's connection to one server of the native protocol."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import httpx

from agentgym_envs.errors import AgentGymError, EnvError, SessionLost, UsageError
from agentgym_envs.hosting.connection import Connection, PendingCall, RemoteSession, deliver
from agentgym_envs.hosting.json_forms import error_from_json
from agentgym_envs.hosting.methods import METHODS
from agentgym_envs.http.address import parse_address
from agentgym_envs.http.plain_client import OddReply, PlainClient
from agentgym_envs.http.senders import BATCH, Senders, Sending
from agentgym_envs.http.transports import Transports
from agentgym_envs.http.wire import CLIENT_HEADER, NDJSON, NOT_CARRIED_OUT, PREFIX, dump

_log = logging.getLogger(__name__)
_ATTEMPTS = 4
BACKOFF_SECONDS = 0.1
"""The pause before the second attempt of a request; it doubles with each further one."""
_CONNECT_SECONDS = 5.0
_ODD_SECONDS = 60.0
"""After a reply that the plain client does not understand, httpx sends all requests for so long."""
_SESSION = re.compile(r"[A-Za-z0-9._~-]{1,256}")
_UNAVAILABLE = frozenset({502, 503, 504})
_SPLIT_BATCH = frozenset({"BadRequest", "Malformed", "TooLarge"})
"""Errors with which a server refuses a whole batch because of one call."""


class ServerConnection(Connection):
    """The connection to one server. Calls may come from any thread; submitted calls are sent together.

    After a fork the sessions belong to the parent and are lost in the child.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 120.0) -> None:
        """`timeout` is the number of seconds that a server may be silent before the request is sent again."""
        self.url = url.rstrip("/")
        address = parse_address(self.url)
        if address is None:
            raise UsageError(f"a server's address is like http://127.0.0.1:8000 or unix:/path, got {url!r}")
        self._address, self._token = address, token
        self._timeout, self._unreachable_until = timeout, 0.0
        self._start()
        _connections.add(self)

    def open(self, env_id: str, options: Mapping[str, Any]) -> tuple[RemoteSession, Mapping[str, Any]]:
        """Make a session. Returns it with the server's load.

        Raises:
            ServerFull: the server has its maximum of sessions.
            SessionLost: the server cannot be reached.
            AgentGymError: the environment could not be made.
        """
        body = {"env": env_id, "options": dict(options)}
        reply = _value(self._request("POST", f"{PREFIX}/sessions", body, attempts=1))
        try:
            opened = RemoteSession(self, reply["session"], reply["description"])
            load, valid = reply["load"], _SESSION.fullmatch(opened.session)  # it will be in a path
        except (KeyError, TypeError):
            valid = None
        if not valid:
            raise SessionLost(f"{self.url} does not answer as a server of this suite") from None
        self._numbers[opened.session] = 0
        return opened, load

    def call(self, session: str, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a remote method in a request of its own; see `Connection.call`."""
        if session not in self._numbers:
            raise _unknown_session()
        body = {key: value for key, value in arguments.items() if value is not None}
        if METHODS[method].numbered:
            body["seq"] = self._numbers[session] + 1
        try:
            reply = self._request("POST", f"{PREFIX}/sessions/{session}/{method}", body)
        except SessionLost:
            self._numbers.pop(session, None)
            raise
        self._update_number(session, method, reply)
        return _value(reply)

    def submit(self, calls: Sequence[PendingCall]) -> None:
        """Send the calls in batches; see `Connection.submit`."""
        known = [call.session in self._numbers for call in calls]  # once, since another thread may lose a session
        sendings = [self._sending(call) for call, is_known in zip(calls, known, strict=True) if is_known]
        for start in range(0, len(sendings), BATCH):
            self._senders.put(self, sendings[start : start + BATCH])
        for call, is_known in zip(calls, known, strict=True):
            if not is_known:
                call.done(_unknown_session())

    def send(self, sendings: Sequence[Sending]) -> None:
        """Send calls in one request, and repeat those without a reply. Never raises."""
        unanswered = dict(enumerate(sendings))
        outcome: Any = None
        try:
            outcome = self._send_all(unanswered)
            if type(outcome) is _Failure and outcome.type in _SPLIT_BATCH and len(unanswered) > 1:
                rest = list(unanswered.values())
                unanswered.clear()
                self.send(rest[: len(rest) // 2])
                self.send(rest[len(rest) // 2 :])
        except Exception as error:  # the callers wait for their replies
            _log.exception("a batch could not be sent")
            outcome = _Failure("SessionLost", SessionLost(f"the request failed ({_reason(error)})"))
        for sending in unanswered.values():
            self._deliver(sending, outcome)

    def close_session(self, session: str) -> None:
        """Close a session; see `Connection.close_session`. If the server cannot be reached, the session expires."""
        if self._numbers.pop(session, None) is None or time.monotonic() < self._unreachable_until:
            return
        try:
            with self._exchange("DELETE", f"{PREFIX}/sessions/{session}", None, _CONNECT_SECONDS) as response:
                response.read()
        except httpx.HTTPError as error:
            self._unreachable_until = time.monotonic() + _CONNECT_SECONDS  # many sessions may have to be closed
            _log.debug("a session at %s could not be closed: %s", self.url, error)

    def abandon(self, session: str) -> None:
        """Close a session in a thread, since the server itself may hang."""
        threading.Thread(target=self.close_session, args=(session,), daemon=True).start()

    @property
    def sessions(self) -> int:
        """The number of sessions that this process has there."""
        return len(self._numbers)

    def _start(self) -> None:
        self._headers = [("Content-Type", "application/json"), (CLIENT_HEADER, secrets.token_hex(8))]
        if self._token is not None:
            self._headers.append(("Authorization", f"Bearer {self._token}"))
        self._transports = Transports(self._address)
        self._plain: PlainClient | None = None
        if self._address.url.scheme == "http":
            self._plain = PlainClient(self._address, self._headers, self._timeout, min(self._timeout, _CONNECT_SECONDS))
        self._plain_from = 0.0
        self._numbers: dict[str, int] = {}
        self._senders = Senders()
        self._finalizer = weakref.finalize(self, _shut_down, self._transports, self._plain, self._senders)
        self._finalizer.atexit = False

    def _after_fork(self) -> None:
        """In a forked child: connections and threads belong to the parent."""
        self._finalizer.detach()
        if self._plain is not None:
            self._plain.close()  # in this process only; TLS connections cannot be closed in one process
        self._start()

    def _sending(self, call: PendingCall) -> Sending:
        body: dict[str, Any] = {"session": call.session, "method": call.method}
        if METHODS[call.method].numbered:
            body["seq"] = self._numbers.get(call.session, 0) + 1
        for key, value in call.arguments.items():
            if value is not None:
                body[key] = value
        return Sending(call, body)

    def _update_number(self, session: str, method: str, reply: Any) -> None:
        """Advance the sequence number if the call was carried out, or forget the session if it is lost."""
        if type(reply) is _Failure:
            if isinstance(reply.error, SessionLost):
                self._numbers.pop(session, None)
            if reply.type in NOT_CARRIED_OUT:
                return
        if METHODS[method].numbered and session in self._numbers:
            self._numbers[session] += 1

    def _request(self, method: str, path: str, body: Any, attempts: int = _ATTEMPTS) -> Any:
        """Send a request, again if the connection fails. Returns the reply or a `_Failure`. Raises SessionLost."""
        content = None if body is None else dump(body)
        for attempt in range(attempts):
            try:
                return _read(*self._reply(method, path, content, attempts > 1))
            except (httpx.TransportError, _Unavailable) as error:
                reason = _reason(error)
            if attempt < attempts - 1:
                time.sleep(BACKOFF_SECONDS * 2**attempt)
        raise SessionLost(f"{self.url} cannot be reached ({reason})")

    def _reply(self, method: str, path: str, content: bytes | None, repeatable: bool) -> tuple[int, bytes]:
        """Send a request once, or twice if it may be repeated and the plain client does not understand the reply."""
        if repeatable and self._plain is not None and content is not None and time.monotonic() >= self._plain_from:
            try:
                return self._plain.post(path, content)
            except OddReply as error:
                self._plain_from = time.monotonic() + _ODD_SECONDS
                _log.debug("httpx repeats a request to %s: %s", self.url, error)
        with self._exchange(method, path, content, self._timeout) as response:
            return response.status_code, response.read()

    def _exchange(
        self, method: str, path: str, content: bytes | None, timeout: float
    ) -> contextlib.AbstractContextManager[httpx.Response]:
        """Send a request over a bare transport, which costs half as much as `httpx.Client`."""
        limits = {"connect": min(timeout, _CONNECT_SECONDS), "read": timeout, "write": timeout, "pool": timeout}
        url = _url(self._address.url, path)
        request = httpx.Request(method, url, headers=self._headers, content=content, extensions={"timeout": limits})
        return self._transports.send(request, timeout)

    def _send_all(self, unanswered: dict[int, Sending]) -> _Failure | None:
        """Send calls until all are answered, and remove those from `unanswered`. Returns the failure of the rest."""
        reason = ""
        for attempt in range(_ATTEMPTS):
            try:
                failure = self._send_once(unanswered)
                if failure is not None or not unanswered:
                    return failure
                reason = "the reply was truncated"
            except (httpx.TransportError, _Unavailable) as error:
                reason = _reason(error)
            if attempt < _ATTEMPTS - 1:
                time.sleep(BACKOFF_SECONDS * 2**attempt)
        return _Failure("SessionLost", SessionLost(f"{self.url} cannot be reached ({reason})"))

    def _send_once(self, unanswered: dict[int, Sending]) -> _Failure | None:
        """Send a batch once and deliver the replies as they arrive. Returns a failure of the whole batch."""
        numbers = list(unanswered)
        content = dump({"calls": [unanswered[number].body for number in numbers], "stream": True})
        with self._exchange("POST", f"{PREFIX}/batch", content, self._timeout) as response:
            if response.headers.get("content-type") == NDJSON:
                with self._senders.waiting(self):
                    for line in _lines(response):
                        row = json.loads(line)
                        self._deliver(unanswered.pop(numbers[row["index"]]), row["result"])
                return None
            reply = _read(response.status_code, response.read())
        if type(reply) is _Failure:
            return reply
        for number, result in zip(numbers, reply["results"], strict=True):
            self._deliver(unanswered.pop(number), result)
        return None

    def _deliver(self, sending: Sending, result: Any) -> None:
        call = sending.call
        if type(result) is dict and "error" in result and "observation" not in result:
            result = _failure(result["error"])
        self._update_number(call.session, call.method, result)
        deliver(call.done, result.error if type(result) is _Failure else result)


class _Unavailable(Exception):
    """The server, or a gateway before it, cannot serve at the moment."""


class _Failure(NamedTuple):
    """An error that a server reported, and the name of its type, which this process need not have."""

    type: str
    error: AgentGymError


_connections: weakref.WeakSet[ServerConnection] = weakref.WeakSet()


def _after_fork() -> None:
    for connection in list(_connections):
        connection._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _read(status: int, content: bytes) -> Any:
    """The JSON of a reply, or the failure that it reports. Raises _Unavailable for any other reply."""
    if status in _UNAVAILABLE:
        raise _Unavailable(f"HTTP status {status}")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise _Unavailable(f"HTTP status {status} without JSON: is this a server of this suite?") from None
    if 200 <= status < 300:
        return data
    if not isinstance(data, dict) or "error" not in data:
        raise _Unavailable(f"HTTP status {status}: {str(data)[:200]}")
    return _failure(data["error"])


def _failure(error: Any) -> _Failure:
    if not isinstance(error, dict):
        return _Failure("", EnvError(str(error)))
    kind = str(error.get("type"))
    if kind in ("BadRequest", "Malformed"):
        return _Failure(kind, UsageError(str(error.get("message"))))
    if kind == "NotFound":
        return _Failure(kind, SessionLost(str(error.get("message"))))
    return _Failure(kind, error_from_json(error))


def _value(reply: Any) -> Any:
    if type(reply) is _Failure:
        raise reply.error
    return reply


def _lines(response: httpx.Response) -> Iterator[bytes]:
    """The lines of a reply as they arrive, without an unterminated last one."""
    rest = b""
    for chunk in response.iter_raw():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _unknown_session() -> SessionLost:
    return SessionLost("this process does not hold that session (any more)")


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, _Unavailable) else f"{type(error).__name__}: {error}"


@lru_cache(4096)
def _url(base: httpx.URL, path: str) -> httpx.URL:
    return base.copy_with(path=base.path.rstrip("/") + path)


def _shut_down(transports: Transports, plain: PlainClient | None, senders: Senders) -> None:
    transports.close()
    if plain is not None:
        plain.close()
    senders.end()
