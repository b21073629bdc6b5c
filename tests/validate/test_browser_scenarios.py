"""The scenarios in a browser pass their validation."""

from __future__ import annotations

import pytest

from tests.validate.tools import unmet


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize("name", ["WebArena", "MiniWoB"])
def test_a_scenario_in_a_browser_passes(name: str) -> None:
    pytest.importorskip("playwright")
    assert unmet(f"AgentGym/{name}-v0") == {}
