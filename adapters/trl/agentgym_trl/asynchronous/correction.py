"""Importance weights for tokens that older versions of the policy sampled.

TRL corrects for the difference between vLLM and the trained model with the ratio of the probabilities of each sampled
token. The correction for an older policy is the same, so it is TRL's, also without vLLM (trl 1.16).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def as_with_vllm(trainer: Any, active: bool) -> Iterator[None]:
    """Let TRL compute and apply the weights from the log-probabilities of the rollout."""
    if not active or trainer.use_vllm:
        yield
        return
    trainer.use_vllm, trainer._last_loaded_step = True, trainer.state.global_step  # there are no weights to send
    try:
        yield
    finally:
        trainer.use_vllm = False


@contextmanager
def as_configured(trainer: Any) -> Iterator[None]:
    """Play episodes without `as_with_vllm`."""
    before, trainer.use_vllm = trainer.use_vllm, bool(trainer.args.use_vllm)
    try:
        yield
    finally:
        trainer.use_vllm = before
