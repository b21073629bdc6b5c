"""Temporary files of a run are in a directory of its own, which is removed after it."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.plugins.small_suites import pytest_run

A_SUITE = """
import subprocess, sys, tempfile, pytest

def test_leaves_a_file(tmp_path):
    code = "import tempfile; print(tempfile.mkstemp()[1])"
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    print("left", left, "kept", tmp_path)
"""


def test_the_directory_of_this_run_has_a_short_path(tmp_path: Path) -> None:
    mine = Path(tempfile.gettempdir())
    assert str(mine) == os.environ["TMPDIR"] and mine.is_dir() and len(str(mine)) < 40
    assert not tmp_path.is_relative_to(mine)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["here", "in a worker"])
def test_files_left_by_a_process_are_removed(tmp_path: Path, workers: list[str]) -> None:
    done = pytest_run(tmp_path, A_SUITE, "-rP", "--basetemp", str(tmp_path / "base"), *workers)
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("left ")]
    _, left, _, kept = line.split()
    assert Path(left).parent.name.startswith("agt-") and not Path(left).parent.exists()
    assert Path(kept).is_relative_to(tmp_path) and Path(kept).exists()
