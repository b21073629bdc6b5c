"""Reports: OpenEnv's own models read the JSON and agree on the verdict, and an XML parser reads the JUnit file."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.validate import CHECKS, CheckResult, CheckSeverity, CheckStatus, ValidationReport, Verdict
from agentgym_envs.validate.table import POLICY_VERSION

RESULTS = st.lists(
    st.builds(
        CheckResult,
        check=st.sampled_from(CHECKS),
        status=st.sampled_from(CheckStatus),
        evidence=st.lists(st.text(), min_size=1, max_size=3),
        measured=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=2),
        duration_s=st.floats(0, 100),
    ),
    max_size=8,
    unique_by=lambda result: result.check.id,
)


def openenv() -> Any:
    pytest.importorskip("openenv.validation.report")
    from openenv.validation import policy, report, types

    return policy, report, types


def report_of(*statuses: tuple[str, CheckStatus]) -> ValidationReport:
    known = {check.id: check for check in CHECKS}
    return ValidationReport("Toy", "0" * 64, [CheckResult(known[name], status) for name, status in statuses])


def test_ids_levels_and_severities_are_those_of_the_policy() -> None:
    policy, _, _ = openenv()
    theirs = {e.check_id: (int(e.level), e.severity.value) for e in policy.load_policy(POLICY_VERSION).entries}
    ours = {c.id: (int(c.level), c.severity.value) for c in CHECKS if not c.id.startswith("agentgym.")}
    assert ours == theirs


def test_at_least_thirty_checks_of_episodes_and_scores_are_measured() -> None:
    named = [check for check in CHECKS if check.id.split(".")[0] in ("runtime", "semantic", "statistical")]
    assert sum(check.measured for check in named) >= 30


@given(RESULTS)
def test_openenv_reads_the_json(results: list[CheckResult]) -> None:
    _, report, _ = openenv()
    ours = json.loads(json.dumps(ValidationReport("Toy/Corridor-v0", "0" * 64, results).to_json()))
    theirs = report.ValidationReport.model_validate(ours)
    assert json.loads(report.write_report(theirs)) == ours


@given(RESULTS)
def test_openenv_comes_to_the_same_verdict(results: list[CheckResult]) -> None:
    policy, report, types = openenv()
    named = [result for result in results if not result.check.id.startswith("agentgym.")]
    ours = ValidationReport("Toy", "0" * 64, named)
    theirs = [report.CheckResult.model_validate(result.to_json()) for result in named]
    lane = types.Lane(ours.to_json()["lane"])
    assert policy.apply_policy(theirs, policy.load_policy(POLICY_VERSION), lane).value == ours.verdict


@given(RESULTS)
def test_an_xml_parser_reads_the_junit_report(results: list[CheckResult]) -> None:
    report = ValidationReport("Toy", "0" * 64, results)
    (suite,) = ElementTree.fromstring(report.to_junit().encode())
    assert suite.attrib["tests"] == str(len(results)) == str(len(suite))
    kinds = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    assert {name: suite.attrib[name] for name in kinds.values()} == {
        name: str(len(suite.findall(f"testcase/{kind}"))) for kind, name in kinds.items()
    }
    failed = sum(result.failed for result in results)
    assert failed == int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    names = [f"{case.attrib['classname']}.{case.attrib['name']}" for case in suite]
    assert names == [result.check.id for result in results]


def test_a_skipped_check_is_not_counted_as_passed() -> None:
    report = report_of(("runtime.startup", CheckStatus.PASS), ("static.sbom", CheckStatus.SKIP))
    assert report.counts == {"pass": 1, "fail": 0, "skip": 1, "error": 0}
    assert report.summary.startswith("1 of 1 measured checks passed") and "1 were not measured" in report.summary
    assert report.verdict is Verdict.WARN


@pytest.mark.parametrize("severity", CheckSeverity)
@pytest.mark.parametrize("status", CheckStatus)
def test_severity_and_status_decide_the_verdict(severity: CheckSeverity, status: CheckStatus) -> None:
    check = next(check for check in CHECKS if check.severity is severity and check.measured)
    severe = status is CheckStatus.ERROR or (status is CheckStatus.FAIL and severity is CheckSeverity.FAIL)
    expected = Verdict.FAIL if severe else Verdict.PASS if status is CheckStatus.PASS else Verdict.WARN
    assert report_of((check.id, status)).verdict is expected


def test_a_failed_check_names_the_remedy() -> None:
    row = report_of(("runtime.seed_control", CheckStatus.FAIL)).to_json()["results"][0]
    assert row["remediation"].startswith("Draw only from the `rng`")
    assert report_of(("runtime.seed_control", CheckStatus.PASS)).to_json()["results"][0]["remediation"] is None


def test_every_check_has_a_summary_and_every_measured_one_a_remedy() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.summary and bool(check.remedy) == check.measured, check.id
