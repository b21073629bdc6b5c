"""Fixtures: a browser, and the address of a viewer for the module's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.showing import chromium, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Address of a viewer for the module's `folder`."""
    with serving(folder) as found:
        yield found
