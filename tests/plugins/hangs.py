"""Say where a test hangs, in a process that goes on.

pytest's own `faulthandler_timeout` starts and ends a thread for every test, which takes milliseconds on a busy
computer. Here the timer is set again at most once a minute.
"""

from __future__ import annotations

import faulthandler
import time
from typing import TextIO

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

SECONDS = 900.0
"""A test that takes longer has its threads' stack traces printed."""
EVERY = 60.0


class Timer:
    """Set again by each test that starts a minute or more after the last time; so it may go off a minute early."""

    def __init__(self, stderr: int | TextIO) -> None:
        self._stderr, self._set_at = stderr, float("-inf")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        now = time.monotonic()
        if now - self._set_at >= EVERY:
            self._set_at = now
            faulthandler.dump_traceback_later(SECONDS, file=self._stderr)

    def pytest_sessionfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Print where pytest's plugin would, which no test captures."""
    if fault_handler_stderr_fd_key in config.stash:
        config.pluginmanager.register(Timer(config.stash[fault_handler_stderr_fd_key]), "hangs")
