"""A bound on the KL term of every token: `--kl-clip`.

TRL's estimate of the KL divergence to the reference is exp(d) - d - 1 per token, with d = log pi_ref - log pi. It grows
exponentially in d, so one token that the policy has given up can outweigh all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def bounded_reference(logprobs: Tensor, reference: Tensor, limit: float) -> Tensor:
    """The reference's log-probabilities (B, T), replaced where the KL term exceeds `limit` so that it equals `limit`.

    A replaced value is the policy's plus a constant. So the term of the token is constant and has no gradient, as the
    minimum of the term and `limit`.
    """
    low, high = log_ratio_bounds(limit)
    difference = (reference - logprobs).detach()
    bounded = logprobs + difference.clamp(low, high)
    return torch.where((difference < low) | (difference > high), bounded, reference)


def log_ratio_bounds(limit: float) -> tuple[float, float]:
    """The negative and the positive d at which exp(d) - d - 1 equals `limit`, a number above 0."""
    return -_root(lambda d: math.exp(-d) + d - 1, limit, limit + 1), _root(_kl, limit, math.sqrt(2 * limit))


def _kl(d: float) -> float:
    return math.exp(d) - d - 1


def _root(rising: Callable[[float], float], value: float, above: float) -> float:
    """The argument between 0 and `above` at which the function reaches `value`, by bisection."""
    low, high = 0.0, above
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return high
