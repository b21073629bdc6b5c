"""The loss is the masked policy gradient that it claims to be, over exactly the tokens that were sampled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_trl.padding import trim_padding
from tests.adapters.trl.small import first_batch, make_trainer

pytestmark = pytest.mark.train


def gradients(loss: torch.Tensor, model: Any) -> dict[str, torch.Tensor]:
    names, weights = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, weights), strict=True))


def by_hand(trainer: Any, batch: dict[str, Any], loss_type: str) -> torch.Tensor:
    """Minus the sum of advantage x log-probability over the sampled tokens, row by row and token by token."""
    rows, everywhere = [], 0.0
    for number in range(batch["completion_ids"].size(0)):
        prompt = batch["prompt_ids"][number][batch["prompt_mask"][number].bool()]
        answer = batch["completion_ids"][number][batch["completion_mask"][number].bool()]
        logits = trainer.model(input_ids=torch.cat([prompt, answer])[None]).logits[0].float()
        logprobs = (logits / trainer.temperature).log_softmax(-1)
        sampled = [t for t in range(len(answer)) if batch["tool_mask"][number][t]]
        terms = [logprobs[len(prompt) + t - 1, answer[t]] for t in sampled]
        rows.append((batch["advantages"][number] * torch.stack(terms).sum(), len(terms)))
        everywhere += len(terms)
    if loss_type == "grpo":  # the mean over rows of the mean over tokens
        return -torch.stack([row / count for row, count in rows]).mean()
    return -torch.stack([row for row, _ in rows]).sum() / everywhere  # dapo: the mean over all sampled tokens


def assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert any(gradient.abs().max() > 1e-3 for gradient in ours.values())
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("loss_type", ["dapo", "grpo"])
def test_the_gradient_is_the_masked_policy_gradient(loss_type: str, tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, loss_type=loss_type, rounds="3")
    batch = first_batch(trainer)
    observed = batch["completion_mask"].bool() & ~batch["tool_mask"].bool()
    assert observed.any() and batch["advantages"].abs().max() > 0.1
    ours = gradients(trainer._compute_loss(trainer.model, batch), trainer.model)
    assert_same(ours, gradients(by_hand(trainer, batch, loss_type), trainer.model))


@pytest.mark.parametrize("loss_type", ["dapo", "grpo", "dr_grpo", "bnpo"])
def test_trimming_changes_neither_loss_nor_gradient(loss_type: str, tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, loss_type=loss_type, gradient_accumulation_steps=4)
    trainer.current_gradient_accumulation_steps = 4
    whole = padded(first_batch(trainer))
    trimmed = trim_padding(whole)
    assert trimmed["prompt_ids"].size(1) == whole["prompt_ids"].size(1) - 5
    assert trimmed["completion_ids"].size(1) == whole["completion_ids"].size(1) - 7
    assert trimmed["tool_mask"].shape == trimmed["completion_ids"].shape
    before, after = (trainer._compute_loss(trainer.model, batch) for batch in (whole, trimmed))
    torch.testing.assert_close(before, after, atol=1e-6, rtol=1e-5)
    assert_same(gradients(before, trainer.model), gradients(after, trainer.model))


def padded(batch: dict[str, Any], rows: int = 3) -> dict[str, Any]:
    """Some rows of a batch, with 5 columns of padding before all prompts and 7 behind all completions."""
    batch = {k: v[:rows] if isinstance(v, torch.Tensor) and v.dim() else v for k, v in batch.items()}
    batch = trim_padding(batch)
    for name, left, right, value in (
        ("prompt_ids", 5, 0, 0),
        ("prompt_mask", 5, 0, 0),
        ("completion_ids", 0, 7, 0),
        ("completion_mask", 0, 7, 0),
        ("tool_mask", 0, 7, 1),
    ):
        batch[name] = torch.nn.functional.pad(batch[name], (left, right), value=value)
    return batch


def test_a_wholly_masked_row_and_one_column_survive_trimming() -> None:
    mask = torch.tensor([[0, 0, 0], [0, 0, 0]])
    ids = torch.tensor([[7, 8, 9], [7, 8, 9]])
    batch = {"prompt_ids": ids, "prompt_mask": mask + 1, "completion_ids": ids, "completion_mask": mask}
    trimmed = trim_padding({**batch, "advantages": torch.ones(2), "num_items_in_batch": torch.tensor(3)})
    assert trimmed["completion_ids"].tolist() == [[7], [7]]
    assert trimmed["prompt_ids"].tolist() == ids.tolist()
    assert trimmed["advantages"].shape == (2,) and trimmed["num_items_in_batch"] == 3


def test_micro_batches_are_trimmed(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, per_device_train_batch_size=1, gradient_accumulation_steps=8)
    widths = set()
    compute = trainer._compute_loss

    def spy(model: Any, batch: dict[str, Any]) -> Any:
        assert batch["prompt_mask"][:, 0].any() and batch["completion_mask"][:, -1].any()
        widths.add(batch["completion_ids"].size(1))
        return compute(model, batch)

    trainer._compute_loss = spy
    trainer.train()
    assert len(widths) > 1


def test_observations_contribute_nothing(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer)
    batch = first_batch(trainer)
    sampled = (batch["completion_mask"] * batch["tool_mask"]).bool()
    advantages = torch.linspace(-1, 1, sampled.numel()).view(sampled.shape)
    loss = trainer._compute_loss(trainer.model, {**batch, "advantages": advantages})
    absurd = torch.where(sampled, advantages, 1e4)
    other = trainer._compute_loss(trainer.model, {**batch, "advantages": absurd})
    torch.testing.assert_close(loss, other)
    assert_same(gradients(loss, trainer.model), gradients(other, trainer.model))
    moved = trainer._compute_loss(trainer.model, {**batch, "advantages": torch.where(sampled, advantages + 1, absurd)})
    assert not torch.isclose(moved, loss)


def test_sampled_ids_are_the_trained_ids(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, rounds="3", max_steps=2)
    trainer.train()
    assert len(trainer.outputs) == 2
    answers: dict[
        tuple[int, ...], list[list[int]]
    ] = {}  # by everything that stood before: what the engine was asked and what it said
    for context, answer in trainer.generated:
        answers.setdefault(context, []).append(answer)
    for batch in trainer.outputs:
        for number in range(8):
            check_row({name: batch[name][number] for name in ROW}, answers)
    assert not any(answers.values()), "something was sampled that is not trained on"


ROW = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask")


def check_row(row: dict[str, torch.Tensor], answers: dict[tuple[int, ...], list[list[int]]]) -> None:
    """Walk along a row: wherever the mask begins, the very answer that was sampled there must stand."""
    context = row["prompt_ids"][row["prompt_mask"].bool()].tolist()
    real = row["completion_mask"].bool()
    ids, mask = row["completion_ids"][real].tolist(), row["tool_mask"][real].tolist()
    place = 0
    while place < len(ids):
        if not mask[place]:
            place += 1
            continue
        end = next((t for t in range(place, len(ids)) if not mask[t]), len(ids))
        answers[tuple(context + ids[:place])].remove(ids[place:end])
        place = end
    assert mask[-1] == 1
