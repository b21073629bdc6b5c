"""Waiting for events in other threads and processes, as long as a busy machine may need."""

import time
from collections.abc import Callable
from typing import Any

SECONDS = 60.0
"""The timeout in seconds. A test that passes never waits that long."""


def until(true: Callable[[], Any], seconds: float = SECONDS) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"it did not come true within {seconds:g} s"
        time.sleep(0.02)
