"""Convert TRL's scored rollout to the `AdvantageBatch` of estimators: per token, gathered over processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from trl.models.utils import disable_gradient_checkpointing

from agentgym_trl.advantages import AdvantageBatch
from agentgym_trl.loss_statistics import trained_mask

ROW_MEANS = ("grpo", "sapo", "dr_grpo", "luspo")
"""TRL's losses that divide by the number of rows."""


def local_rows(
    inputs: Sequence[dict[str, Any]], output: dict[str, Any], returns: Tensor, weight: Tensor
) -> dict[str, Tensor]:
    """The tensors of this process's episodes, each (B, T) or (B,).

    `inputs` are TRL's rows with the columns of the rollout and `output` is TRL's padded batch. `returns` (B,) are the
    weighted rewards, NaN where the episode must not be trained on. `weight` is the weight of the episode's own rewards.
    The rewards of other reward functions go to the last answer token.
    """
    like = output["completion_ids"]
    turn_numbers = _padded(inputs, "turn_numbers", like)
    mask = turn_numbers > 0
    rewards = _padded(inputs, "token_rewards", returns.new_zeros(like.shape)) * weight.to(returns.device)
    usable = ~returns.isnan() & mask.any(1)
    rest = torch.where(usable, returns - rewards.sum(1), 0.0)
    rest = torch.where(rest.abs() > 1e-6, rest, 0.0)  # drop rounding errors
    last = (mask * torch.arange(1, mask.size(1) + 1, device=mask.device)).argmax(1)
    rewards = rewards.scatter_add(1, last[:, None], rest[:, None])
    if "process_rewards" in inputs[0]:  # after the rest: they belong to no reward function
        rewards = rewards + _padded(inputs, "process_rewards", rewards)
    states = _padded(inputs, "state_keys", like)
    rows = {"rewards": rewards, "turn_numbers": turn_numbers, "usable": usable, "states": states}
    if "state_values" in inputs[0]:
        rows["state_values"] = _padded(inputs, "state_values", rewards) * weight.to(returns.device)
    if "turn_owners" in inputs[0]:
        rows["turn_owners"] = _padded(inputs, "turn_owners", like)
    return rows


def assemble(rows: dict[str, Tensor], accelerator: Any, group_size: int, roles: int = 1) -> AdvantageBatch:
    """The episodes of all processes, in order of rank."""
    gathered = {name: _gather(value, accelerator) for name, value in rows.items()}
    return AdvantageBatch(group_size=group_size, roles=roles, **gathered)


def row_scale(output: dict[str, Any], accelerator: Any) -> Tensor:
    """() the number of rows over that of rows with a trained token, in the generation batch of all processes.

    A row has none if its episode ended in `env_error` or if all its answers are left out of the loss. The losses in
    `ROW_MEANS` times this number are means over the rows that are trained on.
    """
    trained = trained_mask(output).any(1)
    rows, used = accelerator.reduce(trained.new_tensor([len(trained), int(trained.sum())], dtype=torch.float), "sum")
    scale: Tensor = rows / used.clamp(min=1)
    return scale


def loss_weights(average: str, turn_numbers: Tensor, output: dict[str, Any], accelerator: Any) -> Tensor:
    """(B, T) weights with which a mean over the trained tokens of all processes is one over `average`.

    `turn_numbers` (B, T) are those of `AdvantageBatch`; `average` is "token", "turn" or "episode". A turn or an episode
    counts if it has a trained token.
    """
    trained = trained_mask(output)
    if average == "token":
        return trained.float()
    unit = turn_numbers if average == "turn" else torch.ones_like(turn_numbers)
    unit = torch.where(trained, unit, 0).long()
    sizes = unit.new_zeros(len(unit), int(unit.max()) + 1).scatter_add(1, unit, trained.long())
    counts = torch.stack([trained.sum(), (sizes[:, 1:] > 0).sum()]).float()
    tokens, units = accelerator.reduce(counts, "sum")
    return torch.where(trained, tokens / units.clamp(min=1) / sizes.gather(1, unit).clamp(min=1), 0.0)


def token_kl(trainer: Any, output: dict[str, Any]) -> Tensor:
    """(B, T) log pi(token) - log pi_ref(token), whose sum over an episode is the k1 estimate of the KL divergence.

    Source: Schulman, "Approximating KL divergence" (http://joschu.net/blog/kl-approx.html).
    """
    policy = output.get("old_per_token_logps")
    if policy is None:  # TRL omits them if the policy is not updated before their use
        policy = policy_logprobs(trainer, output)
    difference: Tensor = policy - output["ref_per_token_logps"]
    return difference


@torch.no_grad()
def policy_logprobs(trainer: Any, output: dict[str, Any]) -> Tensor:
    """(B, T) log-probabilities of the tokens after the prompt under the current policy."""
    ids = torch.cat([output["prompt_ids"], output["completion_ids"]], 1)
    mask = torch.cat([output["prompt_mask"], output["completion_mask"]], 1)
    rows = trainer.args.per_device_train_batch_size
    with disable_gradient_checkpointing(trainer.model, trainer.args.gradient_checkpointing_kwargs):
        logprobs: Tensor = trainer._get_per_token_logps_and_entropies(
            trainer.model, ids, mask, output["completion_ids"].size(1), batch_size=rows
        )[0]
    return logprobs


def _padded(inputs: Sequence[dict[str, Any]], name: str, like: Tensor) -> Tensor:
    """A column of lists as (B, T), padded on the right with 0 to the width of `like`."""
    width = like.size(1)
    return like.new_tensor([list(row[name]) + [0] * (width - len(row[name])) for row in inputs])


def _gather(value: Tensor, accelerator: Any) -> Tensor:
    sent = value.long() if value.dtype is torch.bool else value  # gloo gathers no booleans
    if sent.dim() == 2:
        sent = accelerator.pad_across_processes(sent, dim=1, pad_index=0)
    gathered: Tensor = accelerator.gather(sent)
    return gathered.to(value.dtype)
