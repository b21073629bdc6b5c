"""The choice of an engine for asynchronous training."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from functools import partial
from typing import Any

import torch

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import Sampling
from agentgym_trl.asynchronous.engine import SamplingEngine
from agentgym_trl.asynchronous.loops import Driver
from agentgym_trl.asynchronous.process import ProcessEngine
from agentgym_trl.asynchronous.settings import AsyncSettings
from agentgym_trl.asynchronous.virtual import TrainerSampler, VirtualEngine
from agentgym_trl.asynchronous.weights import SharedWeights
from agentgym_trl.asynchronous.worker import WorkerSetup
from agentgym_trl.engines import why_generate, with_settings
from agentgym_trl.generation.cached_model import difference
from agentgym_trl.generation.support import why_not

_PROBE = range(1, 9)


def make_engine(trainer: Any, settings: AsyncSettings, driver: Driver, stop_ids: Iterable[int]) -> SamplingEngine:
    """The trainer's model on a virtual clock, else the trainer's vLLM server, else a process with a copy of the model.

    Without staleness, answers are sampled in lock-step, so that the batches are those of a synchronous rollout.
    `stop_ids` end a turn in the chat template.

    Raises:
        UsageError: the model cannot be sampled from in another process.
    """
    lockstep = not settings.max_staleness
    if settings.times is not None:
        sampler = TrainerSampler(trainer)
        return VirtualEngine(sampler, settings.times, lockstep=lockstep, on_swap=sampler.engine.drop_cache)
    if trainer.args.use_vllm:
        from agentgym_trl.asynchronous.server import make_server_sampler

        return make_server_sampler(trainer, driver)
    return _process_engine(trainer, tuple(sorted(stop_ids)), lockstep)


def _process_engine(trainer: Any, stop_ids: tuple[int, ...], lockstep: bool) -> ProcessEngine:
    model = trainer.accelerator.unwrap_model(trainer.model_wrapped, keep_torch_compile=False)
    reason = why_generate(trainer) or why_not(model, partial(difference, model, _PROBE))
    if getattr(model, "hf_quantizer", None) is not None:
        reason = "its weights are quantized"
    if reason:
        raise UsageError(
            f"--async samples in a second process, which is not possible here: {reason}; use a vLLM server "
            "(--use_vllm true --vllm_mode server), or leave out --async"
        )
    base = model.get_base_model() if hasattr(model, "peft_config") else model
    setup = WorkerSetup(
        model_class=type(base),
        config=_plain(base.config),
        adapter=model.peft_config["default"] if hasattr(model, "peft_config") else None,
        weights=SharedWeights(model.state_dict()),
        dtype=torch.bfloat16 if trainer.args.bf16 else next(model.parameters()).dtype,
        device=str(trainer.accelerator.device),
        threads=torch.get_num_threads(),
        logprob_temperature=float(trainer.temperature),
    )
    [sampling] = with_settings(trainer, [Sampling(1, stop_ids=stop_ids)])
    return ProcessEngine(setup, model.state_dict, sampling, lockstep=lockstep)


def _plain(config: Any) -> Any:
    """A copy of a model's configuration with an attention that another process knows."""
    config = deepcopy(config)
    if config._attn_implementation != "eager":
        config._attn_implementation = "sdpa"  # the decoder's own attention takes its place
    return config
