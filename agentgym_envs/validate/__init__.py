"""Validation of environments: the checks that OpenEnv's severity policy names, and those of this suite's contract.

report = validate(load_subject("AgentGym/TextCraft-v0"))
print(report.summary)
"""

from agentgym_envs.validate.findings import Finding, NotApplicable
from agentgym_envs.validate.report import CheckResult, CheckStatus, ValidationReport, ValidationVerdict
from agentgym_envs.validate.runner import validate
from agentgym_envs.validate.subject import Prerequisite, ValidationSubject, load_subject
from agentgym_envs.validate.table import (
    CHECKS,
    CheckLevel,
    CheckSeverity,
    ValidationCheck,
    check_table,
    select_checks,
)

__all__ = [
    "CHECKS",
    "CheckLevel",
    "CheckResult",
    "CheckSeverity",
    "CheckStatus",
    "Finding",
    "NotApplicable",
    "Prerequisite",
    "ValidationCheck",
    "ValidationReport",
    "ValidationSubject",
    "ValidationVerdict",
    "check_table",
    "load_subject",
    "select_checks",
    "validate",
]
