"""Rows without padding: the same scores and gradients as on padded rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trl.trainer.utils import add_fused_lm_head

from agentgym_trl.padding_free import pack
from agentgym_trl.padding_free.attention import ATTENTION
from agentgym_trl.padding_free.forward import PaddingFree
from agentgym_trl.padding_free.support import enable
from tests.adapters.trl.random_models import VOCABULARY, random_model

pytestmark = pytest.mark.train
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
FAMILIES = ["qwen2", "qwen3", "llama", "mistral", "gemma2-sdpa", "gemma3"]


def random_batch(seed: int, groups: int = 3, size: int = 4, longest: int = 40) -> Batch:
    """Ids (B, P + T), mask (B, P + T), scored (B, T) of groups that share a prompt; some rows are short."""
    draw = Random(seed)
    rows = []
    for _ in range(groups):
        prompt = [draw.randrange(2, VOCABULARY) for _ in range(draw.randrange(1, 30))]
        for _ in range(size):
            rows.append((prompt, [draw.randrange(2, VOCABULARY) for _ in range(draw.choice([1, 3, 9, longest]))]))
    width, rest = max(len(p) for p, _ in rows), max(len(c) for _, c in rows)
    ids = [[0] * (width - len(p)) + p + c + [0] * (rest - len(c)) for p, c in rows]
    mask = [[0] * (width - len(p)) + [1] * (len(p) + len(c)) + [0] * (rest - len(c)) for p, c in rows]
    scored = [[int(t < len(c) and draw.random() < 0.7) for t in range(rest)] for _, c in rows]
    return torch.tensor(ids), torch.tensor(mask), torch.tensor(scored)


def headed(name: str) -> Any:
    model = random_model(name)
    add_fused_lm_head(model, 0.8, False, ("log_probs", "entropy"))
    return model


def padded_score(model: Any, ids: torch.Tensor, mask: torch.Tensor, scored: torch.Tensor) -> tuple[Any, Any]:
    """As TRL does it, with 0 where a token is not scored."""
    width = scored.size(1)
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :-width] = -100
    out = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
    return out.log_probs[:, -width:] * scored, out.entropy[:, -width:] * scored


def packed_score(model: Any, padding_free: PaddingFree, batch: Batch, batch_size: int = 99) -> tuple[Any, Any]:
    return padding_free.score(model, *batch, batch_size=batch_size, autocast=nullcontext)


def gradient(model: Any, scores: tuple[Any, Any]) -> torch.Tensor:
    """Of a loss that weighs every token differently."""
    model.zero_grad()
    logprobs, entropies = scores
    weights = torch.linspace(-1, 2, logprobs.numel()).view(logprobs.shape)
    (logprobs * weights + 0.3 * entropies * weights.flip(1)).sum().backward()
    return torch.cat([p.grad.reshape(-1).clone() for p in model.parameters() if p.grad is not None])


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_and_gradients_are_those_of_padded_rows(name: str) -> None:
    model, batch = headed(name), random_batch(1)
    expected = padded_score(model, *batch)
    wanted = gradient(model, expected)
    padding_free, reason = enable(model)
    assert padding_free is not None, reason
    found = packed_score(model, padding_free, batch)
    print(name, (found[0] - expected[0]).abs().max(), (found[1] - expected[1]).abs().max(), apart(gradient(model, found), wanted))
