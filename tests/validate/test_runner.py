"""The runner: budget, environments that hang or crash, other kinds of environments, and selected checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UsageError
from agentgym_envs.validate import (
    CHECKS,
    CheckStatus,
    ValidationReport,
    ValidationSubject,
    ValidationVerdict,
    load_subject,
    select_checks,
    validate,
)
from agentgym_envs.validate.report import source_digest
from tests.validate import toy


def statuses(report: ValidationReport) -> dict[str, str]:
    return {result.check.id: result.status.value for result in report.results}


def ticking(step: float) -> Callable[[], float]:
    """A clock that advances with every look at it."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += step
        return now

    return clock


def test_checks_after_the_end_of_the_budget_are_skipped_with_the_reason() -> None:
    subject = ValidationSubject(toy.CorridorEnv, "toy", seconds=20, clock=ticking(0.1))
    report = validate(subject, select_checks(["runtime", "semantic"]))
    assert report.results[-1].status is CheckStatus.SKIP
    assert report.results[-1].evidence == ["not measured: the budget of 20 s is used up"]
    assert statuses(report)["runtime.startup"] == "pass"
    assert report.verdict is ValidationVerdict.WARN


def test_a_stuck_environment_is_interrupted_at_the_end_of_the_budget() -> None:
    report = validate(load_subject("tests.validate.toy:Stuck", seconds=0.3), select_checks(["runtime"]))
    assert report.results[0].status is CheckStatus.SKIP and "budget of 0.3 s" in report.results[0].evidence[0]
    assert set(statuses(report).values()) == {"skip"}


def test_without_a_start_all_other_checks_are_skipped() -> None:
    report = validate(load_subject("tests.validate.toy:ResetCrash"), select_checks(["semantic"]))
    assert report.results[0].evidence == ["KeyError: 'a bug'"]
    assert statuses(report).pop("runtime.startup") == "error" and report.verdict is ValidationVerdict.FAIL
    assert {tuple(result.evidence) for result in report.results[1:]} == {("unmet dependency: runtime.startup",)}


def test_a_crash_in_a_check_leaves_the_others_alone() -> None:
    class Fragile(toy.CorridorEnv):
        def _plan(self) -> Any:
            raise ZeroDivisionError("a bug")

    report = validate(ValidationSubject(Fragile, "toy"), select_checks(["runtime"]))
    assert statuses(report)["runtime.tool_declaration_accuracy"] == "error"
    assert statuses(report)["runtime.seed_control"] == "pass"


def test_an_environment_that_exits_is_an_error_of_the_check() -> None:
    class Exiting(toy.CorridorEnv):
        def _draw(self) -> str:
            raise SystemExit(3)

    report = validate(ValidationSubject(Exiting, "toy"), select_checks(["agentgym.rendering"]))
    assert statuses(report) == {"agentgym.rendering": "error"}


def test_a_plain_environment_is_measured_as_far_as_it_goes() -> None:
    report = validate(ValidationSubject(toy.Echo, "Echo"), [c for c in CHECKS if c.id != "static.dependency_pinning"])
    found = statuses(report)
    assert {found[name] for name in found if name.startswith("statistical.")} == {"skip"}
    passed = {
        "runtime.reward_well_formed",
        "runtime.seed_control",
        "runtime.episode_determinism",
        "runtime.network_policy",
    }
    passed |= {
        "runtime.resource_bounds",
        "semantic.verifier_determinism",
        "semantic.replayability",
        "agentgym.global_rng",
    }
    assert {found[name] for name in passed} == {"pass"}
    assert set(found.values()) == {"pass", "skip"}
    assert all(
        result.evidence[0].startswith("not applicable: ") for result in report.results if result.status == "skip"
    )


def test_a_plain_environment_that_ignores_the_seed_fails() -> None:
    found = statuses(validate(ValidationSubject(toy.DeafEcho, "Echo"), select_checks(["runtime"])))
    assert found["runtime.seed_control"] == found["runtime.episode_determinism"] == "fail"


def test_an_environment_without_an_oracle_skips_its_checks() -> None:
    class Unplanned(toy.CorridorEnv):
        def _plan(self) -> Any:
            return TextEnv._plan(self)

    found = statuses(validate(ValidationSubject(Unplanned, "toy"), select_checks(["semantic", "statistical"])))
    assert found["semantic.oracle_max"] == found["semantic.no_solution_leakage"] == "skip"
    assert found["semantic.floor_gap"] == found["statistical.headroom"] == "pass"


@pytest.mark.slow
def test_an_environment_of_a_server_passes() -> None:
    run = pytest.importorskip("agentgym_envs.http.run", reason="the extra serve is not installed")
    env_id = "Toy/Corridor-v0"
    with run.background_server([env_id]) as url:
        found = statuses(validate(load_subject(env_id, {"base_url": url})))
    assert set(found.values()) == {"pass", "skip"}
    assert found["semantic.oracle_max"] == found["runtime.network_policy"] == "pass"
    assert found["runtime.host_containment"] == "skip"


def test_an_environment_with_numbers_is_refused() -> None:
    with pytest.raises(UsageError, match="only environments with texts"):
        validate(load_subject("CartPole-v1"))


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot be made with the arguments .'color': 3"):
        validate(load_subject("tests.validate.toy:CorridorEnv", {"color": 3}))


def test_an_error_of_usage_within_an_episode_is_the_result_of_its_check() -> None:
    class Misusing(toy.CorridorEnv):
        def _begin(self, task: Any, rng: Any) -> str:
            raise UsageError("no such world")

    report = validate(ValidationSubject(Misusing, "toy"), select_checks(["runtime.startup"]))
    assert statuses(report) == {"runtime.startup": "error"}


@pytest.mark.parametrize("name", ["no/such-v0", "tests.validate.toy:Nothing", "no_such_module:Env"])
def test_an_unknown_environment_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        load_subject(name)


def test_arguments_reach_the_environment() -> None:
    subject = load_subject("tests.validate.toy:Toy/Corridor-v0", {"groups": ["long"]})
    assert {start.group for start in subject.starts} == {"long"}


def test_the_sample_covers_splits_and_groups() -> None:
    starts = load_subject("tests.validate.toy:CorridorEnv").starts
    splits = {task.id: task.split for task in toy.TASKS}
    assert {(splits[start.task_id or ""], start.group) for start in starts} == {
        (split, group) for split in toy.SPLITS for group in ("short", "long")
    }


def test_checks_are_selected_by_id_and_by_namespace() -> None:
    assert [check.id for check in select_checks(["runtime.seed_control"])] == ["runtime.seed_control"]
    assert {check.id.partition(".")[0] for check in select_checks(["semantic", "hub"])} == {"semantic", "hub"}
    assert select_checks(None) == list(CHECKS)
    with pytest.raises(UsageError, match=r"no check semantics; use an id such as runtime\.startup"):
        select_checks(["semantics"])


def test_the_digest_is_that_of_the_source_file() -> None:
    assert source_digest(toy.CorridorEnv) == source_digest(toy.Echo) != source_digest(int)
    assert len(source_digest(int)) == 64
