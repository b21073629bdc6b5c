"""An adapter that is merged into the model and starts again, with the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig

from agentgym_envs.errors import UsageError
from agentgym_trl.adapter_reset import _layers, reset_adapter, save_merged
from agentgym_trl.callbacks import run_training
from agentgym_trl.models import load_model
from tests.adapters.trl.small import make_trainer

pytestmark = pytest.mark.train
IDS = torch.tensor([[5, 9, 33, 70, 12, 40]])


def lora(**more: Any) -> dict[str, Any]:
    return {"peft_config": LoraConfig(task_type="CAUSAL_LM", r=2, lora_alpha=6, target_modules="all-linear", **more)}


def make(out: Path, tokenizer: Any, model_path: Path, extra: Any = None, **more: Any) -> Any:
    """Small models are saved and loaded, since a resumed run loads the base model again."""
    more = {"reset_adapter_every": 2, "max_steps": 5, "learning_rate": 1e-2, "beta": 0.05, **more}
    return make_trainer(out, tokenizer, model=str(model_path), extra=lora() if extra is None else extra, **more)


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    found: torch.Tensor = model.eval()(input_ids=IDS).logits
    return found


@torch.no_grad()
def train_adapter(model: Any) -> None:
    """Give the adapter weights that change the model."""
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.copy_(0.2 * torch.randn_like(weight))


def test_a_reset_keeps_the_policy_and_moves_the_reference(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    trainer = make(tmp_path, tokenizer, model_path)
    model = trainer.model
    start = logits(model)
    train_adapter(model)
    policy = logits(model)
    with model.disable_adapter():
        torch.testing.assert_close(logits(model), start)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    logits_with_grad = model(input_ids=IDS).logits
    logits_with_grad.square().mean().backward()
    optimizer.step()
    policy = logits(model)
    assert (policy - start).abs().max() > 0.05 and optimizer.state
    reset_adapter(model, optimizer, seed=3)
    torch.testing.assert_close(logits(model), policy, atol=1e-5, rtol=1e-5)
    with model.disable_adapter():
        torch.testing.assert_close(logits(model), policy, atol=1e-5, rtol=1e-5)
    assert not optimizer.state
    for _, layer in _layers(model):
        assert not layer.lora_B["default"].weight.any() and layer.lora_A["default"].weight.any()


def test_equal_seeds_give_equal_adapters_and_leave_the_generator(
    tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    model = make(tmp_path, tokenizer, model_path).model
    before, found = torch.get_rng_state(), []
    for seed in (3, 3, 4):
        reset_adapter(model, torch.optim.SGD(model.parameters()), seed=seed)
        found.append(torch.cat([layer.lora_A["default"].weight.flatten() for _, layer in _layers(model)]))
        found[-1] = found[-1].clone()
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    assert torch.equal(torch.get_rng_state(), before)


def test_the_merged_model_is_the_policy(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    model = make(tmp_path, tokenizer, model_path).model
    train_adapter(model)
    policy = logits(model)
    save_merged(model, tmp_path / "merged")
    torch.testing.assert_close(logits(load_model(str(tmp_path / "merged"))), policy, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logits(model), policy)
    assert not (tmp_path / "merged" / "adapter_config.json").exists()


def test_a_run_resets_and_resumes_as_if_it_had_never_stopped(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    whole = make(tmp_path / "a", tokenizer, model_path, save_strategy="steps", save_steps=3)
    run_training(whole, "grpo")
    kls = {row["step"]: row["kl"] for row in whole.state.log_history if "kl" in row}
    assert kls[1] < 1e-6 and kls[3] < 1e-6 and kls[5] < 1e-6  # the first step after each reset
    assert kls[2] > 1e-5 and kls[4] > 1e-5
    again = make(tmp_path / "a", tokenizer, model_path)
    run_training(again, "grpo", checkpoint=str(tmp_path / "a" / "checkpoint-3"))
    for name, weight in whole.model.state_dict().items():
        torch.testing.assert_close(again.model.state_dict()[name], weight, rtol=0, atol=0)
    without = make(tmp_path / "a", tokenizer, model_path, reset_adapter_every=None)
    with pytest.raises(UsageError, match="was made with --reset-adapter-every"):
        without.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-3"))
    saved = load_model(str(tmp_path / "a"))
    torch.testing.assert_close(logits(saved), logits(again.model), atol=1e-5, rtol=1e-5)


def test_models_that_cannot_be_merged_are_refused(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a LoRA adapter: --use_peft"):
        make(tmp_path, tokenizer, model_path, {})
    for more in ({"use_dora": True}, {"bias": "all"}, {"modules_to_save": ["norm"]}):
        with pytest.raises(UsageError, match="needs a plain LoRA adapter"):
            make(tmp_path, tokenizer, model_path, lora(**more))
