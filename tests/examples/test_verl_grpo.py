"""The script for stock verl: its data and its configuration. Training needs a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("verl") is None, reason="the extra verl is not installed")

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.rotating
def test_verl_composes_the_configuration(tmp_path: Path) -> None:
    script = str(ROOT / "examples/verl_grpo.sh")
    path = os.pathsep.join([str(ROOT), str(ROOT / "adapters/trl"), str(ROOT / "adapters/verl")])
    done = subprocess.run(
        ["bash", script, "some/model", str(tmp_path / "run"), "--cfg", "job"],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "max_turns: 10,20,30" in done.stdout and "adv_estimator: grpo" in done.stdout and "some/model" in done.stdout
    assert (tmp_path / "run/data/train.parquet").is_file()


def test_the_script_prints_its_usage_without_arguments() -> None:
    done = subprocess.run(["bash", str(ROOT / "examples/verl_grpo.sh")], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "MODEL OUT" in done.stderr
