"""A browser, and a viewer over what a module shows."""

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
    """Of the module's own `folder`."""
    with serving(folder) as found:
        yield found
