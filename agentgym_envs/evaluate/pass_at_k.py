"""Estimators of pass@k and pass^k from c successes in n episodes of a task."""

from __future__ import annotations

from functools import lru_cache
from math import comb


@lru_cache(maxsize=100_000)
def pass_at_k(n: int, c: int, k: int) -> float:
    """The probability that at least one of k episodes succeeds: `1 - C(n - c, k) / C(n, k)`, for 1 <= k <= n.

    It is the mean over all ways to choose k of the n episodes, hence unbiased.

    Source: Chen et al., Evaluating Large Language Models Trained on Code (arXiv 2107.03374), section 2.1.
    """
    return (comb(n, k) - comb(n - c, k)) / comb(n, k)


@lru_cache(maxsize=100_000)
def pass_hat_k(n: int, c: int, k: int) -> float:
    """The probability that all of k episodes succeed: `C(c, k) / C(n, k)`, for 1 <= k <= n.

    Source: Yao et al., tau-bench (arXiv 2406.12045), section 3.
    """
    return comb(c, k) / comb(n, k)
