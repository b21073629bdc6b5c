"""Which worker runs which test: a file stays together, and the file expected to take longest goes first.

The tests of a file share what is expensive (a browser, a Java machine, a server, a tiny model), so one worker runs them
all: `scripts/check` has xdist hand out files in the order of collection, and this sorts them. Starting with the
longest keeps the workers busy until the end; split a file that takes minutes. Files that share something very expensive
stay together like one file.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from tests.plugins.durations import expected

GROUPS = {
    "verl": (  # imported in this process, in 10 s
        "tests/adapters/verl/test_agreement.py",
        "tests/adapters/verl/test_cli.py",
        "tests/adapters/verl/test_config.py",
        "tests/adapters/verl/test_contexts.py",
        "tests/adapters/verl/test_data.py",
        "tests/adapters/verl/test_engine.py",
        "tests/adapters/verl/test_episode_runner.py",
        "tests/adapters/verl/test_loop.py",
        "tests/adapters/verl/test_ray_hosts.py",
        "tests/adapters/verl/test_rollout_metrics.py",
    ),
    "TRL": ("tests/adapters/trl/test_interrupt.py", "tests/adapters/trl/test_processes.py"),  # a process to fork from
}
"""Files that run on one worker, by what they share."""
_GROUP_OF = {file: name for name, files in GROUPS.items() for file in files}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the groups, in each worker alike. Without workers the usual order stays."""
    if not hasattr(config, "workerinput"):
        return
    seconds: dict[str, float] = defaultdict(float)
    for item in items:
        seconds[group_of(item.nodeid)] += expected(item.nodeid)
    items.sort(key=lambda item: (-seconds[group_of(item.nodeid)], group_of(item.nodeid)))


def group_of(node_id: str) -> str:
    """The group of a test: that of its file, or the file itself."""
    file = node_id.partition("::")[0]
    return _GROUP_OF.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out groups instead of files."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class GroupScheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return GroupScheduling(config, log) if config.getoption("dist") == "loadfile" else None
