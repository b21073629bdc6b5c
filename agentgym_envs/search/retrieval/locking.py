"""The lock of a folder that one process at a time may write to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from agentgym_envs.errors import UsageError
from agentgym_envs.file_locks import lock

LOCK = "lock"
"""The name of the lock file."""


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a folder; it ends with the process.

    Raises UsageError if another process holds it and `wait` is false. Where files have no locks, as on Windows, two
    processes must not write to the same index.
    """
    with open(folder / LOCK, "ab") as file:
        if not lock(file, wait=wait):
            raise UsageError(f"another process is writing to {folder}; wait until it is done")
        yield
