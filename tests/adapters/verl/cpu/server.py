"""An inference server on the CPU: a Ray actor with a Hugging Face model. It does not import verl, which is slow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import ray
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentgym_envs.rollout import Generation, Sampling
from agentgym_trl.engines import HFEngine


@dataclass
class Answer:
    """The fields of verl's `TokenOutput`."""

    token_ids: list[int]
    log_probs: list[float] | None
    extra_fields: dict[str, Any]
    stop_reason: str = "completed"
    routed_experts: None = None
    num_preempted: None = None


@dataclass
class _Question:
    prompt_ids: list[int]
    sampling: Sampling
    answer: asyncio.Future[Generation] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@ray.remote(num_cpus=0, max_concurrency=1000)
class HFServer:
    """Answers all waiting requests in one batch; requests that arrive meanwhile form the next one."""

    def __init__(self, path: str, seed: int) -> None:
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        self._engine = HFEngine(model, AutoTokenizer.from_pretrained(path), logprobs=True)
        self._waiting: list[_Question] = []
        self._busy = asyncio.Lock()
        self._version: int | None = None

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any
    ) -> Answer:
        question = _Question(prompt_ids, _read_sampling(sampling_params))
        self._waiting.append(question)
        async with self._busy:
            if not question.answer.done():
                await self._answer_all()
        found = await question.answer
        return Answer(found.ids, found.logprobs, {"global_steps": self._version})

    async def load(self, weights: dict[str, torch.Tensor], version: int | None) -> None:
        """Load new weights; earlier requests are answered with the old ones."""
        async with self._busy:
            missing, unexpected = self._engine.model.load_state_dict(weights, strict=False)
            tied = set(self._engine.model.all_tied_weights_keys)
            if unexpected or set(missing) - tied:
                raise ValueError(f"weights that do not fit the model: missing {missing}, unexpected {unexpected}")
            self._version = version

    async def _answer_all(self) -> None:
        waiting = self._waiting
        self._waiting = []
        prompts, samplings = [q.prompt_ids for q in waiting], [q.sampling for q in waiting]
        try:
            answers = await asyncio.to_thread(self._engine.generate_batch, prompts, samplings)
        except Exception as error:
            for question in waiting:
                question.answer.set_exception(error)
            return
        for question, answer in zip(waiting, answers, strict=True):
            question.answer.set_result(answer)

    async def _nothing(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: there is no memory to free, no cache and no profile."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = _nothing
    abort_all_requests = resume_generation = start_profile = stop_profile = _nothing


def _read_sampling(params: dict[str, Any]) -> Sampling:
    """Read vLLM's sampling settings, where `top_k=-1` is no top-k; reject unsupported ones."""
    known = {"max_tokens", "temperature", "top_p", "top_k", "stop_token_ids", "logprobs", "repetition_penalty"}
    if unknown := set(params) - known or params.get("repetition_penalty", 1.0) != 1.0:
        raise ValueError(f"hfcpu does not know these sampling parameters: {unknown}, got {params}")
    return Sampling(
        max_tokens=int(params["max_tokens"]),
        temperature=float(params["temperature"]),
        top_p=float(params["top_p"]),
        top_k=max(int(params["top_k"]), 0),
        stop_ids=tuple(params["stop_token_ids"]),
    )
