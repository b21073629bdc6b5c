"""The report of a validation, as JSON in the form of OpenEnv's reports and as JUnit XML."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from agentgym_envs.validate.table import POLICY_VERSION, CheckSeverity, ValidationCheck

SIGNATURE = "openenv.yaml"
"""The only package format of OpenEnv that is served; `agentgym serve --dialect openenv` serves our environments so."""
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class CheckStatus(StrEnum):
    """The outcome of a check."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    """It was not measured; the evidence has the reason."""
    ERROR = "error"
    """The environment, or the check, raised an exception."""


class ValidationVerdict(StrEnum):
    """The outcome of all checks. WARN: something was skipped, or failed without being severe."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class CheckResult:
    """The result of one check."""

    check: ValidationCheck
    status: CheckStatus
    evidence: Sequence[str] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)
    duration_s: float = 0.0

    @property
    def failed(self) -> bool:
        """True if the environment must not pass: an error, or a failed check of the highest severity."""
        severe = self.check.severity is CheckSeverity.FAIL
        return self.status is CheckStatus.ERROR or (self.status is CheckStatus.FAIL and severe)

    def to_json(self) -> dict[str, Any]:
        """The result in the form of OpenEnv's `CheckResult`."""
        wrong = self.status in (CheckStatus.FAIL, CheckStatus.ERROR)
        return {
            "check_id": self.check.id,
            "status": self.status.value,
            "measured": dict(self.measured),
            "evidence": list(self.evidence),
            "remediation": self.check.remedy if wrong and self.check.remedy else None,
            "duration_s": round(self.duration_s, 4),
        }


@dataclass(frozen=True)
class ValidationReport:
    """The results of a validation. `source_digest` is the SHA-256 of the module of the environment's class."""

    target: str
    source_digest: str
    results: Sequence[CheckResult]

    @property
    def verdict(self) -> ValidationVerdict:
        """FAIL if a result must not pass; WARN if another check failed or was skipped."""
        if any(result.failed for result in self.results):
            return ValidationVerdict.FAIL
        passed = all(result.status is CheckStatus.PASS for result in self.results)
        return ValidationVerdict.PASS if passed else ValidationVerdict.WARN

    @property
    def counts(self) -> dict[str, int]:
        """The number of results of each status."""
        found = Counter(result.status for result in self.results)
        return {status.value: found[status] for status in CheckStatus}

    @property
    def summary(self) -> str:
        """One sentence with all counts. A skipped check is never counted as passed."""
        counts = self.counts
        measured = len(self.results) - counts["skip"]
        outcomes = f"{counts['pass']} of {measured} measured checks passed, {counts['fail']} failed"
        return f"{outcomes}, {counts['error']} with an error; {counts['skip']} not measured"

    def to_json(self) -> dict[str, Any]:
        """The report in the form of OpenEnv's `ValidationReport`.

        OpenEnv reserves some ids for operators of a hub; a report with such results belongs to "hub", not to "local".
        The form has no field for severities.
        """
        hub = any(result.check.id.startswith(("hub.", "statistical.")) for result in self.results)
        return {
            "report_schema_version": "1",
            "target": self.target,
            "source_digest": self.source_digest,
            "signature": SIGNATURE,
            "manifest": None,
            "policy_version": POLICY_VERSION,
            "lane": "hub" if hub else "local",
            "levels_run": sorted({int(result.check.level) for result in self.results}),
            "results": [result.to_json() for result in self.results],
            "verdict": self.verdict.value,
        }

    def to_junit(self) -> str:
        """The report as JUnit XML: a test case per check. A failure that is only a warning is no failure there."""
        counts = Counter(_junit_kind(result) for result in self.results)
        suite = ElementTree.Element("testsuite", name=f"agentgym validate {self.target}")
        suite.attrib |= {
            "tests": str(len(self.results)),
            "failures": str(counts["failure"]),
            "errors": str(counts["error"]),
            "skipped": str(counts["skipped"]),
            "time": f"{sum(result.duration_s for result in self.results):.3f}",
        }
        for result in self.results:
            suite.append(_junit_case(result))
        suites = ElementTree.Element("testsuites")
        suites.append(suite)
        return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _junit_kind(result: CheckResult) -> str:
    if result.status is CheckStatus.ERROR:
        return "error"
    if result.failed:
        return "failure"
    return "skipped" if result.status is CheckStatus.SKIP else ""


def _junit_case(result: CheckResult) -> ElementTree.Element:
    namespace, _, name = result.check.id.partition(".")
    case = ElementTree.Element("testcase", classname=namespace, name=name, time=f"{result.duration_s:.3f}")
    text = _NO_XML.sub("\ufffd", "\n".join(result.evidence))
    if kind := _junit_kind(result):
        message = text.partition("\n")[0]
        child = ElementTree.SubElement(case, kind, message=message)
        if kind != "skipped":
            child.text = f"{text}\n{result.check.remedy}"
    lines = [f"{name}: {value}" for name, value in result.measured.items()]
    if result.status is CheckStatus.FAIL and not result.failed:
        lines = [f"{result.check.severity}: {text}", result.check.remedy, *lines]
    ElementTree.SubElement(case, "system-out").text = _NO_XML.sub("\ufffd", "\n".join(lines))
    return case


def source_digest(kind: type[Any]) -> str:
    """The SHA-256 of the module that defines a class, or of its name if the file is unknown."""
    try:
        source = Path(inspect.getfile(kind)).read_bytes()
    except (OSError, TypeError):
        source = f"{kind.__module__}:{kind.__qualname__}".encode()
    return hashlib.sha256(source).hexdigest()
