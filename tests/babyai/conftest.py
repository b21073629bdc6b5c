"""Helpers for the tests of BabyAI."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def frozen() -> Callable[[str, Callable[[], str]], str]:
    """Return the text of a golden file. If WRITE_GOLDEN is set, first write the file with the result of `make`."""

    def read(name: str, make: Callable[[], str]) -> str:
        path = GOLDEN / name
        if os.environ.get("WRITE_GOLDEN"):
            path.write_text(make(), encoding="utf-8")
        return path.read_text(encoding="utf-8")

    return read
