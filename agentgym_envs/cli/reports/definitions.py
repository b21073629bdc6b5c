"""What the numbers of a report mean, for its last page. The formulas themselves are in `docs/metrics.md`."""

from __future__ import annotations

from agentgym_envs.evaluate import Evaluation


def definitions(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Names and meanings of the metrics that this report shows."""
    found = list(_ALWAYS)
    if evaluation.overall.common_k > 1:
        found += _SAMPLES
    if any(row.tokens is not None for row in evaluation.environments):
        found.append(("tokens", "What the policy wrote in an episode, in tokens, where they were counted."))
    return [*found, *_LAST]


_ALWAYS = [
    ("tasks, episodes", "A task may be played several times. Only episodes that say something of the policy count."),
    (
        "success",
        "The mean over tasks of the share of a task's episodes that ended with the goal reached. Its interval is "
        "Wilson's, with as many independent episodes as would vary as the tasks do.",
    ),
    (
        "score",
        "The mean over tasks of the mean score of a task's episodes, from 0 to 1, with credit for a part of the goal "
        "where an environment gives it. Its interval is a bootstrap over tasks, and that of success where all scores "
        "are 0 or 1 or the tasks are few.",
    ),
    (
        "95% CI",
        "Where the number would fall, in 95 of 100 cases, with other tasks of the same kind. Two policies whose "
        "intervals overlap may still differ: agentgym compare pairs them task by task.",
    ),
]
_SAMPLES = [
    (
        "pass@k",
        "The chance that at least one of k episodes of a task succeeds: 1 − C(n − c, k) / C(n, k) for n episodes of "
        "which c succeeded (Chen et al., arXiv 2107.03374).",
    ),
    (
        "pass^k",
        "The chance that all of k episodes of a task succeed: C(c, k) / C(n, k) (Yao et al., arXiv 2406.12045).",
    ),
]
_LAST = [
    ("turns", "The mean over tasks of the turns of an episode, those of earlier tries included."),
    ("invalid", "The share of all turns whose answer could not be read as an action, or could not be carried out."),
    (
        "ended by",
        "success, failure: the environment ended the episode. turn_limit, token_limit: it was cut. env_error: the "
        "environment failed, which says nothing of the policy and enters no rate.",
    ),
]
