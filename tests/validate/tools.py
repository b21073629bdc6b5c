"""Random results of checks, and the faults of a scenario."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agentgym_envs.validate import CHECKS, CheckResult, CheckStatus, load_subject, validate

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


def unmet(name: str, checks: Any = CHECKS, **kwargs: Any) -> dict[str, Any]:
    """The checks that failed, and those for which no time was left."""
    report = validate(load_subject(name, kwargs, seconds=SECONDS), checks)
    late = [r for r in report.results if r.status == "skip" and not r.evidence[0].startswith("not applicable: ")]
    return {
        r.check.id: list(r.evidence) for r in [*report.results, *late] if r.status in ("fail", "error") or r in late
    }
