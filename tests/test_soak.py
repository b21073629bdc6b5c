"""The short form of `benchmarks/soak.py`: a server under hostile load for a few seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.rotating
@pytest.mark.slow
def test_a_server_under_hostile_load_stays_correct_and_leaks_nothing(tmp_path: Path) -> None:
    out = tmp_path / "soak.json"
    words = ["--episodes", "300", "--isolated-episodes", "60", "--idle-seconds", "3", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert out.exists(), done.stderr
    server, workers = json.loads(out.read_text())["parts"]
    for part in (server, workers):
        verdicts = dict(part["verdicts"])
        del verdicts["memory_flat"]  # the test is too short: two processes have just started
        assert all(verdicts.values()), part
        counts = part["counts"]
        assert counts["episodes"] >= 60
        assert counts["told"] == counts["steps"] > 300
        assert all(counts[name] > 0 for name in ("killed", "hung", "vanished", "closed_again", "repeats", "refused"))
        assert part["wrong"] == []
        assert part["sessions_left"] == part["exit_status"] == 0
    assert server["memory"]["growth"] < 0.1
    assert server["counts"]["episodes"] >= 300
