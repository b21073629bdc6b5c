"""The scenarios without a browser, and the example of the tutorial, pass their validation."""

from __future__ import annotations

import pytest

from agentgym_envs.validate import CHECKS, Prerequisite
from tests.validate.tools import unmet

QUICK = [check for check in CHECKS if Prerequisite.IMPORTABLE not in check.needs and check.id != "agentgym.served"]
"""The checks that need no other process and no server."""
NEEDS = {"SciWorld": "scienceworld", "Search": "tantivy", "SearchRetry": "tantivy", "SearchPages": "tantivy"}


def test_textcraft_passes() -> None:
    assert unmet("AgentGym/TextCraft-v0", QUICK) == {}


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize(
    "name",
    [
        "AgentGym/TextCraft-v0",
        "AgentGym/BabyAI-v0",
        "AgentGym/TextCraftCoop-v0",
        "AgentGym/PlannerActor-v0",
        "examples.new_scenario:Tutorial/Bisect-v0",
    ],
)
def test_a_light_scenario_passes(name: str) -> None:
    assert unmet(name) == {}


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize("name", NEEDS)
def test_a_heavy_scenario_passes(name: str) -> None:
    pytest.importorskip(NEEDS[name])
    assert unmet(f"AgentGym/{name}-v0") == {}
