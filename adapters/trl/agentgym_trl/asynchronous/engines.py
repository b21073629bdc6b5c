"""The choice of an engine for asynchronous training."""

from __future__ import annotations

from typing import Any

from agentgym_trl.asynchronous.engine import SamplingEngine
from agentgym_trl.asynchronous.loops import Driver
from agentgym_trl.asynchronous.settings import AsyncSettings
from agentgym_trl.asynchronous.twin import TrainerSampler, TwinEngine


def make_engine(trainer: Any, settings: AsyncSettings, driver: Driver) -> SamplingEngine:
    """The twin's engine on a virtual clock, else the vLLM server of the trainer, else a process with a copy of the model.

    Without staleness, answers are sampled in lock-step, so that the batches are those of a synchronous rollout.
    """
    lockstep = not settings.max_staleness
    if settings.times is not None:
        sampler = TrainerSampler(trainer)
        return TwinEngine(sampler, settings.times, lockstep=lockstep, on_swap=sampler.engine.drop_cache)
    raise NotImplementedError
