"""Short definitions of the metrics for the end of a report. The formulas are in `docs/metrics.md`."""

from __future__ import annotations

from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.cli.reports.mistakes import DEFINITIONS


def definitions(report: EvalReport) -> list[tuple[str, str]]:
    """Names and definitions of the metrics in this report."""
    found, evaluation = list(_ALWAYS), report.evaluation
    if evaluation.overall.common_k > 1:
        found += _SEVERAL_EPISODES
    if any(row.tokens is not None for row in evaluation.environments):
        found.append(("tokens", "The number of tokens that the policy wrote per episode, where they were counted."))
    return [*found, *_LAST, *(DEFINITIONS if report.mistakes is not None else ())]


_ALWAYS = [
    ("tasks, episodes", "A task may be played several times. Episodes in which the environment failed do not count."),
    (
        "success",
        "The mean over tasks of the fraction of a task's episodes that reached the goal. Its interval is Wilson's, "
        "with the effective number of independent episodes given by the variance between tasks.",
    ),
    (
        "score",
        "The mean over tasks of the mean score of a task's episodes, from 0 to 1, with partial credit where an "
        "environment gives it. Its interval is a bootstrap over tasks; with few tasks, or scores of 0 and 1 only, it "
        "is computed as for success.",
    ),
    (
        "95% CI",
        "The range of the number in 95 of 100 cases with other tasks of the same kind. Two policies whose intervals "
        "overlap may still differ: agentgym compare pairs them task by task.",
    ),
]
_SEVERAL_EPISODES = [
    (
        "pass@k",
        "The probability that at least one of k episodes of a task succeeds: 1 − C(n − c, k) / C(n, k) for c successes "
        "in n episodes (Chen et al., arXiv 2107.03374).",
    ),
    (
        "pass^k",
        "The probability that all of k episodes of a task succeed: C(c, k) / C(n, k) (Yao et al., arXiv 2406.12045).",
    ),
]
_LAST = [
    ("turns", "The mean over tasks of the turns of an episode, including those of earlier attempts."),
    ("invalid", "The fraction of all turns with an answer that could not be parsed as an action or carried out."),
    (
        "ended by",
        "success, failure: the environment ended the episode. turn_limit, token_limit: it was truncated. env_error: "
        "the environment failed; the episode counts in no rate.",
    ),
]
