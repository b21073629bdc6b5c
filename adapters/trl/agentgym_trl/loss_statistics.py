"""`LossStatistics`: how far the trained policy is from the one that sampled, over the tokens of an optimizer step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from trl import GRPOTrainer


class LossStatistics:
    """Sums over the trained tokens of one optimizer step.

    The effective sample size is (sum of w)^2 / (n * sum of w^2), a share of the n trained tokens, where w is the
    importance weight of a token in the loss: the ratio of the policy to that of the rollout, times TRL's correction for
    the difference between vLLM and the trained model. Without vLLM and with one update per rollout it is 1.

    Source: Kong (1992), "A note on importance sampling using standardized weights".
    """

    def __init__(
        self, level: str = "token", off_policy_threshold: float | None = None, *, imitates: bool = False
    ) -> None:
        """Take TRL's `importance_sampling_level` and `off_policy_mask_threshold`.

        With `imitates`, the trained tokens are labels, and their mean loss is a statistic too.
        """
        self._level, self._threshold, self._imitates = level, off_policy_threshold, imitates
        self._sums: Tensor | None = None

    @torch.no_grad()
    def add(self, logprobs: Tensor, batch: Mapping[str, Any]) -> None:
        """Add a micro-batch: the log-probabilities (B, T) under the policy, and TRL's inputs of the loss."""
        mask = trained_mask(batch)
        weights = torch.where(mask, self._weights(logprobs, batch, mask), 0.0)
        difference = torch.where(mask, logprobs - _sampling_logprobs(logprobs, batch), 0.0).nan_to_num(0.0)
        kl = difference.exp() - 1 - difference
        masked = mask & ~self._kept(logprobs, batch, mask)
        surprisal = torch.where(mask, -logprobs, 0.0)
        parts = weights, weights.square(), mask, kl, masked, surprisal
        sums = torch.stack([part.sum() for part in parts]).double()
        self._sums = sums if self._sums is None else self._sums + sums

    def take(self, accelerator: Any) -> dict[str, float]:
        """The statistics over all processes since the last call; every process must call it."""
        sums = torch.zeros(6, dtype=torch.double, device=accelerator.device) if self._sums is None else self._sums
        self._sums = None
        total, squares, count, kl, masked, surprisal = accelerator.reduce(sums, reduction="sum").tolist()
        if not count or not squares:
            return {}
        found = {"effective_sample_size": total**2 / (count * squares), "sampler_kl": kl / count}
        if self._imitates:
            found["oracle/label_loss"] = surprisal / count
        return found if self._threshold is None else {**found, "off_policy_masked": masked / count}

    def _kept(self, logprobs: Tensor, batch: Mapping[str, Any], mask: Tensor) -> Tensor:
        """False where TRL masks a negative advantage in an episode far from the policy; broadcasts to (B, T)."""
        if self._threshold is None:
            return mask
        advantages = batch["advantages"] if batch["advantages"].dim() == 2 else batch["advantages"][:, None]
        sampled = _sampling_logprobs(logprobs, batch)
        kept: Tensor = GRPOTrainer.get_off_policy_mask(advantages, logprobs, sampled, mask.float(), self._threshold)
        return kept.bool()

    def _weights(self, logprobs: Tensor, batch: Mapping[str, Any], mask: Tensor) -> Tensor:
        """(B, T) importance weights, 1 where the batch has nothing to correct."""
        old = batch.get("old_per_token_logps")
        ratio = logprobs - (logprobs if old is None else old)
        if self._level == "sequence":
            ratio = ((ratio * mask).sum(1) / mask.sum(1).clamp(min=1))[:, None].expand_as(ratio)
        correction = batch.get("importance_sampling_ratio")
        return ratio.exp() * (1.0 if correction is None else correction)


def trained_mask(batch: Mapping[str, Any]) -> Tensor:
    """(B, T) True on the tokens in the loss."""
    mask: Tensor = batch["completion_mask"].bool()
    return mask & batch["tool_mask"].bool() if "tool_mask" in batch else mask


def _sampling_logprobs(logprobs: Tensor, batch: Mapping[str, Any]) -> Tensor:
    """(B, T) log-probabilities of the sampler: those of vLLM, else of the policy at the rollout."""
    for name in ("sampling_per_token_logps", "old_per_token_logps"):
        if (found := batch.get(name)) is not None:
            sampled: Tensor = found
            return sampled
    return logprobs
