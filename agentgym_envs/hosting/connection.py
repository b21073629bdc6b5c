"""The interface to a process that hosts environments: requests, pending calls, connections and providers.

Worker processes, servers and Ray actors implement it.
"""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from agentgym_envs.errors import UsageError

_log = logging.getLogger(__name__)
Done = Callable[[Any], None]
"""Receives the reply of a call or the exception that it raised. Called once, on any thread; it must not block."""


class Request(NamedTuple):
    """A reset or a step of an environment."""

    method: Literal["reset", "step"]
    action: str = ""
    seed: int | None = None
    options: dict[str, Any] | None = None


class PendingCall(NamedTuple):
    """A call of a remote method; `done` receives its reply later."""

    session: str
    method: str
    arguments: Mapping[str, Any]
    done: Done


class Connection(ABC):
    """A connection to a process that hosts environments, each in a session with a name.

    A call raises the exception of the environment with its own class. It raises `SessionLost` if the session is gone,
    because the process died or was restarted, or because the session expired.
    """

    def call(self, session: str, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method of `hosting.methods` and wait for its reply (JSON)."""
        return self.submit_and_wait(session, method, arguments)

    def submit_and_wait(
        self, session: str, method: str, arguments: Mapping[str, Any], seconds: float | None = None
    ) -> Any:
        """Submit one call and wait for its reply. Raises what the call raises, and queue.Empty after `seconds`."""
        replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.submit([PendingCall(session, method, arguments, replies.put)])
        reply = replies.get(timeout=seconds)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    @abstractmethod
    def submit(self, calls: Sequence[PendingCall]) -> None:
        """Start calls of different sessions together, and return at once."""

    @abstractmethod
    def close_session(self, session: str) -> None:
        """Close a session. Never raises: a process that is gone has no session left to close."""

    def abandon(self, session: str) -> None:
        """Close a session with a call that hangs, by force if necessary."""
        self.close_session(session)


def deliver(done: Done, reply: Any) -> None:
    """Pass a reply on and log an exception, so that one failing receiver does not cost others their replies."""
    try:
        done(reply)
    except Exception:
        _log.exception("a reply could not be delivered")


def check_seconds(name: str, value: Any, *, or_zero: bool = False) -> None:
    """Raise UsageError unless `value` is a number of seconds that a thread can wait."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= threading.TIMEOUT_MAX or not (value or or_zero):
        minimum = "of at least 0" if or_zero else "above 0"
        raise UsageError(f"{name} must be a number of seconds {minimum}, got {value!r}")


class RemoteSession(NamedTuple):
    """An open session: its connection, its name there, and the description of its environment."""

    connection: Connection
    session: str
    description: Mapping[str, Any]


class EnvProvider(Protocol):
    """Opens sessions: a pool of worker processes, of servers, or of Ray actors."""

    def open(self, env_id: str, options: Mapping[str, Any]) -> RemoteSession:
        """Make an environment. Raises what making it locally raises, and EnvError if no process can be reached."""
