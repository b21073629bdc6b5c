"""An inference server on the CPU: a Ray actor with a Hugging Face model. It does not import verl, which is slow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import ray
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentgym_envs.rollout import Generation, Sampling
from agentgym_trl.engines import HFEngine
from tests.adapters.verl.training_envs import NOT_BEFORE

_TOKENS = 4
"""The tokens that a request samples between two chances to abort it."""


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
    """Samples a few tokens of all waiting requests in one batch; requests that arrive meanwhile join the next one."""

    def __init__(self, path: str, seed: int) -> None:
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        self._engine = HFEngine(model, AutoTokenizer.from_pretrained(path), logprobs=True)
        self._waiting: list[_Question] = []
        self._busy = asyncio.Lock()
        self._version: int | None = None
        self._open, self._closed = asyncio.Event(), asyncio.Event()
        self._open.set()
        self._rejects, self._running = False, 0

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any
    ) -> Answer:
        """Sample an answer, or its beginning if `abort_all_requests` comes first."""
        while not self._open.is_set():
            if self._rejects:
                return self._answer([], [], "aborted")
            await self._open.wait()
        self._running += 1
        try:
            return await self._generate(prompt_ids, _read_sampling(sampling_params))
        finally:
            self._running -= 1

    async def load(self, weights: dict[str, torch.Tensor], version: int | None) -> None:
        """Load new weights. Raises RuntimeError if a request is running: its tokens would have two versions."""
        if self._running:
            raise RuntimeError(f"version {version} arrived during {self._running} requests")
        async with self._busy:
            missing, unexpected = self._engine.model.load_state_dict(weights, strict=False)
            tied = set(self._engine.model.all_tied_weights_keys)
            if unexpected or set(missing) - tied:
                raise ValueError(f"weights that do not fit the model: missing {missing}, unexpected {unexpected}")
            self._version = version

    async def abort_all_requests(self, reject_request: bool = False) -> None:
        """End all requests with the tokens that they have; later ones wait for `resume_generation`, or are rejected."""
        self._rejects = reject_request
        self._open.clear()
        self._closed.set()
        while self._running:
            await asyncio.sleep(0.01)

    async def resume_generation(self) -> None:
        self._closed.clear()
        self._open.set()

    async def _generate(self, prompt_ids: list[int], sampling: Sampling) -> Answer:
        ids, logprobs = list[int](), list[float]()
        if self._waits_for_an_abort(prompt_ids):
            found = await self._sample(prompt_ids, replace(sampling, max_tokens=_TOKENS))
            begun = len(found.ids) - (found.finish == "stop")
            await self._closed.wait()
            return self._answer(found.ids[:begun], (found.logprobs or [])[:begun], "aborted")
        while not self._closed.is_set():
            limit = min(_TOKENS, sampling.max_tokens - len(ids))
            found = await self._sample([*prompt_ids, *ids], replace(sampling, max_tokens=limit))
            ids += found.ids
            logprobs += found.logprobs or []
            if found.finish == "stop" or len(ids) == sampling.max_tokens:
                return self._answer(ids, logprobs, "completed")
        return self._answer(ids, logprobs, "aborted")

    def _waits_for_an_abort(self, prompt_ids: list[int]) -> bool:
        """True if these weights may begin this answer, but not finish it."""
        text = self._engine.tokenizer.decode(prompt_ids)
        return any(int(version) > (self._version or 0) for version in NOT_BEFORE.findall(text))

    def _answer(self, ids: list[int], logprobs: list[float], stop_reason: str) -> Answer:
        return Answer(ids, logprobs, {"global_steps": self._version}, stop_reason)

    async def _sample(self, prompt_ids: list[int], sampling: Sampling) -> Generation:
        question = _Question(prompt_ids, sampling)
        self._waiting.append(question)
        async with self._busy:
            if not question.answer.done():
                await self._answer_all()
        return await question.answer

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

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = start_profile = stop_profile = _nothing


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
