"""`ServerEngine`: every episode sends its own requests to the vLLM server of a TRL run, as token ids.

TRL's own generation in server mode is collective. The main process gathers the prompts of all ranks, sends them in one
request and distributes the answers. So every episode waits for the slowest answer of its turn, and a rank whose
episodes are over must keep sending. With `ServerEngine` every rank sends its own requests, one per answer. TRL still
syncs the weights, before it calls the `rollout_func`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx

from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.rollout import CompletionEngine, Generation, Sampling

MAX_REQUESTS = 256
"""The max requests of a rank in flight; further ones wait here and not in the server."""
_SET_BY_EPISODES = frozenset(
    {"echo", "logprobs", "max_tokens", "model", "n", "prompt", "return_token_ids", "stop_token_ids", "stream"}
)
"""Fields of a request that the episode sets, so that `generation_kwargs` must not set them."""


class ServerEngine(CompletionEngine):
    """Samples from the vLLM server of a TRL run, with the trainer's sampling settings, independently of other ranks.

    `seconds` is the wall time with at least one request in flight, `tokens` the number of sampled tokens. The
    connections belong to one event loop; await `finish` before it ends.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        settings: Mapping[str, Any],
        *,
        timeout_s: float = 1800.0,
        max_requests: int = MAX_REQUESTS,
    ) -> None:
        """`base_url` is the address without `/v1`; `settings` are fields of every request.

        They override the `Sampling` of an answer, which sets the max tokens and the stop ids only. `timeout_s` limits
        one request, without its wait for one of the `max_requests` slots.
        """
        super().__init__(f"{base_url}/v1", model, timeout_s=timeout_s)
        self._slots = asyncio.Semaphore(max_requests)
        self.base_url, self.settings = base_url, dict(settings)
        self.seconds, self.tokens = 0.0, 0
        self._in_flight, self._since = 0, 0.0

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """Sample one answer. Raises EngineError if the server fails, or returns no token ids or log-probabilities."""
        with self._clock():
            async with self._slots:
                generation = await super().generate(prompt_ids, sampling)
        if generation.logprobs is None:
            raise EngineError(
                f"the server at {self.base_url} returned no log-probabilities of the sampled tokens, which TRL's "
                "importance sampling correction needs; is it a vLLM server?"
            )
        self.tokens += len(generation.ids)
        return replace(generation, logprobs=[math.nan if x is None else x for x in generation.logprobs])

    async def finish(self) -> None:
        """Close the connections, without waiting for other ranks."""
        await self.aclose()

    def _request(self, prompt_ids: Sequence[int], sampling: Sampling) -> dict[str, Any]:
        return {**super()._request(prompt_ids, sampling), **self.settings}

    @contextmanager
    def _clock(self) -> Iterator[None]:
        if not self._in_flight:
            self._since = time.perf_counter()
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self.seconds += time.perf_counter() - self._since


def server_engine_for(trainer: Any) -> ServerEngine:
    """Make the engine of a trainer with `use_vllm=True, vllm_mode="server"`; call it for every rollout.

    The only collective call of this module: all ranks wait until the main process has sent the new weights to the
    server, so that none samples with the old ones.

    Raises:
        UsageError: settings that episodes do not support, or a context shorter than `max_completion_length`.
        EngineError: the server does not report its model.
    """
    trainer.accelerator.wait_for_everyone()
    vllm = trainer.vllm_generation
    base_url = (vllm.server_base_url or f"http://{vllm.server_host}:{vllm.server_port}").rstrip("/")
    card = served_model(base_url)
    length, budget = card.get("max_model_len"), trainer.max_completion_length
    if length is not None and budget is not None and length <= budget:
        raise UsageError(
            f"the server at {base_url} has a context of {length} tokens and max_completion_length is {budget}, without "
            "the prompt; start it with a larger --max-model-len or lower --max_completion_length"
        )
    # Other ranks wait for this one no longer than that.
    return ServerEngine(base_url, card["id"], request_settings(vllm), timeout_s=float(trainer.args.ddp_timeout))


def request_settings(vllm: Any) -> dict[str, Any]:
    """The sampling settings of TRL's `VLLMGeneration` as fields of a request."""
    kwargs = dict(vllm.generation_kwargs or {})
    if forbidden := sorted(_SET_BY_EPISODES & kwargs.keys()):
        raise UsageError(f"generation_kwargs: {', '.join(forbidden)} cannot be set for episodes; leave it out")
    if kwargs.get("seed") is not None:
        raise UsageError(
            "generation_kwargs: one seed for all requests makes all episodes of a group equal; leave it out"
        )
    if vllm.structured_outputs_regex is not None:
        kwargs["structured_outputs"] = {"regex": vllm.structured_outputs_regex}
    return {
        "temperature": vllm.temperature,
        "top_p": vllm.top_p,
        "top_k": vllm.top_k,
        "min_p": vllm.min_p or 0.0,
        "repetition_penalty": vllm.repetition_penalty,
        "logprobs": 0,  # of the sampled token only
        **kwargs,
    }


def served_model(base_url: str) -> dict[str, Any]:
    """The first model that a server lists at `/v1/models`, which is the one that TRL trains; it has an `id`."""
    try:
        answer = httpx.get(f"{base_url}/v1/models", timeout=60.0, trust_env=False).raise_for_status().json()
        card = answer["data"][0]
        return {**card, "id": str(card["id"])}
    except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
        raise EngineError(
            f"{base_url}/v1/models lists no model ({error!r:.200}); can this machine reach a vLLM server there?"
        ) from None
