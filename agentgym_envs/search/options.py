"""Checks of the arguments of Search, and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.search import scoring
from agentgym_envs.search.judging import JUDGE
from agentgym_envs.search.scoring import RewardWeights

METRICS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "em": scoring.em,
    "em_plus": scoring.em_plus,
    "subem": scoring.subem,
    "f1": scoring.f1,
}
"""Scores of an answer by a rule, from 0 to 1."""


def check_metric(metric: object) -> str | None:
    """Return the name of a metric; None means that of the questions. Raises UsageError."""
    if metric is not None and (not isinstance(metric, str) or metric not in (*METRICS, JUDGE)):
        raise UsageError(f"there is no metric {metric!r}; choose one of {', '.join((*METRICS, JUDGE))}")
    return metric


def check_compat(compat: str | None, **others: Any) -> str | None:
    """Return `compat` if the other arguments leave parsing and scoring to it. Raises UsageError."""
    if compat not in (None, "search-r1"):
        raise UsageError(f"compat must be 'search-r1' or None, got {compat!r}")
    required = {"grammar": "bare", "metric": "em"}  # and no reward for the format, and no second answer
    wrong = [f"{name}={value!r}" for name, value in others.items() if value != required.get(name, 0)]
    if compat and wrong:
        raise UsageError(f"compat={compat!r} fixes how turns are parsed and answers scored; remove {', '.join(wrong)}")
    return compat


def check_whole(name: str, value: object, minimum: int, maximum: int) -> int:
    """Return an argument that is a whole number in a range. Raises UsageError."""
    if type(value) is not int or not minimum <= value <= maximum:
        raise UsageError(f"{name} must be a whole number from {minimum} to {maximum}, got {value!r}")
    return value


def check_weights(format_reward: object, retrieval_score: object, final_format_score: object) -> RewardWeights:
    """Return the weights of the reward, each from 0 to below 1. Raises UsageError."""
    weights = RewardWeights(
        _fraction("format_reward", format_reward),
        _fraction("retrieval_score", retrieval_score),
        _fraction("final_format_score", final_format_score),
    )
    if weights.structure_format_score + weights.retrieval_score >= 1.0:
        raise UsageError(
            f"format_reward={format_reward} and retrieval_score={retrieval_score} are the reward of a wrong answer, so "
            "their sum must be below 1"
        )
    return weights


def _fraction(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise UsageError(f"{name} must be a number from 0 to below 1, got {value!r}")
    return float(value)
