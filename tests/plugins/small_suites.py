"""Small suites that run under this suite's plugins, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.plugins.rotation import ROOT, VARIABLE

CONFTEST = "from tests.conftest import pytest_addoption  # registers the plugins"


def pytest_run(folder: Path, suite: str, *arguments: str, key: str = "4") -> subprocess.CompletedProcess[str]:
    """Run the tests of a text."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_small.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments]
    return again(folder, [*command, "-o", "markers=rotating"], key)


def again(folder: Path, command: list[str] | str, key: str) -> subprocess.CompletedProcess[str]:
    """Run a command where the tests lie, with the plugins within reach."""
    environment = {**os.environ, VARIABLE: key, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    shell = isinstance(command, str)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, shell=shell)
