"""`agentgym validate` from the command line: exit code, report files, selection of checks, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agentgym_envs.validate import select_checks

from .conftest import Run

CHECKS = "runtime.seed_control,semantic"
DEFECT = "tests.validate.toy:OracleFails"


def test_a_passing_environment_ends_with_0(run: Run) -> None:
    outcome = run("validate", "textcraft", "--checks", "runtime.startup,runtime.seed_control")
    assert outcome.code == 0
    assert "pass AgentGym/TextCraft-v0: 2 of 2 measured checks passed" in outcome.out


def test_a_failing_environment_ends_with_1_and_shows_finding_and_remedy(run: Run) -> None:
    outcome = run("validate", DEFECT, "--checks", "semantic.oracle_max")
    assert outcome.code == 1
    assert "semantic.oracle_max" in outcome.out and "Correct `_plan`" in outcome.out
    assert f"fail {DEFECT}: 0 of 1 measured checks passed, 1 failed" in outcome.out


def test_a_warning_ends_with_0(run: Run) -> None:
    outcome = run("validate", "tests.validate.toy:NoRandomCommand", "--checks", "agentgym.random_command")
    assert outcome.code == 0 and "warn: 288 of 288 random commands are refused" in " ".join(outcome.out.split())


def test_all_shows_measured_values_and_skipped_checks(run: Run) -> None:
    out = " ".join(run("validate", DEFECT, "--checks", "static.sbom,runtime.seed_control", "--all").out.split())
    assert "seeds 12, distinct" in out and "not applicable: the metadata" in out


def test_the_reports_are_written(run: Run) -> None:
    run("validate", DEFECT, "--checks", "semantic.oracle_max,static", "--json", "r.json", "--junit", "r.xml")
    report = json.loads(Path("r.json").read_text())
    assert (report["target"], report["verdict"]) == (DEFECT, "fail")
    suite = ElementTree.parse("r.xml").getroot()[0]
    assert suite.attrib["failures"] == "1" and int(suite.attrib["skipped"]) >= 5


def test_json_can_go_to_stdout_alone(run: Run) -> None:
    outcome = run("validate", DEFECT, "--checks", "semantic.oracle_max", "--json", "-")
    assert outcome.code == 1
    assert [row["check_id"] for row in outcome.json["results"]] == ["semantic.oracle_max"]


def test_arguments_reach_the_environment(run: Run) -> None:
    words = ("validate", "textcraft", "--checks", "static.manifest", "--env-arg", 'instructions=""')
    assert "`instructions` is empty" in " ".join(run(*words).out.split())


@pytest.mark.slow
def test_the_budget_bounds_the_checks(run: Run) -> None:
    names = ",".join(check.id for check in select_checks(["runtime"]))
    outcome = run("validate", "tests.validate.toy:Stuck", "--budget", 1, "--checks", names)
    assert outcome.code == 0
    assert "0 of 0 measured checks passed" in outcome.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("textcraft", "--checks", "semantics"), "there is no check semantics"),
        (("textcroft",), "did you mean AgentGym/TextCraft-v0"),
        (("CartPole-v1",), "only environments with texts"),
        (("textcraft", "--budget", "nan"), "not a finite number"),
        (("textcraft", "--junit", "."), "is a folder"),
        (("tests.validate.toy:Nothing",), "neither an environment id nor a class"),
    ],
)
def test_a_wrong_request_is_refused(words: tuple[str, ...], says: str, refuses: Run) -> None:
    assert says in refuses("validate", *words).err
