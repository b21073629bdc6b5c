"""Random results of checks, and the faults of a scenario."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from agentgym_envs.validate import CHECKS, CheckResult, CheckStatus, ValidationCheck, load_subject, validate

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
SECONDS = 1_200.0
"""A budget that no scenario needs, also on a busy computer."""


def unmet(name: str, checks: Sequence[ValidationCheck] = CHECKS) -> dict[str, list[str]]:
    """The checks that failed, and those for which no time was left."""
    report = validate(load_subject(name, seconds=SECONDS), checks)
    return {r.check.id: list(r.evidence) for r in report.results if r.status in ("fail", "error") or _late(r)}


def _late(result: CheckResult) -> bool:
    return result.status == "skip" and not result.evidence[0].startswith("not applicable: ")
