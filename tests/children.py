"""Processes that a test has started. Any of them may end between two looks at it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import psutil


def lives(pid: int) -> bool:
    """True if it runs; zombies do not count."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ended(processes: Iterable[psutil.Process]) -> bool:
    """True if none of them runs; zombies do not count."""
    return not any(process.is_running() and lives(process.pid) for process in processes)


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill them; some may end with others."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
