"""Lets stock verl train on the CPU; verl imports it in each of its processes by VERL_USE_EXTERNAL_MODULES.

No file of verl is changed. It provides what verl requires: a platform, an inference engine (`hfcpu`, next to vLLM and
SGLang), and replacements for two libraries that this machine may not have.
"""

from __future__ import annotations

from typing import Any

import torch.distributed.fsdp
import transformers

from tests.adapters.verl.cpu import platform as platform  # registers itself

_init_process_group = torch.distributed.init_process_group
_offload_policy = torch.distributed.fsdp.CPUOffloadPolicy
_load_critic = transformers.AutoModelForTokenClassification.from_pretrained


def _with_one_gloo(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
    """verl names one backend for the CPU and one for the device, which torch rejects if both are the CPU."""
    return _init_process_group("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)


def _load_new_critic(*args: Any, **kwargs: Any) -> Any:
    """Without flash attention, which verl requires; its values start at 0, so a test can detect training."""
    if kwargs.get("attn_implementation") == "flash_attention_2":
        kwargs["attn_implementation"] = "sdpa"
    critic = _load_critic(*args, **kwargs)
    for parameter in critic.score.parameters():
        torch.nn.init.zeros_(parameter)
    return critic


def _without_pinned_memory(pin_memory: bool = True) -> Any:
    """verl offloads every reference model, and memory can be pinned for a GPU only."""
    return _offload_policy(pin_memory=False)


def _copy_saved_weights() -> None:
    """verl saves weights by moving them to the CPU, which copies nothing if they are already there."""
    from verl.utils import fsdp_utils  # after the replacements in torch, which it imports

    save = fsdp_utils.fsdp2_sharded_save_to_cpu

    def save_copies(model: Any) -> Any:
        weights, spec = save(model)
        return {name: (weight.clone(), own) for name, (weight, own) in weights.items()}, spec

    fsdp_utils.fsdp2_sharded_save_to_cpu = save_copies


def _register_rollout() -> None:
    from verl.workers.rollout import base
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    base._ROLLOUT_REGISTRY["hfcpu", "async"] = "tests.adapters.verl.cpu.rollout.HFRollout"
    RolloutReplicaRegistry.register("hfcpu", _load_replica)


def _load_replica() -> Any:
    from tests.adapters.verl.cpu.rollout import HFReplica

    return HFReplica


torch.distributed.init_process_group = _with_one_gloo
torch.distributed.fsdp.CPUOffloadPolicy = _without_pinned_memory  # type: ignore[assignment,misc]
transformers.AutoModelForTokenClassification.from_pretrained = _load_new_critic
_copy_saved_weights()
_register_rollout()
