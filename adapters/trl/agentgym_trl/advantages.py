"""Advantage estimators: pure functions from the rewards of a batch to advantages.

Shapes: B episodes in groups of `group_size` consecutive ones (same task and seed), T tokens after the prompt. An
estimator returns (B,) for one advantage an episode, or (B, T) for one a token. NaN marks an episode that must not be
learned from (`env_error`): it enters no mean, and its advantage is 0.

Adding an algorithm is adding a function here and its name to `ESTIMATORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """What an estimator may look at. Everything is gathered over all processes.

    returns: (B,) the score of each episode, NaN where it must not be learned from.
    group_size: how many consecutive episodes share task and seed.
    scale: what deviations are divided by: the standard deviation of the group, of the batch, or nothing.
    """

    returns: Tensor
    group_size: int
    scale: Literal["group", "batch", "none"] = "group"


Estimator = Callable[[Batch], Tensor]


def grpo(batch: Batch) -> Tensor:
    """Group-relative: A_i = (R_i - mean of its group) / (standard deviation + 1e-4), shape (B,).

    The deviation is that of the group (GRPO), of the batch, or left out (Dr. GRPO), by `batch.scale`.
    Source: DeepSeekMath, arXiv 2402.03300, section 4.1.2; Dr. GRPO, arXiv 2503.20783; the unbiased deviation and the
    1e-4 as in TRL.
    """
    groups = batch.returns.view(-1, batch.group_size)
    known = ~groups.isnan()
    mean = groups.nansum(1, keepdim=True) / known.sum(1, keepdim=True).clamp(min=1)
    centred = torch.where(known, groups - mean, 0.0)
    if batch.scale == "none":
        return centred.view(-1)
    if batch.scale == "batch":
        return (centred / (_deviation(batch.returns.view(1, -1)) + 1e-4)).view(-1)
    return (centred / (_deviation(groups) + 1e-4)).view(-1)


def _deviation(rows: Tensor) -> Tensor:
    """The unbiased standard deviation of each row, NaN left out: (R, C) -> (R, 1)."""
    known = ~rows.isnan()
    count = known.sum(1, keepdim=True)
    mean = rows.nansum(1, keepdim=True) / count.clamp(min=1)
    squares = torch.where(known, (rows - mean).square(), 0.0)
    return (squares.sum(1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()


ESTIMATORS: dict[str, Estimator] = {"grpo": grpo}
