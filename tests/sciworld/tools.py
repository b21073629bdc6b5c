"""Helpers for the tests of SciWorld."""

import psutil


def running(pid: int) -> bool:
    """Return true if a process exists and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
