"""Reports: counts, verdict and remedies; an XML parser reads the JUnit file, and the ids are those of OpenEnv."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given

from agentgym_envs.validate import CHECKS, CheckResult, CheckSeverity, CheckStatus, ValidationReport, ValidationVerdict
from agentgym_envs.validate.table import POLICY_VERSION
from tests.trying import examples
from tests.validate.tools import RESULTS


def report_of(*statuses: tuple[str, CheckStatus]) -> ValidationReport:
    known = {check.id: check for check in CHECKS}
    return ValidationReport("Toy", "0" * 64, [CheckResult(known[name], status) for name, status in statuses])


def test_ids_levels_and_severities_are_those_of_the_policy() -> None:
    found = find_spec("openenv")
    if found is None or not found.submodule_search_locations:
        pytest.skip("openenv is not installed")
    file = Path(found.submodule_search_locations[0]) / f"validation/policies/severity-{POLICY_VERSION}.json"
    entries = json.loads(file.read_text())["entries"]
    theirs = {entry["check_id"]: (entry["level"], entry["severity"]) for entry in entries}
    ours = {c.id: (int(c.level), c.severity.value) for c in CHECKS if not c.id.startswith("agentgym.")}
    assert ours == theirs


def test_at_least_thirty_checks_of_episodes_and_scores_are_measured() -> None:
    named = [check for check in CHECKS if check.id.split(".")[0] in ("runtime", "semantic", "statistical")]
    assert sum(check.measured for check in named) >= 30


@examples(30)
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
    assert report.summary.startswith("1 of 1 measured checks passed") and report.summary.endswith("1 not measured")
    assert report.verdict is ValidationVerdict.WARN


@pytest.mark.parametrize("severity", CheckSeverity)
@pytest.mark.parametrize("status", CheckStatus)
def test_severity_and_status_decide_the_verdict(severity: CheckSeverity, status: CheckStatus) -> None:
    check = next(check for check in CHECKS if check.severity is severity and check.measured)
    severe = status is CheckStatus.ERROR or (status is CheckStatus.FAIL and severity is CheckSeverity.FAIL)
    expected = (
        ValidationVerdict.FAIL
        if severe
        else ValidationVerdict.PASS
        if status is CheckStatus.PASS
        else ValidationVerdict.WARN
    )
    assert report_of((check.id, status)).verdict is expected


def test_a_failed_check_names_the_remedy() -> None:
    row = report_of(("runtime.seed_control", CheckStatus.FAIL)).to_json()["results"][0]
    assert row["remediation"].startswith("Draw only from the `rng`")
    assert report_of(("runtime.seed_control", CheckStatus.PASS)).to_json()["results"][0]["remediation"] is None


def test_every_check_has_a_summary_and_every_measured_one_a_remedy() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.summary and bool(check.remedy) == check.measured, check.id
