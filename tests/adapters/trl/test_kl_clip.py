"""The bound on the KL term of a token."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_envs.errors import UsageError
from agentgym_trl.kl_clip import bounded_reference, log_ratio_bounds
from tests.adapters.trl.small import config, first_batch, make_trainer


@pytest.mark.parametrize("limit", [1e-4, 0.5, 10.0, 1000.0])
def test_the_bounds_are_the_two_roots(limit: float) -> None:
    low, high = log_ratio_bounds(limit)
    assert low < 0 < high
    for d in (low, high):
        assert math.exp(d) - d - 1 == pytest.approx(limit, rel=1e-6)


def kl(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """TRL's estimate per token."""
    d = reference - logprobs
    return d.exp() - d - 1


def test_the_term_and_its_gradient_are_those_of_the_minimum() -> None:
    logprobs = torch.tensor([-1.0, -0.1, -9.0, -1.0, -2.0], requires_grad=True)
    reference = torch.tensor([-1.2, -14.0, -0.1, -1.0, -4.0])
    ours = kl(logprobs, bounded_reference(logprobs, reference, 2.0))
    theirs = kl(logprobs, reference).clamp(max=2.0)
    torch.testing.assert_close(ours, theirs)
    assert ours.max() <= 2.0 + 1e-5 and kl(logprobs, reference).max() > 1000
    found = [torch.autograd.grad(term.sum(), logprobs)[0] for term in (ours, theirs)]
    torch.testing.assert_close(*found)
    assert found[0][1] == found[0][2] == 0 != found[0][0]


@pytest.mark.train
def test_the_log_has_the_bounded_term(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    found = []
    for clip in (None, 0.01):
        trainer = make_trainer(tmp_path, tokenizer, model=str(model_path), beta=0.1, kl_clip=clip)
        with torch.no_grad():
            torch.manual_seed(0)
            for weight in trainer.model.parameters():
                weight += 0.02 * torch.randn_like(weight)
        trainer._compute_loss(trainer.model, first_batch(trainer))
        found.append(trainer._metrics["train"]["kl"][-1])
    assert found[1] <= 0.01 + 1e-6 < found[0]


def test_the_bound_needs_a_weighted_term(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--kl-clip must be above 0"):
        config(tmp_path, kl_clip=0.0, beta=0.1)
    with pytest.raises(UsageError, match=r"--kl-clip bounds the KL term.*--beta 0.01"):
        config(tmp_path, kl_clip=1.0)
