"""Log records are kept for the report of a failure, and `caplog` has those of every logger."""

import logging

import pytest
from _pytest.logging import LogCaptureHandler

SILENT = logging.getLogger("tests.silent")
SILENT.propagate = False


def kept(config: pytest.Config) -> str:
    """The log that the report of a failure in this phase shows."""
    plugin = config.pluginmanager.get_plugin("logging-plugin")
    assert plugin
    return str(plugin.report_handler.stream.getvalue())


@pytest.mark.parametrize("text", ["the first", "the second"])
def test_records_are_kept_while_their_test_runs(text: str, pytestconfig: pytest.Config) -> None:
    logging.getLogger("tests.heard").warning(text)
    lines = kept(pytestconfig).splitlines()
    assert len(lines) == 1 and lines[0].endswith(text)


def test_silent_loggers_get_no_handler_for_a_test() -> None:
    assert not [handler for handler in SILENT.handlers if isinstance(handler, LogCaptureHandler)]


def test_caplog_has_the_records_of_silent_loggers(caplog: pytest.LogCaptureFixture) -> None:
    SILENT.warning("not propagated")
    assert [record.getMessage() for record in caplog.records] == ["not propagated"]


def test_records_are_kept_after_a_test_with_caplog(pytestconfig: pytest.Config) -> None:
    test_records_are_kept_while_their_test_runs("the third", pytestconfig)
