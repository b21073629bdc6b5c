"""The denominators of the losses, in hand-computed numbers, and the weights of CISPO."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_trl.loss_statistics import trained_mask
from tests.adapters.trl.small import BrokenCraft, config, first_batch, make_trainer

FAILED = 2
ADVANTAGES = torch.tensor([1.0, 2.0, 0.0, 4.0, 5.0, 6.0, 7.0, 8.0])
SUM, USED = 33, 7


def batch_with_a_failure(trainer: Any) -> dict[str, Any]:
    batch = first_batch(trainer)
    used = trained_mask(batch).any(1).tolist()
    assert used == [number != FAILED for number in range(8)]
    return {**batch, "advantages": ADVANTAGES}


def make(out: Path, tokenizer: Any, loss_type: str, **more: Any) -> Any:
    counter = itertools.count()

    def env() -> BrokenCraft:
        return BrokenCraft(lambda number: number == FAILED, counter, 1)

    return make_trainer(out, tokenizer, env, env_retries=0, loss_type=loss_type, **more)


@pytest.mark.train
@pytest.mark.parametrize("loss_type", ["grpo", "sapo", "dr_grpo", "luspo", "bnpo", "dapo"])
def test_a_failed_episode_is_not_in_the_denominator(loss_type: str, tokenizer: Any, tmp_path: Path) -> None:
    """On its own rollout the ratio of every token is 1, so that the loss is a mean of the advantages."""
    trainer = make(tmp_path, tokenizer, loss_type)
    batch = batch_with_a_failure(trainer)
    loss = float(trainer._compute_loss(trainer.model, batch).detach())
    tokens = trained_mask(batch).sum(1)
    summed = float((ADVANTAGES * tokens).sum())
    sapo = 4 * torch.sigmoid(torch.zeros(())) * SUM / USED  # its gate has the height 2 at a ratio of 1
    expected = {
        "grpo": SUM / USED,
        "sapo": float(sapo),
        "dr_grpo": summed / (USED * 200),
        "luspo": summed / USED,
        "bnpo": summed / float(tokens.sum()),
        "dapo": summed / float(tokens.sum()),
    }
    assert loss == pytest.approx(-expected[loss_type], rel=1e-5)


@pytest.mark.train
def test_micro_batches_have_the_denominator_of_their_rollout(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make(tmp_path, tokenizer, "grpo", per_device_train_batch_size=2, gradient_accumulation_steps=4)
    batch = batch_with_a_failure(trainer)
    parts = [
        {k: v[first : first + 2] if isinstance(v, torch.Tensor) and v.dim() else v for k, v in batch.items()}
        for first in range(0, 8, 2)
    ]
    loss = sum(float(trainer._compute_loss(trainer.model, part).detach()) for part in parts)
    assert loss == pytest.approx(-SUM / USED, rel=1e-5)


def test_the_weights_of_cispo_are_truncated_at_five(tmp_path: Path) -> None:
    assert config(tmp_path, loss_type="cispo").epsilon_high == 5.0
    assert config(tmp_path, loss_type="cispo", epsilon_high=3.0).epsilon_high == 3.0
    assert config(tmp_path).epsilon_high is None


@pytest.mark.train
def test_the_gradient_of_cispo_is_not_shrunk_on_its_own_rollout(tokenizer: Any, tmp_path: Path) -> None:
    found = []
    for loss_type in ("dapo", "cispo"):
        trainer = make(tmp_path / loss_type, tokenizer, loss_type)
        torch.manual_seed(0)
        batch = batch_with_a_failure(trainer)
        loss = trainer._compute_loss(trainer.model, batch)
        found.append(torch.autograd.grad(loss, list(trainer.model.parameters())))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-3)
