"""The fast run keeps the first cases of a test that is marked `slow_after`."""

from pathlib import Path

import pytest

from tests.plugins.small_suites import pytest_run

A_SUITE = """
import pytest

@pytest.mark.slow_after(2)
@pytest.mark.parametrize("case", range(5))
def test_kinds(case): pass

@pytest.mark.slow
def test_long(): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "passed"), [(("-m", "not slow"), 2), ((), 6)])
def test_the_first_cases_are_fast(tmp_path: Path, arguments: tuple[str, ...], passed: int) -> None:
    assert f"{passed} passed" in pytest_run(tmp_path, A_SUITE, *arguments).stdout
