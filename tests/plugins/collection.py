"""Cheaper collection: Python's garbage collector rests until the tests are known, and then ignores them.

Collecting makes a few million objects that live until the end. Without this the collector visits them again and
again, and so does every test that calls `gc.collect`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Freeze the modules and tests that collection leaves behind."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
