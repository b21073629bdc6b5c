"""The short form of `benchmarks/sciworld.py`: everything is measured, and nothing is left running."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_sciworld_is_measured_next_to_scienceworld(tmp_path: Path) -> None:
    pytest.importorskip("scienceworld")
    out = tmp_path / "sciworld.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sciworld", "--quick", "--soak", "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result = json.loads(out.read_text())
    against = result["against scienceworld"]
    assert set(against["times less"]) == set(against["median"]["ours"]) == set(against["median"]["scienceworld"])
    assert min(against["times less"].values()) > 0
    assert result["commands"] == 6
    assert result["vector"]["Java machines"] == 2
    assert sum(result["soak"]["ends"].values()) == result["soak"]["episodes"] == 8
    assert "env_error" not in result["soak"]["ends"]
    assert not [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]
