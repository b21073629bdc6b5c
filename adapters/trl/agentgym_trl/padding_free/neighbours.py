"""`group_prompts`: bring rows with the same prompt into the same micro-batch, so that they can share it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

Batch = dict[str, Any]


def group_prompts(batches: Sequence[Batch], per_step: int) -> list[Batch]:
    """Exchange rows between the micro-batches of each optimizer step; sizes stay as they are.

    `per_step` is the number of micro-batches of a step. The sum of the gradients of a step does not change if the loss
    of a row does not depend on the other rows of its micro-batch.
    """
    size = math.gcd(len(batches), per_step)
    steps = (batches[first : first + size] for first in range(0, len(batches), size))
    return [batch for step in steps for batch in _grouped(step)]


def _grouped(step: Sequence[Batch]) -> list[Batch]:
    sizes = [len(batch["prompt_ids"]) for batch in step]
    prompts = torch.cat([batch["prompt_ids"] for batch in step]).tolist()
    order = torch.tensor(sorted(range(len(prompts)), key=prompts.__getitem__))
    result: list[Batch] = [dict(batch) for batch in step]
    for name, value in step[0].items():
        if isinstance(value, torch.Tensor) and value.dim():
            joined = torch.cat([batch[name] for batch in step])
            parts = torch.split(joined[order.to(joined.device)], sizes)
            for batch, part in zip(result, parts, strict=True):
                batch[name] = part
    return result
