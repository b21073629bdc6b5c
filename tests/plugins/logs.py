"""Log records of tests, at a tenth of the cost.

For every phase of every test, pytest attaches two handlers to all loggers that do not propagate; torch makes fifty of
them. Here one handler stays at the root logger; only tests that ask for `caplog` have pytest's way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import pytest
from _pytest.logging import LogCaptureHandler, caplog_handler_key


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Replace what pytest's plugin does in a phase; without it (`-p no:logging`) there is nothing to do."""
    if plugin := config.pluginmanager.get_plugin("logging-plugin"):
        plugin._runtest_for = partial(_phase, plugin._runtest_for, plugin.report_handler)


@contextmanager
def _phase(
    pytests: Callable[[pytest.Item, str], AbstractContextManager[None]],
    handler: LogCaptureHandler,
    item: pytest.Item,
    when: str,
) -> Iterator[None]:
    if "caplog" in getattr(item, "fixturenames", ()):
        with pytests(item, when):
            yield
        return
    logging.getLogger().addHandler(handler)  # no effect if it is there; `pytests` removes it
    handler.reset()
    item.stash[caplog_handler_key] = handler  # which pytest deletes after the test
    try:
        yield
    finally:
        item.add_report_section(when, "log", handler.stream.getvalue().strip())
