"""Padding that a micro-batch does not need.

TRL pads a whole generation batch to its longest prompt and its longest completion. Episodes have long tails, so most
micro-batches would compute on columns in which none of their rows has a token.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor


def trim_padding(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch without columns that are padding in every row.

    Prompts (B, P) are padded on the left, completions and everything aligned with them (B, T) on the right. Losses
    and gradients stay the same, since these columns were masked.
    """
    prompt, completion = batch["prompt_mask"], batch["completion_mask"]
    first = _first_used(prompt)
    used = completion.size(1) - _first_used(completion.flip(1))
    cut = dict(batch)
    for name, value in batch.items():
        if name in ("prompt_ids", "prompt_mask"):
            cut[name] = value[:, first:]
        elif isinstance(value, Tensor) and value.dim() == 2 and value.shape == completion.shape:
            cut[name] = value[:, :used]
    return cut


def _first_used(mask: Tensor) -> int:
    """The first column that some row uses; at most the last, so that a column always remains."""
    columns = mask.any(0).nonzero()
    return int(columns[0]) if len(columns) else mask.size(1) - 1
