"""The weight of a context in a loss that gives every episode equal weight.

`seq-mean-token-mean` is a mean over rows of the mean over their tokens. If the rows are the contexts of episodes, the
mean over the tokens of an episode is that of its contexts, weighted by their numbers of tokens. verl's losses take no
weights, so the gradient of each row is multiplied by its weight on its way to the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from agentgym_verl.episode_advantages import EpisodeRows

BY_SEQUENCE = "seq-mean-token-mean"
LOSS_WEIGHTS = "loss_weights"
"""The field of a batch with the weight of each token's row."""
_SCORED = ("log_probs", "entropy", "values")


def context_weights(rows: EpisodeRows, mask: Tensor) -> Tensor:
    """(R,) the share of its episode's sampled tokens that each context has; `mask` (R, T) is 1 on sampled tokens."""
    sizes = mask.sum(1).float()
    return sizes / rows.sums(sizes).clamp(min=1)[rows.numbers]


def weighted_loss(loss: Callable[..., Any], *, model_output: Any, data: Any, dp_group: Any = None) -> Any:
    """Compute one of verl's losses, with the gradient of each row multiplied by its weight, if `data` has weights.

    The returned value and the logged numbers are those without weights; `context_weight` is the mean weight of a row.
    """
    if LOSS_WEIGHTS not in data.keys():  # noqa: SIM118 (a TensorDict iterates over rows)
        return loss(model_output=model_output, data=data, dp_group=dp_group)
    weights = torch.stack([row[0] for row in data[LOSS_WEIGHTS].unbind()])
    per_token = weights.repeat_interleave(data["input_ids"].offsets().diff())
    scored = {name: model_output[name] for name in _SCORED if model_output.get(name) is not None}
    scaled = {name: _scaled(value, per_token) for name, value in scored.items()}
    found, metrics = loss(model_output={**model_output, **scaled}, data=data, dp_group=dp_group)
    return found, {**metrics, "context_weight": float(weights.mean())}


def _scaled(values: Any, weights: Tensor) -> Tensor:
    """The values, flat, with a multiple of their gradient."""
    flat = values.values() if values.is_nested else values
    weights = weights.to(flat).view(-1, *[1] * (flat.dim() - 1))
    return torch.addcmul(((1 - weights) * flat).detach(), weights, flat)
