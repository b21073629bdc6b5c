"""Settings of all tests: the plugins in `tests/plugins`."""

import pytest

from tests.plugins import (
    durations,
    hangs,
    leftovers,
    logs,
    progress,
    random_examples,
    rotation,
    scheduling,
    selection,
    signals,
    startup,
)

PLUGINS = (
    startup,
    signals,
    leftovers,
    selection,
    rotation,
    durations,
    scheduling,
    progress,
    random_examples,
    logs,
    hangs,
)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugins before `pytest_configure`, so that they take part in it."""
    for plugin in PLUGINS:
        pluginmanager.register(plugin)
