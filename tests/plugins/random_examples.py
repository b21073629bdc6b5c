"""Hypothesis: the same examples in every run, whatever ran before; new ones in `scripts/check all`.

`derandomize` alone does not repeat the examples of a run: hypothesis also draws constants that it finds in the modules
imported so far, and these depend on the tests that the same worker ran before.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

RANDOM = "random"

# No deadline: the computer that runs the tests may be busy with something else.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("fast", settings.get_profile("suite"), max_examples=12)
settings.register_profile(RANDOM, deadline=None, derandomize=False, max_examples=100, print_blob=True)  # CI too
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """Use fewer examples in runs without the slow tests, and constants of the code only with random examples."""
    if "not slow" in (config.getoption("markexpr") or ""):
        settings.load_profile("fast")
    if config.getoption("hypothesis_profile", None) != RANDOM:
        providers.is_local_module_file = lambda path: False  # type: ignore[assignment, attr-defined]
