"""Which worker runs which test: a file stays together, and the longest goes first.

The tests of a file share what is expensive (a browser, a Java machine, a server, a tiny model), so one worker runs them
all. `@pytest.mark.xdist_group(NAME)` takes tests out of their file and into a group, to cut a long file in two or to
join files that need the same. Starting with the longest keeps both workers busy until the end.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.plugins.durations import expected


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Hand out files and groups in the order of collection."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # else the most numerous first

    def _split_scope(self, nodeid: str) -> str:
        test, _, group = nodeid.rpartition("@")  # xdist's way to write the group
        return group if test and "]" not in group else nodeid.partition("::")[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a worker, sort files and groups by the time they are expected to take."""
    if not hasattr(config, "workerinput"):
        return
    seconds: dict[str, float] = defaultdict(float)
    for item in items:
        seconds[_unit(item)] += expected(item.nodeid)
    items.sort(key=lambda item: (-seconds[_unit(item)], _unit(item)))


def _unit(item: pytest.Item) -> str:
    group = item.get_closest_marker("xdist_group")
    return str(group.args[0]) if group else item.nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    """Answer `--dist loadgroup`, which marks the groups in the ids."""
    return LongestFirst(config, log) if config.getoption("dist") == "loadgroup" else None
