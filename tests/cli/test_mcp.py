"""`agentgym mcp` without the packages that it needs; `tests/doors` tests it with them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

from agentgym_envs.errors import MissingExtra
from agentgym_envs.mcp import check_packages

from .conftest import Run


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Pretend that only these of MCP's packages are installed."""
    find = importlib.util.find_spec

    def pretend(*names: str) -> None:
        def found(name: str, package: str | None = None) -> Any:
            return (name in names or None) if name in ("mcp", "mcp_types") else find(name, package)

        monkeypatch.setattr(importlib.util, "find_spec", found)
        monkeypatch.setattr("importlib.metadata.version", lambda name: "1.30.0")

    return pretend


def test_a_missing_package_is_named(installed: Callable[..., None], run: Run) -> None:
    installed()
    done = run("mcp", "textcraft")
    assert done.code == 1 and "pip install 'agentgym-envs[mcp]'" in done.err
    done = run("serve", "textcraft", "--dialect", "mcp", "--port", "0")
    assert done.code == 1 and "pip install 'agentgym-envs[mcp]'" in done.err


def test_an_older_package_is_named(installed: Callable[..., None]) -> None:
    installed("mcp")
    with pytest.raises(MissingExtra, match=r"1\.30\.0 is installed.*openenv"):
        check_packages()
    installed("mcp", "mcp_types")
    check_packages()
