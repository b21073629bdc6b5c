"""Remove padding that a micro-batch does not need.

TRL pads a generation batch to its longest prompt and its longest completion. The lengths of episodes vary widely, so
most micro-batches would compute on columns without any token.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor


def trim_padding(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch without columns that are padding in every row.

    Prompts (B, P) are padded on the left; completions and tensors of their shape (B, T) on the right. Losses and
    gradients do not change, since these columns are masked.
    """
    prompt, completion = batch["prompt_mask"], batch["completion_mask"]
    first = _first_used(prompt)
    used = completion.size(1) - _first_used(completion.flip(1))
    trimmed = dict(batch)
    for name, value in batch.items():
        if name in ("prompt_ids", "prompt_mask"):
            trimmed[name] = value[:, first:]
        elif isinstance(value, Tensor) and value.dim() == 2 and value.shape == completion.shape:
            trimmed[name] = value[:, :used]
    return trimmed


def _first_used(mask: Tensor) -> int:
    """The first column with a token, or the last column if all are padding: one column always remains."""
    columns = mask.any(0).nonzero()
    return int(columns[0]) if len(columns) else mask.size(1) - 1
