"""Means over seeds, and comparisons that may also find that two arms are equivalent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from agentgym_envs.evaluate import Estimate

BOUND = 4.0
"""Points within which two arms count as equivalent."""
_FLIPS = 100_000


class Comparison(NamedTuple):
    """A paired difference over seeds: its 95 and 90 % intervals, and the p value of "no difference"."""

    gain: Estimate
    inner: Estimate
    p: float
    seeds: int

    @property
    def verdict(self) -> str:
        """Higher or lower at 5 %; equivalent if the 90 % interval lies within the bound (two one-sided tests)."""
        if self.seeds < 2:
            return "one seed"
        small = self.inner.low > -BOUND and self.inner.high < BOUND
        if self.p < 0.05:
            return f"{'higher' if self.gain.mean > 0 else 'lower'}{', by less than 4' if small else ''}"
        return "equivalent" if small else "undecided"


def student(values: Sequence[float], share: float = 0.95) -> Estimate:
    """The mean and its interval by Student's t; of a single value no interval (NaN)."""
    from scipy.stats import t

    middle, count = fmean(values), len(values)
    if count < 2:
        return Estimate(middle, math.nan, math.nan)
    half = float(t.ppf((1 + share) / 2, count - 1)) * stdev(values) / math.sqrt(count)
    return Estimate(middle, middle - half, middle + half)


def compare(differences: Sequence[float]) -> Comparison:
    """The mean of paired differences. The p value is that of the sign-flip test, by 100,000 random flips."""
    return Comparison(student(differences), student(differences, 0.9), sign_flip(differences), len(differences))


def sign_flip(differences: Sequence[float]) -> float:
    """The two-sided p value of the mean under random signs; with up to 16 differences over all of them."""
    values = np.asarray(differences)
    if len(values) <= 16:
        signs = 1 - 2 * ((np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1)
        extra = 0
    else:
        signs, extra = np.random.default_rng(0).choice((-1, 1), (_FLIPS, len(values))), 1
    reached = np.abs(signs @ values) >= abs(values.sum()) - 1e-9
    return float((reached.sum() + extra) / (len(signs) + extra))


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for their number (Holm, Scandinavian J. of Statistics 6 (1979) 65-70)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    found, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        found[index] = largest
    return found
