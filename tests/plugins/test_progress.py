"""Progress, the time left, and the command that runs again what failed."""

import time
from pathlib import Path
from typing import Literal

import pytest

from tests.plugins import durations
from tests.plugins.progress import Estimate, repeat_lines
from tests.plugins.small_suites import again, pytest_run

A_SUITE = """
import pytest
from tests.plugins.rotation import SLICES

@pytest.mark.parametrize("case", ["a b", "it's", "x@y"])
def test_cases(case): assert case == "a b"

def test_plain(): assert False

@pytest.mark.rotating
@pytest.mark.parametrize("case", range(SLICES))
def test_swept(case): assert case < 0

@pytest.fixture
def broken(): raise ValueError

def test_with_a_broken_fixture(broken): pass

def test_skipped(): pytest.skip("why")
"""
FAILING = {"test_cases[it's]", "test_cases[x@y]", "test_plain", "test_with_a_broken_fixture"}


@pytest.mark.rotating
@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2", "--dist", "loadfile"]], ids=["here", "in workers"])
def test_a_failing_run_prints_a_command_for_the_failed_tests(tmp_path: Path, workers: list[str]) -> None:
    done = pytest_run(tmp_path, A_SUITE, "--progress", "-q", *workers)
    assert done.returncode == 1
    head, _, tail = done.stdout.partition("failed:\n")
    assert "test_small.py::test_plain" in head, "said when it happens, too"
    names, _, command = tail.partition("Run only these:\n")
    named = {line.strip().removeprefix("test_small.py::") for line in names.splitlines() if line.strip()}
    assert named > FAILING and len(named) == len(FAILING) + 1, "and the failing case of the sweep"
    repeated = again(tmp_path, command.strip() + " -p no:cacheprovider -o markers=rotating", key="0")
    assert repeated.returncode == 1
    assert f"{len(named) - 1} failed, 1 error" in repeated.stdout


@pytest.mark.slow
def test_a_run_without_failures_prints_no_command(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "def test_it(): pass", "--progress", "-q")
    assert done.returncode == 0
    assert "1 test," in done.stdout and "1 passed" in done.stdout
    assert "Run only these" not in done.stdout


def test_many_failures_are_repeated_by_their_files() -> None:
    lines = repeat_lines([f"tests/test_{name}.py::test[{i}]" for name in "ab" for i in range(30)], "3")
    assert len(lines) < 50
    assert lines[-1].endswith("-m pytest tests/test_a.py tests/test_b.py")
    assert "AGENTGYM_SLICE=3" in lines[-1]


def test_the_time_left_follows_the_measured_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(durations, "known", lambda: {"long": 60.0, "short": 20.0})
    estimate = Estimate(["long", "short[1]", "short[2]", "short[3]"], workers=2)
    assert estimate.seconds_left == 60.0  # of 120 s, two at a time
    now += 120.0  # twice as slow as expected
    for node_id in ("long", "short[1]"):
        estimate.finished(node_id)
    assert estimate.part == pytest.approx(80 / 120)
    assert estimate.seconds_left == pytest.approx(60.0)
    for node_id in ("short[2]", "short[3]"):
        estimate.finished(node_id)
    assert (estimate.part, estimate.seconds_left) == (1.0, 0.0)


def test_durations_are_measured_and_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "FILE", tmp_path / "durations.json")
    monkeypatch.setattr(durations, "known", lambda: {"old": 3.0, "a": 9.0})
    recorder = durations.Recorder()
    seconds = {"a[1]": 2.0, "a[2]": 4.0, "quick": 0.01, "waited[1]": 60.0}
    for phase in ("setup", "call"):
        for node_id, each in seconds.items():
            outcome: Literal["passed", "failed"] = "failed" if phase == "call" and node_id == "waited[1]" else "passed"
            report = pytest.TestReport(node_id, ("f", 1, "t"), {}, outcome, None, phase, duration=each / 2)
            recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    assert (tmp_path / "durations.json").read_text() == '{\n "a": 3.0,\n "old": 3.0\n}\n'
