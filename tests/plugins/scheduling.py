"""Which worker runs which test: a file stays together, and the file expected to take longest goes first.

The tests of a file share what is expensive (a browser, a Java machine, a server, a tiny model), so one worker runs them
all: `scripts/check` has xdist hand out files in the order of collection, and this sorts them. Starting with the
longest keeps the workers busy until the end; split a file that takes minutes.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.plugins.durations import expected


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the files, in each worker alike. Without workers the usual order stays."""
    if not hasattr(config, "workerinput"):
        return
    seconds: dict[str, float] = defaultdict(float)
    for item in items:
        seconds[_file(item)] += expected(item.nodeid)
    items.sort(key=lambda item: (-seconds[_file(item)], _file(item)))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
