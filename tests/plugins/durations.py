"""Expected durations of tests, so that long ones start first and the progress line can estimate the time left.

`durations.json` beside this file has the mean seconds of a case for every test function above `WORTH_KEEPING`. It is
an aid, and nothing fails when it is out of date; `AGENTGYM_DURATIONS=1 scripts/check all` rewrites it.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.plugins.rotation import sweep_of

FILE = Path(__file__).with_name("durations.json")
VARIABLE = "AGENTGYM_DURATIONS"
WORTH_KEEPING = 0.2
UNKNOWN = 0.02


@cache
def known() -> dict[str, float]:
    """Mean seconds by test function; empty where there is no file."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def expected(node_id: str) -> float:
    """The expected seconds of a test."""
    return known().get(sweep_of(node_id), UNKNOWN)


class Recorder:
    """Measure every test, and merge the seconds of those that passed into the file at the end."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """A test that failed may have waited for a minute; its seconds say nothing."""
        cases: dict[str, list[float]] = defaultdict(list)
        for node_id in self._seconds.keys() - self._failed:
            cases[sweep_of(node_id)].append(self._seconds[node_id])
        means = {name: round(sum(each) / len(each), 2) for name, each in cases.items()}
        merged = {name: mean for name, mean in {**known(), **means}.items() if mean >= WORTH_KEEPING}
        FILE.write_text(json.dumps(merged, indent=1, sort_keys=True) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that sees every report."""
    if os.environ.get(VARIABLE) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(), "durations")
