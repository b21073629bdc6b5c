"""Turn numbers of masks without recorded turn spans: every run of answer tokens is a turn."""

from __future__ import annotations

import torch


def turn_numbers(mask: torch.Tensor) -> torch.Tensor:
    """(B, T) the number of each answer token's turn, from 1; 0 where the mask (B, T) is False."""
    begins = mask & ~torch.nn.functional.pad(mask[:, :-1], (1, 0))
    return torch.where(mask, begins.cumsum(1), 0)
