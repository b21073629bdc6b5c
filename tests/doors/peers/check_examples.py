"""The examples of the doors, as their users start them: one in each run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.rotation import part

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("name", "line"),
    part(
        [
            ("mcp_client.py", "score: 1.0"),
            ("inspect_eval.py", "score {'mean': 1.0"),
            ("verifiers_eval.py", "reward 1.0"),
        ],
        "examples of the doors",
    ),
)
def test_an_example_reaches_the_full_score(name: str, line: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert line in done.stdout
