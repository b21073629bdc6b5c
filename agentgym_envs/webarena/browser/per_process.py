"""Things of which a process has one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def once_a_process(make: Callable[[], _T]) -> Callable[[], _T]:
    """`make`, called when its result is first needed, by one thread; and anew in the child of a fork.

    What owns a thread does not work in such a child, where the thread does not exist.
    """
    made: list[_T] = []
    lock = threading.Lock()

    def get() -> _T:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    def forget() -> None:
        nonlocal lock
        lock = threading.Lock()
        made.clear()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
    get.__doc__ = make.__doc__
    return get
