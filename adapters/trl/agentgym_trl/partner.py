"""The partner: a frozen model that plays the members of a team that are not trained."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import Generation, Sampling
from agentgym_trl.engines import HFEngine
from agentgym_trl.models import load_model, load_tokenizer, unsharded


class PartnerEngine(HFEngine):
    """Generates with a model that does not learn; `seconds` counts how long."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        """See `HFEngine`."""
        super().__init__(model, tokenizer)
        self.seconds = 0.0

    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """See `HFEngine`."""
        began = time.perf_counter()
        try:
            return super().generate_batch(prompts, samplings)
        finally:
            self.seconds += time.perf_counter() - began


def load_partner(name: str, tokenizer: Any) -> PartnerEngine:
    """The partner of a policy with that tokenizer, on the CPU. Raises UsageError if it has another vocabulary."""
    if load_tokenizer(name).get_vocab() != tokenizer.get_vocab():
        raise UsageError(
            f"the partner {name} has another vocabulary than the policy; the members of a team share one tokenizer and "
            "chat template in training"
        )
    with unsharded():
        return PartnerEngine(load_model(name, dtype="auto").requires_grad_(False), tokenizer)
