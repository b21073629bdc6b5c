"""A decorator for objects that exist once per process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def once_per_process(make: Callable[[], _T]) -> Callable[[], _T]:
    """Call `make` on first use and return the same result from then on; call it again in a forked child.

    An object that owns a thread does not work in a forked child, because the thread does not exist there.
    """
    result: list[_T] = []
    lock = threading.Lock()

    def get() -> _T:
        with lock:
            if not result:
                result.append(make())
            return result[0]

    def forget() -> None:
        nonlocal lock
        lock = threading.Lock()
        result.clear()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
    get.__doc__ = make.__doc__
    return get
