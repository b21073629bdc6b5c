"""Install a wheel with each extra into an empty virtual environment, and use it there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from benchmarks.footprint import CORE, TORCH, Venv, fresh, smoke
from tests.docs.snippets import blocks, commands

TUTORIAL = "docs/tutorials/first-episode.md"
ASKS = ("play",)
"""Commands of the tutorial that wait for a person."""
DEFAULT_TORCH = "torch==2.13.0"
_SECONDS = 3000.0
_TUTORIAL_SECONDS = 300.0


def install(env: Venv, *requirements: str) -> None:
    """Install requirements with uv if it is there, otherwise with pip. Raises CalledProcessError."""
    if not shutil.which("uv") or os.environ.get("AGENTGYM_INSTALLER", "uv") != "uv":
        env.install(*requirements)
        return
    words = ["uv", "pip", "install", "-q", "--python", str(env.folder / "bin" / "python"), *requirements]
    subprocess.run(words, capture_output=True, text=True, check=True, timeout=_SECONDS)


def try_extra(scratch: Path, name: str, artefact: Path, extra: str, torch: str) -> str:
    """Install an artefact with an extra, run the tutorial for the core, and use the extra.

    Returns what was done. Raises CalledProcessError or TimeoutExpired.
    """
    with fresh(scratch) as env:
        if extra in TORCH:
            install(env, *torch.split())
        wanted = "" if extra == CORE else f"[{extra}]"
        install(env, f"{name}{wanted} @ {artefact.as_uri()}")
        env.run("python", "-m", "pip", "check")
        done = [run_tutorial(env)] if extra == CORE else []
        return "; ".join([*done, smoke(env, extra), doctor(env, extra)])


def doctor(env: Venv, extra: str) -> str:
    """The doctor's word on an extra. Raises CalledProcessError if something of it is missing."""
    found = json.loads(env.run("agentgym", "doctor", "--json"))
    missing = [one for one in found["extras"] if one["name"] == extra and not one["ready"]]
    if missing:
        raise subprocess.CalledProcessError(1, "doctor", "", f"the doctor misses a part of {extra}: {missing[0]}")
    return f"{sum(one['ready'] for one in found['environments'])} environments ready"


def run_tutorial(env: Venv) -> str:
    """Run the code of the tutorial: Python as one program, and the commands that do not wait for a person."""
    code = "\n".join(block.code for block in blocks(TUTORIAL, "python") if not block.skipped)
    env.run("python", "-c", code, timeout=_TUTORIAL_SECONDS)
    words = [line for block in blocks(TUTORIAL, "bash") if not block.skipped for line in commands(block)]
    ours = [line for line in words if line[0] == "agentgym" and line[1] not in ASKS]
    if not code or not ours:
        raise subprocess.CalledProcessError(1, TUTORIAL, "", f"{TUTORIAL} has no code to run")
    for line in ours:
        env.run(*line, timeout=_TUTORIAL_SECONDS)
    return f"tutorial: {len(code.splitlines())} lines and {len(ours)} commands"
