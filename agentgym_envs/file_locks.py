"""Locks on files, against other processes."""

from __future__ import annotations

from typing import IO, Any


def lock(file: IO[Any], *, wait: bool = True) -> bool:
    """Lock an open file until it is closed, at the latest until the process ends.

    Returns False if another process holds the lock and `wait` is false. Windows and some network disks have no such
    locks; there this does nothing and returns True.
    """
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | (0 if wait else LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True
