"""`validate`: run checks on an environment within a budget of time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from agentgym_envs.core import describe
from agentgym_envs.validate.findings import BudgetUsed, Finding, NotApplicable, RefusedSubject
from agentgym_envs.validate.report import CheckResult, CheckStatus, ValidationReport, source_digest
from agentgym_envs.validate.subject import ValidationSubject
from agentgym_envs.validate.table import CHECKS, STARTUP, ValidationCheck


def validate(
    subject: ValidationSubject,
    checks: Sequence[ValidationCheck] = CHECKS,
    progress: Callable[[ValidationCheck], None] = lambda check: None,
) -> ValidationReport:
    """Run checks on an environment.

    The start-up check is always the first one, as no other applies without it. `progress` is called before each check.
    Raises RefusedSubject if the environment is not one with texts, or cannot be made with its arguments.
    """
    with _alarm(subject):
        started = _run(_startup_of(checks), subject, progress)
        results = [started if check.id == STARTUP else _result(check, subject, started, progress) for check in checks]
    found = {check.id for check in checks}
    shown = results if STARTUP in found or started.status is CheckStatus.PASS else [started, *results]
    return ValidationReport(subject.name, _digest(subject), shown)


def _startup_of(checks: Sequence[ValidationCheck]) -> ValidationCheck:
    return next(check for check in (*checks, *CHECKS) if check.id == STARTUP)


def _result(
    check: ValidationCheck,
    subject: ValidationSubject,
    started: CheckResult,
    progress: Callable[[ValidationCheck], None],
) -> CheckResult:
    if isinstance(check.run, str):
        return CheckResult(check, CheckStatus.SKIP, [f"not applicable: {check.run}"])
    if started.status is not CheckStatus.PASS:
        return CheckResult(check, CheckStatus.SKIP, [f"unmet dependency: {STARTUP}"])
    return _run(check, subject, progress)


def _run(
    check: ValidationCheck, subject: ValidationSubject, progress: Callable[[ValidationCheck], None]
) -> CheckResult:
    """Run a check. Every error but those of the caller becomes its result."""
    assert callable(check.run)
    progress(check)
    began = time.perf_counter()
    try:
        with _interruptible():
            finding = _measure(check, subject)
        status = CheckStatus.FAIL if finding.problems else CheckStatus.PASS
        evidence, measured = finding.shown, finding.measured
    except NotApplicable as reason:
        status, evidence, measured = CheckStatus.SKIP, [f"not applicable: {reason}"], {}
    except BudgetUsed as reason:
        status, evidence, measured = CheckStatus.SKIP, [f"not measured: {reason}"], {}
    except RefusedSubject:
        raise
    except (Exception, SystemExit) as error:  # of the environment, which is any code
        status, evidence, measured = CheckStatus.ERROR, [describe(error)], {}
    return CheckResult(check, status, evidence, measured, time.perf_counter() - began)


def _measure(check: ValidationCheck, subject: ValidationSubject) -> Finding:
    assert callable(check.run)
    subject.check_time()
    for need in check.needs:
        if reason := subject.lacks(need):
            raise NotApplicable(reason)
    return check.run(subject)


def _digest(subject: ValidationSubject) -> str:
    with suppress(Exception, BudgetUsed):
        return source_digest(subject.kind)
    return source_digest(ValidationSubject)


_measuring: list[bool] = []
"""Not empty while the alarm may interrupt."""


@contextmanager
def _interruptible() -> Iterator[None]:
    _measuring.append(True)
    try:
        yield
    finally:
        _measuring.clear()


@contextmanager
def _alarm(subject: ValidationSubject) -> Iterator[None]:
    """Interrupt an environment that does not return at the end of the budget, where the system has signals."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        if _measuring:
            raise BudgetUsed(f"the check was interrupted at the end of the budget of {subject.seconds:g} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(subject.time_left, 0.001), 1.0)  # again, should closing hang as well
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
