"""`slow_after(3)`: all but the first three cases of a test are slow, so the fast run keeps a few of each kind."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.plugins.rotation import sweep_of

MARKER = "slow_after"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the later cases before pytest selects by `-m`."""
    seen: Counter[str] = Counter()
    for item in items:
        if marker := item.get_closest_marker(MARKER):
            name = sweep_of(item.nodeid)
            seen[name] += 1
            if seen[name] > marker.args[0]:
                item.add_marker(pytest.mark.slow)
