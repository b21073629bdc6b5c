"""Packages of other projects that do not fit our environment, in virtual environments of their own.

`AGENTGYM_PEERS` lists the Python programs of such environments, separated by colons. Tests that need a package run a
script with the first one that has it, and skip if none has. CONTRIBUTING.md says how to make them.
"""

import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest


@cache
def python_with(module: str) -> Path | None:
    """The program of the first environment that can import a module."""
    for name in filter(None, os.environ.get("AGENTGYM_PEERS", "").split(os.pathsep)):
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        if subprocess.run([name, "-c", code], capture_output=True, check=False).returncode == 0:
            return Path(name)
    return None


def run_with(module: str, script: str, lines: Iterable[str]) -> list[str]:
    """The lines that a script prints for lines on its stdin, in an environment with `module`; skips without one."""
    python = python_with(module)
    if python is None:
        pytest.skip(f"no environment of AGENTGYM_PEERS has {module}")
    # Without our PYTHONPATH, which is for another version of Python.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([python, "-c", script], input=text, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
