"""Ctrl-C in tests, wherever they were started.

A shell without job control starts what is in the background with SIGINT ignored, and a process hands that on to
its children, Python among them, which then installs no handler. A test that sends SIGINT would wait in vain.
"""

import signal

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Have SIGINT raise KeyboardInterrupt here, and with that do in children what it does by default."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
