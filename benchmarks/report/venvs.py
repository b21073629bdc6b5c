"""Virtual environments for baseline libraries, made once and kept."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = "AGENTGYM_BENCHMARKS"
"""The variable of the environment that names the folder of virtual environments and logs."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def cache_folder() -> Path:
    """The folder of environments and logs: from the variable `CACHE`, or in the user's cache."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentgym-benchmarks"
    return Path(os.environ.get(CACHE) or default)


def thread_limits() -> dict[str, str]:
    """The environment of a script: one thread for every library that would take all cores, and this tree's code."""
    paths = [str(ROOT / part) for part in ("", "adapters/trl", "adapters/verl")]
    limits = dict.fromkeys(_THREADS, "1") | {"TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **limits, "PYTHONPATH": os.pathsep.join(paths)}


class Venv:
    """A virtual environment. `ensure` creates it, or recreates it if the wanted packages changed."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stamp = folder, folder / ".installed"
        self.python = folder / "bin" / "python"

    def ensure(self, requirements: Sequence[str], bare: Sequence[str] = ()) -> Path:
        """Its Python. `bare` are installed without what they require. Raises CalledProcessError, with pip's words."""
        wanted = "\n".join([*requirements, "", *bare])
        if self._stamp.exists() and self._stamp.read_text(encoding="utf-8") == wanted:
            return self.python
        _call(sys.executable, "-m", "venv", "--clear", str(self._folder))
        for words, chosen in (((), requirements), (("--no-deps",), bare)):
            if chosen:
                self._pip(*words, *chosen)
        self._stamp.write_text(wanted, encoding="utf-8")
        return self.python

    def _pip(self, *words: str) -> None:
        _call(str(self.python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *words)


def _call(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)


def lacking(pins: Iterable[str]) -> list[str]:
    """Those of "NAME==VERSION" or "NAME" that this Python does not have."""
    return [pin for pin in pins if not _has(*pin.partition("==")[::2])]


def _has(name: str, version: str) -> bool:
    found = installed([name]).get(name)
    return found is not None and version in ("", found)


def installed(names: Iterable[str]) -> dict[str, str]:
    """The versions of those that this Python has."""
    found = dict[str, str]()
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def required(extras: Iterable[str]) -> list[str]:
    """The names of what these extras of ours ask for, whatever their versions and markers."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names: list[str] = []
    for requirement in (one for extra in extras for one in declared[extra]):
        nested, name = re.findall(r"^agentgym-envs\[(.+)\]|^([\w.-]+)", requirement)[0]
        names += required(nested.split(",")) if nested else [name]
    return names
