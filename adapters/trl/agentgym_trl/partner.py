"""The partner: a frozen model that plays the untrained members of a team."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import Generation, Sampling
from agentgym_trl.engines import HFEngine
from agentgym_trl.models import load_model, load_tokenizer, unsharded


class PartnerEngine(HFEngine):
    """An `HFEngine` of a frozen model; `seconds` is the total time of generation."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        """`model` and `tokenizer` are those of `HFEngine`."""
        super().__init__(model, tokenizer)
        self.seconds = 0.0

    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """Generate one answer per prompt, and count the time."""
        began = time.perf_counter()
        try:
            return super().generate_batch(prompts, samplings)
        finally:
            self.seconds += time.perf_counter() - began


def load_partner(name: str, tokenizer: Any) -> PartnerEngine:
    """Load the partner of a policy, on the CPU. Raises UsageError if its vocabulary differs from the tokenizer's."""
    if load_tokenizer(name).get_vocab() != tokenizer.get_vocab():
        raise UsageError(
            f"the partner {name} has another vocabulary than the policy; in training, the members of a team share one "
            "tokenizer and chat template"
        )
    with unsharded():
        return PartnerEngine(load_model(name, dtype="auto").requires_grad_(False), tokenizer)
