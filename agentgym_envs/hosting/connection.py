"""What a twin needs of the place where its environment lives. Worker processes and servers are such places."""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from agentgym_envs.errors import UsageError

_log = logging.getLogger(__name__)
Done = Callable[[Any], None]
"""Takes the reply of a call, or the exception it ended in. Called once, on any thread, and must not block."""


class PendingCall(NamedTuple):
    """A call whose reply is taken by `done` later."""

    session: str
    method: str
    arguments: Mapping[str, Any]
    done: Done


class Connection(ABC):
    """A place that hosts environments, each under the name of a session.

    A call raises what the environment raised, by its own class, and `SessionLost` where the session is not there any
    more: the place died, was restarted, or dropped a session that was idle for too long.
    """

    def call(self, session: str, method: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a method of `agentgym_envs.hosting.session_host` and wait for its reply (JSON)."""
        return self.ask(session, method, arguments)

    def ask(self, session: str, method: str, arguments: Mapping[str, Any], seconds: float | None = None) -> Any:
        """Post one call and wait for its reply. Raises what it ended in, and queue.Empty after `seconds`."""
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.post([PendingCall(session, method, arguments, answer.put)])
        reply = answer.get(timeout=seconds)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    @abstractmethod
    def post(self, calls: Sequence[PendingCall]) -> None:
        """Carry out calls of different sessions together; returns at once."""

    @abstractmethod
    def close_session(self, session: str) -> None:
        """Free a session. Never raises: a place that is gone has freed it already."""

    def abandon(self, session: str) -> None:
        """Free a session of which a call hangs, by force if need be."""
        self.close_session(session)


def deliver(done: Done, reply: Any) -> None:
    """Give a reply. One that cannot be taken, as where an event loop is closed by now, must not cost others theirs."""
    try:
        done(reply)
    except Exception:
        _log.exception("a reply could not be handed over")


def check_seconds(name: str, value: Any, *, or_zero: bool = False) -> None:
    """Refuse what is no time to wait, or is longer than a thread can. Raises UsageError."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= threading.TIMEOUT_MAX or not (value or or_zero):
        least = "of at least 0" if or_zero else "above 0"
        raise UsageError(f"{name} must be a number of seconds {least}, got {value!r}")


class RemoteSession(NamedTuple):
    """A new session: where it is, its name there, and what `describe_env` says of the environment."""

    connection: Connection
    session: str
    description: Mapping[str, Any]


class EnvProvider(Protocol):
    """Finds a place for a new environment."""

    def open(self, env_id: str, options: Mapping[str, Any]) -> RemoteSession:
        """Make an environment. Raises what making it here would raise, and EnvError if no place can be reached."""
