"""The timer that says where a test hangs is set again once a minute."""

import faulthandler
import sys
import time
from typing import Any

import pytest

from tests.plugins.hangs import EVERY, SECONDS, Timer


def test_the_timer_is_set_again_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = 1.0, list[Any]()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, file: calls.append((seconds, file)))
    timer = Timer(sys.stderr)
    for now in (1.0, 2.0, EVERY, EVERY + 1.0, EVERY + 2.0):  # noqa: B007
        timer.pytest_runtest_setup()
    assert calls == [(SECONDS, sys.stderr)] * 2


def test_this_run_has_the_timer(pytestconfig: pytest.Config) -> None:
    assert isinstance(pytestconfig.pluginmanager.get_plugin("hangs"), Timer)
