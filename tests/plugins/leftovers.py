"""A directory for temporary files of the processes that tests start, removed after the run.

Chromium, Ray, torch and verl leave locks and sockets in the directory for temporary files when they are killed. Two
runs, or two users, on one computer would meet each other's. Directories of `tmp_path` stay where pytest keeps them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

VARIABLE = "TMPDIR"
_KEPT = "PYTEST_DEBUG_TEMPROOT"
_FOLDER = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Create it in the process that starts the workers, which find it in the environment."""
    if hasattr(config, "workerinput"):
        return
    os.environ.setdefault(_KEPT, tempfile.gettempdir())
    config.stash[_FOLDER] = os.environ[VARIABLE] = tempfile.mkdtemp(prefix="agt-")  # short, since it has sockets
    tempfile.tempdir = None  # read the variable again


@contextmanager
def folder_with_short_path(prefix: str) -> Iterator[str]:
    """A temporary directory beside that of the run: the path of a socket has at most 107 bytes, and Ray uses 88."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=os.environ[_KEPT])
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it. The next run in this process, if any, makes another one."""
    if folder := config.stash.get(_FOLDER, None):
        os.environ[VARIABLE] = os.environ[_KEPT]
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)
