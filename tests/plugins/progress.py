"""Progress with the time left while the tests run, and how to repeat what failed after them.

`scripts/check` asks for it by `--progress`. In a terminal it is a bar, elsewhere a line every half minute.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from tests.plugins.durations import expected
from tests.plugins.rotation import ALL, SLICES, VARIABLE

EVERY_SECONDS = 30.0
MOST_IDS = 40
_LEARNT_AFTER = 20.0
"""Seconds of tests after which the pace of this machine is taken from them."""


class Estimate:
    """The time left, from what each test is expected to take and the pace so far."""

    def __init__(self, node_ids: list[str], workers: int) -> None:
        self._workers = max(1, workers)
        self._total = sum(map(expected, node_ids))
        self._done = 0.0
        self._began = time.monotonic()

    def finished(self, node_id: str) -> None:
        self._done += expected(node_id)

    @property
    def part(self) -> float:
        """The finished share, from 0 to 1."""
        return min(1.0, self._done / self._total) if self._total else 1.0

    @property
    def seconds_left(self) -> float:
        passed, left = time.monotonic() - self._began, max(0.0, self._total - self._done)
        if passed < _LEARNT_AFTER or not self._done:
            return left / self._workers
        return left * passed / self._done


class Reporter:
    """Replace pytest's dots by a bar or by lines, and end with a command that runs what failed."""

    def __init__(self, config: pytest.Config) -> None:
        self._console = Console(file=sys.__stdout__, highlight=False, soft_wrap=True)
        self._workers = len(config.getoption("tx", None) or [1])
        self._ids: list[str] = []
        self._finished = 0
        self._failed: dict[str, None] = {}  # an ordered set
        self._estimate = Estimate([], 1)
        self._next_line = 0.0
        self._bar: Progress | None = None

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Without a letter pytest counts the outcome and prints nothing; the word is for its summary of failures."""
        if report.when != "call" and not (report.failed or report.skipped):
            return None
        if hasattr(report, "wasxfail") or report.outcome not in ("passed", "failed", "skipped"):
            return None
        if not report.failed:
            return report.outcome, "", ""
        return ("failed", "", "FAILED") if report.when == "call" else ("error", "", "ERROR")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        if not self._ids:
            self._begin(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._begin([item.nodeid for item in session.items])

    def _begin(self, ids: list[str]) -> None:
        self._ids = ids
        self._estimate = Estimate(ids, self._workers)
        tests = f"{len(ids)} test{'s' * (len(ids) != 1)}"
        self._console.print(f"{tests}, about {_clock(self._estimate.seconds_left)} ({_slice()})")
        if self._console.is_terminal:
            self._bar = Progress(BarColumn(), TextColumn("{task.description}"), console=self._console, transient=True)
            self._bar.add_task("", total=1.0)
            self._bar.start()
        self._next_line = time.monotonic() + EVERY_SECONDS

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self._failed:
            self._failed[report.nodeid] = None
            self._console.print(f"FAILED {report.nodeid}", markup=False)
        if report.when == "teardown":
            self._finished += 1
            self._estimate.finished(report.nodeid)
            self._show()

    def _show(self) -> None:
        if not self._bar and time.monotonic() < self._next_line:
            return
        failed = f", {len(self._failed)} failed" if self._failed else ""
        text = f"{self._finished} of {len(self._ids)}{failed}, about {_clock(self._estimate.seconds_left)} left"
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self._estimate.part, description=text)
        else:
            self._console.print(f"  {self._estimate.part:4.0%}  {text}")
            self._next_line = time.monotonic() + EVERY_SECONDS

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """Stop the bar before pytest's summary, and say last what to run again."""
        if self._bar:
            self._bar.stop()
        yield
        if self._failed:
            for line in repeat_lines(list(self._failed), os.environ.get(VARIABLE, ALL)):
                self._console.print(line, markup=False)


def repeat_lines(failed: list[str], key: str) -> list[str]:
    """The failing tests, and one command that runs only these, in the same slice."""
    shown = [f"  {node_id}" for node_id in failed[:MOST_IDS]]
    if len(failed) > MOST_IDS:
        shown.append(f"  ... and {len(failed) - MOST_IDS} more; the command runs their files")
        failed = sorted({node_id.partition("::")[0] for node_id in failed})
    command = f"{VARIABLE}={key} {os.path.relpath(sys.executable)} -m pytest {shlex.join(failed)}"
    return ["", f"{len(shown)} failed:", *shown, "", "Run only these:", f"  {command}"]


def _slice() -> str:
    key = os.environ.get(VARIABLE, ALL)
    return "every slice" if key == ALL else f"slice {key} of {SLICES}; {VARIABLE}={key} repeats it"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds))).removeprefix("0:")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--progress", action="store_true", help="show progress and the time left instead of dots")


def pytest_configure(config: pytest.Config) -> None:
    """Report in the process that sees every test."""
    if config.getoption("progress") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config), "progress")
