"""Cheaper starts: of the tests, and of the Python processes that they start.

Collection leaves a few million objects that live until the end. The garbage collector rests until then and ignores
them afterwards; without this it visits them again and again, and so does every test that calls `gc.collect`.
`site/sitecustomize.py` makes the imports of other processes cheaper; they find it by PYTHONPATH.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SITE = str(Path(__file__).with_name("site"))
THRESHOLD = 50_000, 10, 10
"""Of the collector in other processes. Here it stays, since tests measure the memory of this process."""
OPTIONAL = ("sklearn", "wandb")
"""Packages that transformers and TRL import where they are installed, though training does not need them."""


@contextmanager
def without_optional_packages() -> Iterator[None]:
    """Hide them from what is imported inside; wandb for good, since TRL asks later whether it has imported it."""
    hidden = [name for name in OPTIONAL if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in {*hidden} - {"wandb"}:
            del sys.modules[name]


def python_path(*folders: Path) -> str:
    """The value of PYTHONPATH for a process that a test starts."""
    return os.pathsep.join([SITE, *map(str, folders)])


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Have every process of the tests start faster. In a worker, give back sklearn, which dense search needs."""
    if sys.modules.get("sklearn", sys) is None:
        del sys.modules["sklearn"]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SITE, os.environ.get("PYTHONPATH")]))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Freeze the modules and tests that collection leaves behind."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
