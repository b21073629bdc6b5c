"""The threads in which a client sends submitted calls, in batches."""

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
    """A submitted call, and its JSON form in a batch."""

    call: PendingCall
    body: dict[str, Any]


class Sender(Protocol):
    """An object that sends calls."""

    def send(self, sendings: Sequence[Sending]) -> None:
        """Send calls in one request and deliver their replies. Never raises."""


class Senders:
    """The sending threads of a connection. Threads that wait for slow environments do not count towards the limit."""

    def __init__(self) -> None:
        self.outbox: queue.SimpleQueue[list[Sending] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._all = self._idle = self._waiting = 0

    def end(self) -> None:
        """End the threads."""
        self.outbox.put(None)

    def put(self, sender: Sender, sendings: list[Sending]) -> None:
        """Queue calls for sending."""
        self.outbox.put(sendings)
        self._start_thread(sender)

    def next_batch(self) -> list[Sending] | None:
        """Wait for queued calls and return them as one batch; None at the end."""
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
        """A context in which the calling thread waits for environments, so that another thread may send."""
        with self._lock:
            self._waiting += 1
        if not self.outbox.empty():
            self._start_thread(sender)
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    def _start_thread(self, sender: Sender) -> None:
        """Start a thread, unless one is idle or there are enough."""
        with self._lock:
            busy = self._all - self._idle
            if self._idle or busy - self._waiting >= _SENDERS or self._all >= _WAITING_SENDERS:
                return
            self._all += 1
        args = (weakref.ref(sender), self)
        threading.Thread(target=_send_forever, args=args, name="agentgym-sender", daemon=True).start()


def _send_forever(ref: weakref.ref[Sender], senders: Senders) -> None:
    """Send queued calls until the sender is garbage-collected."""
    while (sendings := senders.next_batch()) is not None:
        if (sender := ref()) is not None:
            sender.send(sendings)
        del sender, sendings  # or this thread would keep the objects of the last batch alive
    senders.end()  # for the next thread
