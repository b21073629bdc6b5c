"""The doors to MCP, Inspect AI and verifiers, tested with the packages themselves.

Their requirements exclude those of the other tests (openenv 0.10 needs mcp 1, and verifiers 0.4 needs mcp 2), so the
files of `peers` run in the virtual environment that `scripts/check` makes for them: in one process, since the imports
take longer than most tests.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
PYTHON = os.environ.get("AGENTGYM_DOORS_PYTHON")
FILES = sorted(HERE.glob("peers/check_*.py"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="AGENTGYM_DOORS_PYTHON names no Python with mcp, Inspect and verifiers"),
]


@pytest.fixture(scope="module")
def failures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str | None]]:
    """For each file that is selected, what each of its tests failed with, or None."""
    here = (item for item in request.session.items if item.path == Path(__file__) and hasattr(item, "callspec"))
    selected = {item.callspec.params["path"] for item in here}
    folders = [ROOT, *(ROOT / "adapters" / name for name in ("trl", "verl", "verifiers"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONWARNINGS": "default"}
    report = tmp_path_factory.mktemp("peers") / "report.xml"
    command = [str(PYTHON), "-m", "pytest", "-c", str(HERE / "peers" / "pytest.ini"), f"--junitxml={report}"]
    done = subprocess.run(
        [*command, *(str(path) for path in FILES if path in selected)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    found: dict[str, list[str | None]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        messages = [f"{case.get('name')}: {one.text}" for one in case if one.tag in ("failure", "error")]
        found.setdefault(case.get("classname", "").rpartition(".")[2], []).append("\n".join(messages) or None)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.removeprefix("check_"))
def test_the_door_works_with_the_peers_package(path: Path, failures: dict[str, list[str | None]]) -> None:
    assert path.stem in failures, "it has no tests"
    assert not any(failures[path.stem]), "\n\n".join(filter(None, failures[path.stem]))


def test_every_door_has_a_file() -> None:
    assert {path.stem for path in FILES} >= {"check_mcp", "check_inspect", "check_verifiers", "check_all_doors"}
