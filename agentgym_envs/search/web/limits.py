"""Limits of a paid service: how many requests a run may send, and how many in a second."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from agentgym_envs.errors import RetrieverError
from agentgym_envs.file_locks import lock


class Budget:
    """The number of requests that may still be sent.

    With a ledger, a file that holds the number of requests sent, several processes and several runs share a budget.
    """

    def __init__(self, most: int | None, ledger: Path | None = None) -> None:
        """Allow `most` requests, or any number if it is None."""
        self._most, self._ledger, self._spent, self._lock = most, ledger, 0, threading.Lock()

    def spend(self) -> None:
        """Count a request. Raises RetrieverError if the budget is used up."""
        with self._lock:
            self._spent = self._spent + 1 if self._ledger is None else self._add(self._ledger)
            if self._most is not None and self._spent > self._most:
                raise RetrieverError(f"the budget of {self._most} web searches is used up; raise `budget`")

    def _add(self, ledger: Path) -> int:
        """Add one to the number in the file, and return it; does not add beyond the budget."""
        ledger.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(ledger, os.O_RDWR | os.O_CREAT, 0o644), "r+", encoding="ascii") as file:
            lock(file)
            text = file.read().strip()
            spent = (int(text) if text.isdecimal() else 0) + 1
            if self._most is None or spent <= self._most:
                file.seek(0)
                file.write(f"{spent}\n")
                file.flush()
        return spent


class RateLimit:
    """Spaces requests evenly. Threads and event loops of a process share it."""

    def __init__(self, rate: float) -> None:
        """Allow `rate` requests per second; any number if it is 0."""
        self._gap, self._next, self._lock = 1 / rate if rate else 0.0, 0.0, threading.Lock()

    def reserve(self) -> float:
        """Return the number of seconds to wait before the next request, which takes the place."""
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._next)
            self._next = begin + self._gap
            return begin - now
