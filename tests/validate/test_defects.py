"""Planted defects: each is found by the checks that should find it, and by no other one."""

from __future__ import annotations

from typing import Any

import pytest

from agentgym_envs.validate import (
    CHECKS,
    Prerequisite,
    ValidationReport,
    load_subject,
    select_checks,
    static,
    surroundings,
    validate,
)
from tests.validate import toy

IN_OTHER_PROCESS = {check.id for check in CHECKS if Prerequisite.IMPORTABLE in check.needs}
EXPENSIVE = {*IN_OTHER_PROCESS, "agentgym.served", "static.dependency_pinning"}
"""Checks that start a process or a server, or search all installed packages: only where a defect needs them."""
QUICK = [check for check in CHECKS if check.measured and check.id not in EXPENSIVE]
NO_PLAN = {"semantic.oracle_max", "statistical.reward_reachability"}
"""The checks of a scenario whose oracle earns nothing."""
GAMED = {"statistical.adversarial_floor", "statistical.gameability_gap"}
"""The checks that play the attackers of `agentgym audit`."""

DEFECTS: dict[str, set[str]] = {
    "ResetCrash": {"runtime.startup"},
    "ResetFails": {"runtime.startup"},
    "SeedIgnored": {"runtime.seed_control"},
    "Unseeded": {
        "runtime.seed_control",
        "runtime.episode_determinism",
        "runtime.episode_isolation",
        "semantic.replayability",
    },
    "GlobalRng": {"agentgym.global_rng"},
    "SharedState": {"runtime.episode_isolation", "agentgym.pickle_roundtrip"},
    "Leftover": {"runtime.episode_determinism", "runtime.episode_isolation"},
    "OracleFails": NO_PLAN,
    "RewardTooLarge": {"runtime.reward_well_formed", "statistical.gameability_gap"},
    "HighFloor": {"semantic.floor_gap", "semantic.canary_floor", *GAMED},
    "LeakedPlan": {"semantic.no_solution_leakage"},
    "LeakedInInfo": {"runtime.oracle_containment"},
    "LeakedByCommand": {"runtime.oracle_containment"},
    "CheatCode": {"runtime.oracle_containment", "statistical.adversarial_floor"},
    "ClockVerdict": {"semantic.verifier_determinism"},
    "Phones": {"runtime.network_policy"},
    "Writes": {"runtime.host_containment"},
    "ChangesVariable": {"runtime.host_containment"},
    "Hoards": {"runtime.resource_bounds"},
    "OpensFiles": {"runtime.resource_bounds"},
    "StartsThreads": {"runtime.resource_bounds"},
    "StartsProcess": {"semantic.resource_envelope"},
    "Surrogate": {"runtime.observation_schema", "agentgym.gymnasium_check"},
    "WrongTurn": {"runtime.state_contract", *GAMED},
    "InfoNotJson": {"runtime.state_contract"},
    "InfoObject": {"runtime.state_contract", "runtime.trajectory_record"},
    "ScoreDrifts": {"runtime.state_contract", "runtime.reward_attribution"},
    "RefusedPlan": {"runtime.tool_declaration_accuracy"},
    "LossyGrammar": {"runtime.tool_declaration_accuracy"},
    "WrongCounts": {"runtime.task_declaration_accuracy"},
    "RestlessDraw": {"static.task_distribution_pinning", "runtime.seed_control", "agentgym.gymnasium_check"},
    "UnversionedTasks": {"static.task_distribution_pinning"},
    "EndlessSteps": {"agentgym.episode_over"},
    "NeverCloses": {"agentgym.close_final"},
    "AnyTask": {"agentgym.refused_options"},
    "LongNumbers": {"agentgym.invalid_actions"},
    "CarelessSave": {"agentgym.snapshot_roundtrip"},
    "Unpicklable": {"agentgym.pickle_roundtrip"},
    "ConstantState": {"agentgym.state_key"},
    "PlanningMoves": {"agentgym.oracle_pure", *NO_PLAN, "statistical.training_signal"},
    "NoRandomCommand": {"agentgym.random_command", "statistical.training_signal"},
    "OwnDice": {"agentgym.random_command"},
    "DrawsNothing": {"agentgym.rendering"},
    "Unsolvable": NO_PLAN,
    "WrongDifficulty": {"statistical.difficulty_separation"},
    "EveryDoorOpens": {"statistical.headroom", "statistical.training_signal"},
    "Lottery": {*NO_PLAN, "statistical.variance_bound", "statistical.gameability_gap"},
    "Gullible": {"statistical.adversarial_floor"},
    "Consolation": {
        "semantic.canary_floor",
        "statistical.headroom",
        "statistical.training_signal",
        "statistical.gameability_gap",
    },
    "NoRules": {"static.manifest"},
    "WrongRemoteOptions": {"static.resource_declaration"},
    "NumberDeclared": {"static.resource_declaration"},
    "DependsOnOptions": {"semantic.replayability"},
    "IgnoresGenerator": {"runtime.seed_control", "agentgym.gymnasium_check"},
}
"""The classes of `toy`, and the checks that fail for them. A reward that is no number breaks most other checks too."""
ELSEWHERE: dict[str, set[str]] = {
    "CorridorEnv": set(),
    "SetOrder": {"hub.cross_host_determinism"},
    "TimeZone": {"hub.cross_host_determinism", "semantic.verifier_portability"},
    "VerdictByPhone": {"hub.cross_host_determinism", "semantic.verifier_portability"},
}
"""The same for the checks that play episodes in another process."""

release = pytest.fixture(autouse=True)(toy.cleanup)


def found_by(report: ValidationReport) -> set[str]:
    return {result.check.id for result in report.results if result.status in ("fail", "error")}


def failed(name: str, checks: list[Any]) -> set[str]:
    return found_by(validate(load_subject(f"tests.validate.toy:{name}"), checks))


def test_the_toy_without_a_defect_passes() -> None:
    report = validate(load_subject("tests.validate.toy:Toy/Corridor-v0"), QUICK)
    assert {result.check.id: result.evidence for result in report.results if result.status != "pass"} == {}


@pytest.mark.parametrize("name", DEFECTS)
def test_the_named_checks_find_the_defect(name: str) -> None:
    assert failed(name, select_checks(sorted(DEFECTS[name]))) == DEFECTS[name]


@pytest.mark.slow
@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("name", DEFECTS)
def test_no_other_check_finds_the_defect(name: str) -> None:
    assert failed(name, QUICK) == DEFECTS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ELSEWHERE)
def test_another_process_finds_the_defect(name: str) -> None:
    assert failed(name, select_checks(sorted(IN_OTHER_PROCESS))) == ELSEWHERE[name]


@pytest.mark.slow
def test_a_server_finds_the_defect() -> None:
    only = select_checks(["agentgym.served"])
    assert found_by(validate(load_subject("tests.validate.toy:Toy/Corridor-v0"), only)) == set()
    assert found_by(validate(load_subject("tests.validate.toy:Toy/MainThread-v0"), only)) == {"agentgym.served"}


def test_a_reward_that_is_no_number_is_found() -> None:
    found = failed("RewardNan", select_checks(["runtime.reward_well_formed", "semantic.oracle_max"]))
    assert "runtime.reward_well_formed" in found


def test_an_id_without_a_version_is_found() -> None:
    only = select_checks(["hub.immutable_versioning"])
    assert found_by(validate(load_subject("tests.validate.toy:Toy/Unversioned"), only)) == {"hub.immutable_versioning"}


def test_a_requirement_without_a_version_is_found(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "corridors-1.0.dist-info"
    info.mkdir()
    (tmp_path / "corridors.py").write_text("from tests.validate.toy import CorridorEnv\nclass Own(CorridorEnv): pass\n")
    required = "Requires-Dist: numpy\nRequires-Dist: pytest; extra == 'dev'\nRequires-Dist: gymnasium>=1\n"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: corridors\nVersion: 1.0\n{required}")
    monkeypatch.syspath_prepend(tmp_path)
    report = validate(load_subject("corridors:Own"), select_checks(["static.dependency_pinning"]))
    assert report.results[0].evidence == ["numpy has no version bound"]


@pytest.mark.parametrize(
    ("check", "module", "bound"),
    [
        ("static.timeout_ceiling", static, "EPISODE_SECONDS"),
        pytest.param("hub.time_to_first_work", surroundings, "FIRST_WORK_SECONDS", marks=pytest.mark.slow),
    ],
)
def test_a_duration_above_its_bound_is_found(
    check: str, module: Any, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, bound, 0.0)
    assert failed("CorridorEnv", select_checks([check])) == {check}


def test_every_measured_check_finds_a_defect() -> None:
    named = set().union(*DEFECTS.values(), *ELSEWHERE.values())
    others = {
        "agentgym.served",
        "hub.immutable_versioning",
        "hub.time_to_first_work",
        "static.dependency_pinning",
        "static.timeout_ceiling",
    }
    assert {check.id for check in CHECKS if check.measured} == named | others
