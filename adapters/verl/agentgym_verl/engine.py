"""verl's inference servers as an `Engine` of the suite: one client per episode."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

from agentgym_envs.errors import EngineError
from agentgym_envs.rollout import Generation, Sampling


class VerlEngine:
    """Samples the answers of one episode from verl's servers, with the same request id.

    The request id routes the episode to one server, whose cache has its earlier turns.
    """

    def __init__(self, server: Any, sampling: Mapping[str, Any]) -> None:
        """`server` is verl's `LLMServerClient`, `sampling` the sampling parameters that verl gave the episode."""
        self._server, self._sampling, self._request_id = server, dict(sampling), uuid4().hex
        self._began = time.perf_counter()
        self.seconds = 0.0
        """Total seconds of generation."""
        self.preempted: int | None = None
        self.routed_experts: Any = None
        self.fields: dict[str, Any] = {}
        """Fields for verl's trainer, such as the first and the last version of the weights in use."""

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """Sample one answer. Raises EngineError if the server returns no token."""
        limits = {"max_tokens": sampling.max_tokens, "stop_token_ids": list(sampling.stop_ids)}
        began = time.perf_counter()
        output = await self._server.generate(
            request_id=self._request_id, prompt_ids=list(prompt_ids), sampling_params={**self._sampling, **limits}
        )
        self.seconds += time.perf_counter() - began
        ids = [int(token) for token in output.token_ids]
        if not ids:
            raise EngineError(f"verl's server returned no token (stop_reason {output.stop_reason!r})")
        self._update_fields(output)
        logprobs = list(output.log_probs) if output.log_probs and len(output.log_probs) == len(ids) else None
        finish: Literal["stop", "length"] = "stop" if ids[-1] in sampling.stop_ids else "length"
        return Generation(ids, finish, logprobs)

    @property
    def versions(self) -> list[int] | None:
        """The versions of the weights that sampled the first and the last token; None if the server counts none."""
        if "min_global_steps" not in self.fields:
            return None
        return [int(self.fields["min_global_steps"]), int(self.fields["max_global_steps"])]

    @property
    def other_seconds(self) -> float:
        """Seconds since the start of the episode without generation."""
        return time.perf_counter() - self._began - self.seconds

    def _update_fields(self, output: Any) -> None:
        for key, value in output.extra_fields.items():
            if value is None:
                continue
            if key == "max_global_steps" or key not in self.fields:
                self.fields[key] = value
            elif key.startswith("spec_num_"):  # counts of speculative decoding
                self.fields[key] += value
        if output.num_preempted is not None:
            self.preempted = (self.preempted or 0) + int(output.num_preempted)
        if output.routed_experts is not None:  # covers all tokens so far
            self.routed_experts = output.routed_experts
