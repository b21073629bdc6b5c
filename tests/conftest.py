"""Settings of all tests."""

import pytest
from hypothesis import settings

from tests.plugins import durations, progress, rotation, scheduling, signals

# Same examples in every run, so that no change is red by chance; `scripts/check all`, each night, draws new ones.
# No deadline: the machine that runs the tests may be busy with something else.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("fast", settings.get_profile("suite"), max_examples=20)
settings.register_profile("random", deadline=None, max_examples=100, print_blob=True)
settings.load_profile("suite")

PLUGINS = (signals, rotation, durations, scheduling, progress)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugins before `pytest_configure`, so that they take part in it."""
    for plugin in PLUGINS:
        pluginmanager.register(plugin)


def pytest_configure(config: pytest.Config) -> None:
    """Use fewer examples in runs without the slow tests; the full run has all."""
    if "not slow" in (config.getoption("markexpr") or ""):
        settings.load_profile("fast")
