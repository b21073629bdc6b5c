"""Random results of checks."""

from __future__ import annotations

from hypothesis import strategies as st

from agentgym_envs.validate import CHECKS, CheckResult, CheckStatus

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
