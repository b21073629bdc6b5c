"""Every scenario of the suite, and the example of the tutorial, pass their validation."""

from __future__ import annotations

from typing import Any

import pytest

from agentgym_envs.validate import CHECKS, Prerequisite, load_subject, validate

SECONDS = 1_200.0
"""A budget that no scenario needs, also on a busy computer."""
QUICK = [check for check in CHECKS if Prerequisite.IMPORTABLE not in check.needs and check.id != "agentgym.served"]
"""The checks that need no other process and no server."""
NEEDS = {"SciWorld": "scienceworld", "Search": "tantivy", "WebArena": "playwright", "MiniWoB": "playwright"}


def unmet(name: str, checks: Any = CHECKS, **kwargs: Any) -> dict[str, Any]:
    """The checks that failed, and those for which no time was left."""
    report = validate(load_subject(name, kwargs, seconds=SECONDS), checks)
    late = [r for r in report.results if r.status == "skip" and not r.evidence[0].startswith("not applicable: ")]
    return {
        r.check.id: list(r.evidence) for r in [*report.results, *late] if r.status in ("fail", "error") or r in late
    }


def test_textcraft_passes() -> None:
    assert unmet("AgentGym/TextCraft-v0", QUICK) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "AgentGym/TextCraft-v0",
        "AgentGym/BabyAI-v0",
        "AgentGym/TextCraftCoop-v0",
        "examples.new_scenario:Tutorial/Bisect-v0",
    ],
)
def test_a_light_scenario_passes(name: str) -> None:
    assert unmet(name) == {}


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize("name", ["Search", "SciWorld", "WebArena", "MiniWoB"])
def test_a_heavy_scenario_passes(name: str) -> None:
    pytest.importorskip(NEEDS[name])
    assert unmet(f"AgentGym/{name}-v0") == {}
