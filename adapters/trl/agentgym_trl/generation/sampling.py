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
    tokens = logits.argmax(-1)
    plain, filtered = list[int](), list[int]()
    for k, sampling in enumerate(samplings):
        if sampling.temperature > 0:
            (filtered if sampling.top_k or sampling.top_p < 1 else plain).append(k)
    for rows, draw in ((plain, _draw), (filtered, _draw_filtered)):
        if rows:
            own = [samplings[k] for k in rows]
            at = torch.tensor(rows, device=logits.device)
            scaled = logits[at] / logits.new_tensor([sampling.temperature for sampling in own])[:, None]
            tokens[at] = draw(scaled, own, torch.tensor([noise[k] for k in rows], dtype=torch.float64))
    return tokens


def logprobs_of(logits: torch.Tensor, tokens: torch.Tensor, temperature: float) -> list[float]:
    """The log-probabilities (n,) of `tokens` (n,) at a temperature, before top-k and top-p."""
    scaled = logits / temperature
    found: list[float] = (scaled.gather(1, tokens[:, None])[:, 0] - scaled.logsumexp(-1)).tolist()
    return found


def _draw(scaled: torch.Tensor, samplings: Sequence[Sampling], noise: torch.Tensor) -> torch.Tensor:
    """The place (n,) in every row of `scaled` (n, vocabulary) where the cumulated probability exceeds its noise."""
    cumulated = scaled.softmax(-1).cumsum(-1, dtype=torch.float64)
    point = noise.to(scaled.device)[:, None] * cumulated[:, -1:]
    return torch.searchsorted(cumulated, point, right=True)[:, 0].clamp(max=scaled.size(1) - 1)


def _draw_filtered(scaled: torch.Tensor, samplings: Sequence[Sampling], noise: torch.Tensor) -> torch.Tensor:
    """Like `_draw`, from the most likely tokens only: first top-k, then top-p of the rest."""
    vocabulary = scaled.size(1)
    top_k = torch.tensor([s.top_k or vocabulary for s in samplings], device=scaled.device)[:, None]
    top_p = scaled.new_tensor([s.top_p for s in samplings])[:, None]
    ordered, order = torch.sort(scaled, dim=-1, descending=True, stable=True)
    ordered = ordered.masked_fill(torch.arange(vocabulary, device=scaled.device) >= top_k, -torch.inf)
    probabilities = ordered.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    ordered = ordered.masked_fill((before >= top_p) & (top_p < 1), -torch.inf)
    return order.gather(1, _draw(ordered, samplings, noise)[:, None])[:, 0]
