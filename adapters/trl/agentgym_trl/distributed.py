"""What the processes of a run must agree on."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from accelerate.utils import gather_object

_T = TypeVar("_T")
# With several processes, accelerate calls the CPU `cpu:0`, and torch does not know how to load a checkpoint there.
torch.serialization.register_package(0, lambda _: None, lambda data, to: data if to.startswith("cpu:") else None)


def gathered(values: list[_T]) -> list[_T]:
    """The values of all processes, in order of rank. Every process must call it."""
    found: list[_T] = gather_object(values)
    return found


def anywhere(condition: bool) -> bool:
    """Whether it holds in any process. Every process must call it."""
    return any(gathered([condition]))


def generates_together(trainer: Any) -> bool:
    """Whether generation is a collective call, so that every process must make the same number of calls.

    So it is with transformers where the weights are sharded (FSDP, DeepSpeed ZeRO-3), and with vLLM in the training
    processes where it splits a model over several (tensor parallelism). TRL gives vLLM the new weights before a
    rollout, so that their sharding does not matter then.
    """
    if trainer.accelerator.num_processes == 1:
        return False
    if trainer.use_vllm:
        return bool(trainer.args.vllm_tensor_parallel_size > 1)
    deepspeed = getattr(trainer.accelerator.state, "deepspeed_plugin", None)
    return bool(trainer.is_fsdp_enabled or (deepspeed is not None and deepspeed.zero_stage == 3))
