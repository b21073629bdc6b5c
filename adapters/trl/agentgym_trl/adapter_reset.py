"""Reset a LoRA adapter during training, and the reference with it: `--reset-adapter-every`.

The adapter is merged into the weights of the model and starts again from zero. The policy stays the same. The
reference, which is the model without its adapter, becomes the policy of that step, so the KL term starts from 0 again.

Source of the idea: ReLoRA, arXiv 2307.05695; ProRL, arXiv 2505.24864, resets the reference in reinforcement learning.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor
from transformers import TrainerCallback

from agentgym_envs.errors import UsageError

_ADAPTER = "default"
_FILE = "adapter_base.pt"


class AdapterReset(TrainerCallback):  # type: ignore[misc]
    """Resets the adapter every `reset_adapter_every` steps, before a checkpoint of that step is written."""

    def __init__(self, trainer: Any) -> None:
        """Raises UsageError if the adapter cannot be merged into the weights exactly."""
        check_adapter(trainer)
        self._trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Reset the adapter if it is time; not after the last step, which would change nothing."""
        if state.global_step % args.reset_adapter_every == 0 and state.global_step < state.max_steps:
            model = self._trainer.accelerator.unwrap_model(self._trainer.model)
            reset_adapter(model, self._trainer.optimizer, seed=args.seed + state.global_step)


def check_adapter(trainer: Any) -> None:
    """Raise UsageError unless the model has a plain LoRA adapter on whole weights."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    config = getattr(model, "peft_config", {}).get(_ADAPTER)
    option = "--reset-adapter-every"
    if config is None or not any(_layers(model)):
        raise UsageError(
            f"{option} needs a LoRA adapter: --use_peft. Without an adapter, --sync_ref_model moves the reference"
        )
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        raise UsageError(f"{option} needs whole weights in every process; it does not work with FSDP or DeepSpeed")
    if getattr(model, "is_loaded_in_4bit", False) or getattr(model, "is_loaded_in_8bit", False):
        raise UsageError(f"{option} merges the adapter into the weights, which are quantized; load them in 16 bits")
    if config.use_dora or config.modules_to_save or config.bias != "none":
        raise UsageError(
            f"{option} needs a plain LoRA adapter: without DoRA, trained biases and --lora_modules_to_save"
        )


@torch.no_grad()
def reset_adapter(model: Any, optimizer: Any, *, seed: int) -> None:
    """Merge the adapter into the weights and start it again, with the same random numbers in every process.

    The optimizer forgets the adapter's moments, which belong to the old one.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _, layer in _layers(model):
            weight = layer.get_base_layer().weight
            weight += layer.get_delta_weight(_ADAPTER).to(weight.dtype)
            layer.reset_lora_parameters(_ADAPTER, True)
            if "ref" in layer.lora_B:  # TRL's copy of an adapter that the model came with
                layer.lora_B["ref"].weight.zero_()
    state = getattr(optimizer, "optimizer", optimizer).state
    for _, parameter in _adapter_parameters(model):
        state.pop(parameter, None)


def save_base(model: Any, directory: Path) -> None:
    """Write the weights under the adapter, which resets have changed, next to a checkpoint of the adapter."""
    weights = {name: layer.get_base_layer().weight for name, layer in _layers(model)}
    torch.save(weights, directory / _FILE)


@torch.no_grad()
def load_base(model: Any, directory: Path, *, resets: bool) -> None:
    """Restore the weights that `save_base` wrote, if it did. Raises UsageError if they need an option: `resets`."""
    if not (directory / _FILE).is_file():
        return
    if not resets:
        raise UsageError(f"{directory} was made with --reset-adapter-every; resume with it")
    weights = torch.load(directory / _FILE, map_location="cpu", weights_only=True)
    for name, layer in _layers(model):
        layer.get_base_layer().weight.copy_(weights[name])


@torch.no_grad()
def save_merged(model: Any, directory: str | Path) -> None:
    """Save the policy as a whole model, with the adapter merged; the model itself does not change."""
    base = model.get_base_model()
    deltas = {f"{name}.weight": layer.get_delta_weight(_ADAPTER) for name, layer in _layers(base)}
    weights: dict[str, Tensor] = {}
    for key, value in base.state_dict().items():
        if ".lora_" not in key:
            name = key.replace(".base_layer.", ".")
            weights[name] = value + deltas[name].to(value.dtype) if name in deltas else value
    base.save_pretrained(directory, state_dict=weights)


def _layers(model: Any) -> Iterator[tuple[str, Any]]:
    return ((name, module) for name, module in model.named_modules() if isinstance(module, LoraLayer))


def _adapter_parameters(model: Any) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in model.named_parameters() if f".{_ADAPTER}." in name)
