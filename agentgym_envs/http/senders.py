"""The threads with which a client sends what is posted, together what is there together."""

from __future__ import annotations

import contextlib
import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from agentgym_envs.hosting.connection import PendingCall

BATCH = 256
_SENDERS, _WAITING_SENDERS = 4, 64


class Sending(NamedTuple):
    """A posted call, and what it is in a batch."""

    call: PendingCall
    body: dict[str, Any]


class Sender(Protocol):
    """Sends calls."""

    def send(self, sendings: Sequence[Sending]) -> None:
        """Send calls in one request and hand over what they came to. Never raises."""


class Senders:
    """The threads of a connection that send what is posted. Those that wait for slow environments do not count."""

    def __init__(self) -> None:
        self.outbox: queue.SimpleQueue[list[Sending] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._all = self._idle = self._waiting = 0

    def end(self) -> None:
        """Let the threads end."""
        self.outbox.put(None)

    def put(self, sender: Sender, sendings: list[Sending]) -> None:
        """Have calls sent."""
        self.outbox.put(sendings)
        self._staff(sender)

    def take(self) -> list[Sending] | None:
        """What is there, together; None at the end."""
        with self._lock:
            self._idle += 1
        sendings = self.outbox.get()
        with self._lock:
            self._idle -= 1
        while sendings is not None and len(sendings) < BATCH:
            try:
                more = self.outbox.get_nowait()
            except queue.Empty:
                break
            if more is None:
                self.end()
                break
            sendings = sendings + more
        return sendings

    @contextlib.contextmanager
    def waiting(self, sender: Sender) -> Iterator[None]:
        """Around the time in which the calling thread waits for environments, so that another may send."""
        with self._lock:
            self._waiting += 1
        if not self.outbox.empty():
            self._staff(sender)
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    def _staff(self, sender: Sender) -> None:
        with self._lock:
            busy = self._all - self._idle
            if self._idle or busy - self._waiting >= _SENDERS or self._all >= _WAITING_SENDERS:
                return
            self._all += 1
        args = (weakref.ref(sender), self)
        threading.Thread(target=_send_forever, args=args, name="agentgym-sender", daemon=True).start()


def _send_forever(ref: weakref.ref[Sender], senders: Senders) -> None:
    """Send what is posted until the sender is garbage."""
    while (sendings := senders.take()) is not None:
        if (sender := ref()) is not None:
            sender.send(sendings)
        del sender, sendings  # or this thread would keep alive what it last worked for
    senders.end()  # for the next thread
