"""What the processes of a run must agree on."""

from __future__ import annotations

from typing import Any, TypeVar

from accelerate.utils import gather_object

_T = TypeVar("_T")


def gathered(values: list[_T]) -> list[_T]:
    """The values of all processes, in order of rank. Every process must call it."""
    found: list[_T] = gather_object(values)
    return found


def anywhere(condition: bool) -> bool:
    """Whether it holds in any process. Every process must call it."""
    return any(gathered([condition]))


def generates_together(trainer: Any) -> bool:
    """Whether generation is a collective call, so that every process must make the same number of calls.

    So it is where the weights are sharded (FSDP, DeepSpeed ZeRO-3), and where vLLM in the training processes splits
    a model over several (tensor parallelism).
    """
    if trainer.accelerator.num_processes == 1:
        return False
    zero3 = getattr(trainer.accelerator.state, "deepspeed_plugin", None)
    sharded = trainer.is_fsdp_enabled or (zero3 is not None and zero3.zero_stage == 3)
    return bool(sharded or (trainer.use_vllm and trainer.args.vllm_tensor_parallel_size > 1))
