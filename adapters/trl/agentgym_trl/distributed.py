"""Collective calls between the processes of a run."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from accelerate.utils import gather_object

_T = TypeVar("_T")
# With several processes, accelerate names the CPU `cpu:0`, and torch cannot load a checkpoint to that name.
torch.serialization.register_package(0, lambda _: None, lambda data, to: data if to.startswith("cpu:") else None)


def gathered(values: list[_T]) -> list[_T]:
    """The values of all processes, in order of rank. Every process must call it."""
    result: list[_T] = gather_object(values)
    return result


def anywhere(condition: bool) -> bool:
    """True if the condition holds in any process. Every process must call it."""
    return any(gathered([condition]))


def generates_together(trainer: Any) -> bool:
    """True if generation is a collective call, so that every process must make the same number of calls.

    It is collective with transformers if the weights are sharded (FSDP, DeepSpeed ZeRO-3), and with vLLM in the
    training processes if it uses tensor parallelism. TRL copies sharded weights to vLLM before a rollout.
    """
    if trainer.accelerator.num_processes == 1:
        return False
    if trainer.use_vllm:
        return bool(trainer.args.vllm_tensor_parallel_size > 1)
    return has_sharded_weights(trainer)


def has_sharded_weights(trainer: Any) -> bool:
    """True if a forward pass is a collective call, since each process has a part of the weights (FSDP, ZeRO-3)."""
    deepspeed = getattr(trainer.accelerator.state, "deepspeed_plugin", None)
    return bool(trainer.is_fsdp_enabled or (deepspeed is not None and deepspeed.zero_stage == 3))
