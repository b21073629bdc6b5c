"""Tests of the installation: uv or pip, progress, and pip's own messages on failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = """Obtaining file:///somewhere/agentgym-envs
Collecting numpy>=1.26 (from agentgym-envs==0.1.0)
  Downloading numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.whl.metadata (62 kB)
Downloading numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.whl (16.0 MB)
Using cached ray-2.52.1-cp311-cp311-manylinux2014_x86_64.whl (72.0 MB)
WARNING: something harmless
Processing /wheels/torch-2.13.0-cp311-none-linux_x86_64.whl
Installing collected packages: numpy, torch, ray
"""
FAKE = '#!/bin/sh\necho "$0 $@" >>"{calls}"\nexit {code}\n'


def progress(lines: str, log: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts/pip_progress.py"), str(log)]
    return subprocess.run(command, input=lines, capture_output=True, text=True, check=True)


def test_many_lines_are_condensed_to_few(tmp_path: Path) -> None:
    done = progress(PIP, tmp_path / "log")
    assert done.stdout.splitlines()[0].strip() == "looking for packages"
    assert len(done.stdout.splitlines()) < len(PIP.splitlines()) // 2
    assert (tmp_path / "log").read_text() == PIP
    assert "WARNING" not in done.stdout + done.stderr


def test_found_packages_are_counted() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from pip_progress import Progress
    finally:
        sys.path.pop(0)
    seen = Progress()
    for line in PIP.splitlines()[:-1]:
        seen.read(line)
    assert "3 packages, 88 MB so far: torch" in str(seen)
    seen.read(PIP.splitlines()[-1])
    assert "unpacking 3 packages" in str(seen)


def test_an_error_of_pip_is_shown(tmp_path: Path) -> None:
    done = progress(PIP + "ERROR: No matching distribution found for ray\n", tmp_path / "log")
    assert "No matching distribution found for ray" in done.stderr
    assert str(tmp_path / "log") in done.stderr


def install(folder: Path, uv: int | None, pip: int, **environment: str) -> tuple[int, list[str]]:
    """Return the exit code of `install_packages` and the programs it called; uv and pip exit with given codes."""
    calls = folder / "calls"
    for name, code in (("uv/uv", uv), ("venv/bin/python", pip)):
        if code is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(FAKE.format(calls=calls, code=code))
            (folder / name).chmod(0o755)
    path = f"{folder / 'uv'}:{os.environ['PATH']}"
    script = f"set -eo pipefail; source scripts/lib.sh; install_packages {folder}/venv 'six==1' -e ."
    variables = {**os.environ, "PATH": path, **environment}
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=variables, capture_output=True, text=True)
    lines = [line.partition(" ")[2] for line in calls.read_text().splitlines()]
    return done.returncode, [line for line in lines if line.endswith("six==1 -e .")]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("uv", "pip", "chosen", "code", "called"),
    [
        (0, 1, "uv", 0, ["uv"]),
        (1, 0, "uv", 0, ["uv", "pip"]),
        (1, 1, "uv", 1, ["uv", "pip"]),
        (0, 0, "pip", 0, ["pip"]),
        (None, 0, "pip", 0, ["pip"]),
    ],
)
def test_uv_is_preferred_and_pip_is_the_fallback(
    tmp_path: Path, uv: int | None, pip: int, chosen: str, code: int, called: list[str]
) -> None:
    returned, calls = install(tmp_path, uv, pip, AGENTGYM_INSTALLER=chosen)
    assert returned == code
    assert ["pip" if call.startswith("-m pip") else "uv" for call in calls] == called


PEER = """set -euo pipefail; source scripts/lib.sh
python3() {{ command python3 "$@" --without-pip; }}  # nothing is installed, and pip takes seconds
install_packages() {{ echo "$@" >>{calls}; }}
ensure_peer fake FAKE_PYTHON json "1 MB" {requirements}
echo "$FAKE_PYTHON"
"""


@pytest.mark.slow
def test_peers_are_installed_once_into_their_own_environment(tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def ensure(requirements: str, **environment: str) -> str:
        script = PEER.format(calls=calls, requirements=requirements)
        variables = {**os.environ, "AGENTGYM_VENV": str(tmp_path / "venv"), **environment}
        done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    venv = tmp_path / "venv-fake"
    assert [ensure("six==1"), ensure("six==1"), ensure("six==2")] == [str(venv / "bin" / "python")] * 3
    assert calls.read_text().splitlines() == [f"{venv} six==1", f"{venv} six==2"]
    assert ensure("six==3", FAKE_PYTHON="mine") == "mine"  # the user's own, where nothing is installed
    assert len(calls.read_text().splitlines()) == 2
