"""The lock of a folder that one process at a time may write to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from agentgym_envs.errors import UsageError

LOCK = "lock"
"""The name of the lock file."""


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a folder; it ends with the process.

    Raises UsageError if another process holds it and `wait` is false. On Windows there is no lock, and two processes
    must not write to the same index.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(folder / LOCK, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise UsageError(f"another process is writing to {folder}; wait until it is done") from None
        yield
