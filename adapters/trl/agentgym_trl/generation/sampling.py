"""Sample one token per row, each with its own settings and its own random number."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from agentgym_envs.rollout import Sampling


def choose(logits: torch.Tensor, samplings: Sequence[Sampling], noise: Sequence[float]) -> torch.Tensor:
    """Return one token per row (n,) of `logits` (n, vocabulary): the most likely one where the temperature is 0.

    Elsewhere it is where the cumulated probability exceeds the row's number in `noise`, in [0, 1). So a row's token
    depends on no other row.
    """
    greedy = logits.argmax(-1)
    if all(sampling.temperature == 0 for sampling in samplings):
        return greedy
    temperature = logits.new_tensor([sampling.temperature for sampling in samplings])
    scaled, order = _filtered(logits / temperature.clamp(min=1e-6)[:, None], samplings)
    cumulated = scaled.softmax(-1).cumsum(-1, dtype=torch.float64)
    point = torch.tensor(list(noise), dtype=torch.float64, device=logits.device)[:, None] * cumulated[:, -1:]
    place = torch.searchsorted(cumulated, point, right=True).clamp(max=logits.size(1) - 1)
    token = place if order is None else order.gather(1, place)
    return torch.where(temperature > 0, token[:, 0], greedy)


def _filtered(scaled: torch.Tensor, samplings: Sequence[Sampling]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Logits of minus infinity outside of top-k and top-p, and the ids of the tokens if they are now sorted."""
    vocabulary = scaled.size(1)
    if all(sampling.top_k in (0, vocabulary) and sampling.top_p >= 1 for sampling in samplings):
        return scaled, None
    top_k = torch.tensor([s.top_k or vocabulary for s in samplings], device=scaled.device)[:, None]
    top_p = scaled.new_tensor([s.top_p for s in samplings])[:, None]
    ordered, order = torch.sort(scaled, dim=-1, descending=True, stable=True)
    ordered = ordered.masked_fill(torch.arange(vocabulary, device=scaled.device) >= top_k, -torch.inf)
    probabilities = ordered.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    return ordered.masked_fill((before >= top_p) & (top_p < 1), -torch.inf), order


def logprobs_of(logits: torch.Tensor, tokens: torch.Tensor, temperature: float) -> list[float]:
    """The log-probabilities (n,) of `tokens` (n,) at a temperature, before top-k and top-p."""
    scaled = logits / temperature
    found: list[float] = (scaled.gather(1, tokens[:, None])[:, 0] - scaled.logsumexp(-1)).tolist()
    return found
