"""Differential tests: OpenEnv's own models read our reports, and its policy comes to the same verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from agentgym_envs.validate import CheckResult, ValidationReport
from agentgym_envs.validate.table import POLICY_VERSION
from tests.trying import examples
from tests.validate.tools import RESULTS

pytestmark = pytest.mark.slow  # importing it takes seconds


def openenv() -> Any:
    pytest.importorskip("openenv.validation.report")
    from openenv.validation import policy, report, types  # type: ignore[import-untyped]

    return policy, report, types


@examples(50)
@given(RESULTS)
def test_openenv_reads_the_json(results: list[CheckResult]) -> None:
    _, report, _ = openenv()
    ours = json.loads(json.dumps(ValidationReport("Toy/Corridor-v0", "0" * 64, results).to_json()))
    theirs = report.ValidationReport.model_validate(ours)
    assert json.loads(report.write_report(theirs)) == ours


@examples(50)
@given(RESULTS)
def test_openenv_comes_to_the_same_verdict(results: list[CheckResult]) -> None:
    policy, report, types = openenv()
    named = [result for result in results if not result.check.id.startswith("agentgym.")]
    ours = ValidationReport("Toy", "0" * 64, named)
    theirs = [report.CheckResult.model_validate(result.to_json()) for result in named]
    lane = types.Lane(ours.to_json()["lane"])
    assert policy.apply_policy(theirs, policy.load_policy(POLICY_VERSION), lane).value == ours.verdict


def test_the_bounds_are_those_of_the_policy() -> None:
    from agentgym_envs.validate import findings

    policy, _, _ = openenv()
    bounds = policy.load_policy(POLICY_VERSION).bounds
    assert bounds.max_oracle_tolerance >= findings.ORACLE_TOLERANCE
    assert bounds.min_floor_margin <= findings.FLOOR_MARGIN
    assert bounds.max_variance_tolerance >= findings.SPREAD_TOLERANCE
    assert bounds.max_episode_timeout_s >= findings.EPISODE_SECONDS
