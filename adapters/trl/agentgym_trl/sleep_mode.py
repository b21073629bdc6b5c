"""vLLM's sleep mode in the training processes: awake for a whole rollout, asleep while the model is trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def awake(trainer: Any) -> Iterator[None]:
    """Wake vLLM once for all answers of a rollout, and put it to sleep afterwards. Every process must use it.

    TRL 1.16 wakes vLLM for every batch of answers. Then it sends all weights each time, which loses the cache of
    prefixes. With sharded weights this is a collective call, and processes with unequal numbers of turns would hang.
    """
    engine = trainer.vllm_generation if trainer.use_vllm and trainer.args.vllm_mode == "colocate" else None
    if engine is None or not engine.enable_sleep_mode:
        yield
        return
    if engine._llm_weights_sleeping:
        engine.sync_weights()
    engine.llm.wake_up(tags=["kv_cache"])
    engine.enable_sleep_mode = False  # TRL then leaves it awake
    try:
        yield
    finally:
        engine.enable_sleep_mode = True
        engine.llm.sleep(level=2)
        engine._llm_weights_sleeping = True
