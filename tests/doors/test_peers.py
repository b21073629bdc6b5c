"""The doors to MCP, Inspect AI and verifiers, tested with the packages themselves.

Their requirements exclude those of the other tests (openenv 0.10 needs mcp 1, and verifiers 0.4 needs mcp 2), so each
file of `peers` runs in a process of the virtual environment that `scripts/check` makes for them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
PYTHON = os.environ.get("AGENTGYM_DOORS_PYTHON")
FILES = sorted(HERE.glob("peers/check_*.py"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="AGENTGYM_DOORS_PYTHON names no Python with mcp, Inspect and verifiers"),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.removeprefix("check_"))
def test_the_door_works_with_the_peers_package(path: Path) -> None:
    folders = [ROOT, *(ROOT / "adapters" / name for name in ("trl", "verl", "verifiers"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONWARNINGS": "default"}
    command = [str(PYTHON), "-m", "pytest", "-c", str(HERE / "peers" / "pytest.ini"), str(path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


def test_every_door_has_a_file() -> None:
    assert {path.stem for path in FILES} >= {"check_mcp", "check_inspect", "check_verifiers", "check_all_doors"}
