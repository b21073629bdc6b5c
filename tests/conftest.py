"""Settings that every test shares."""

import pytest
from hypothesis import settings

# Same examples in every run, and no deadline: the machine that runs the tests may be busy with something else.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("fast", settings.get_profile("suite"), max_examples=20)
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """Without the slow tests, fewer examples: who leaves them out cannot wait, and the whole run has all."""
    if "not slow" in (config.getoption("markexpr") or ""):
        settings.load_profile("fast")
