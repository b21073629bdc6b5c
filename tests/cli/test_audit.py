"""`agentgym audit` from the command line: exit code, table, JSON, refusals."""

from __future__ import annotations

import pytest

from .conftest import Run

TOY, FLAWED = "tests.validate.toy:CorridorEnv", "tests.validate.toy:Gullible"
FEW = ("--tasks", "1", "--attackers", "parrot,state")


def test_a_sound_environment_ends_with_0(run: Run) -> None:
    outcome = run("audit", TOY, *FEW)
    assert outcome.code == 0
    assert "short" in outcome.out and f"{TOY}: 0 findings" in outcome.out


@pytest.mark.slow
def test_a_finding_ends_with_1_and_can_be_replayed(run: Run) -> None:
    outcome = run("audit", FLAWED, "textcraft", *FEW, "--json")
    assert outcome.code == 1
    flawed, textcraft = outcome.json
    assert textcraft["findings"] == [] and textcraft["episodes"] > 0
    finding = flawed["findings"][0]
    assert (finding["attacker"], finding["score"], finding["reproduced"]) == ("parrot", 1.0, True)
    length = finding["task"].split("/")[1]
    assert finding["actions"] == [f"pass {length} doors"]


def test_another_attacker_or_no_text_env_is_refused(run: Run) -> None:
    assert "there is no attacker nobody" in run("audit", TOY, "--attackers", "nobody").err
    assert "is no TextEnv" in run("audit", "tests.validate.toy:Echo").err
