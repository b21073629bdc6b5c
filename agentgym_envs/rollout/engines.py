"""Engines generate answers: token ids in, token ids out, so that training sees exactly the sampled tokens."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from agentgym_envs.errors import EngineError
from agentgym_envs.model_requests import post_json

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters of sampling one answer. `top_k=0` and `top_p=1` keep all tokens; `temperature=0` is greedy."""

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """One sampled answer. `ids` includes the end token if `finish` is "stop"; `logprobs` has the same length.

    `version` is the version of the policy that sampled it, if the engine counts versions.
    """

    ids: list[int]
    finish: Literal["stop", "length"]
    logprobs: list[float] | None = None
    version: int | None = None


class Engine(Protocol):
    """Anything that continues a sequence of token ids."""

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """Sample one continuation of at least one token."""


class ScriptedEngine:
    """Returns given answers in order; for tests and examples."""

    def __init__(self, answers: Iterable[Sequence[int]], stop_ids: Iterable[int]) -> None:
        """`answers` are token ids; an answer without a stop id at its end counts as truncated."""
        self._answers, self._stop_ids = iter(answers), frozenset(stop_ids)
        self.prompts: list[list[int]] = []

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """Return the next answer, truncated to `sampling.max_tokens`."""
        self.prompts.append(list(prompt_ids))
        ids = list(next(self._answers))[: sampling.max_tokens]
        return Generation(ids, "stop" if ids[-1] in self._stop_ids else "length", [-0.5] * len(ids))


episode_number: ContextVar[int] = ContextVar("episode_number", default=0)
"""The number of the episode that the current task plays. `play_many` sets it."""


current_episode: ContextVar[str] = ContextVar("current_episode", default="")
"""The task and the seed of the episode that the current task plays, as text. `play_many` sets it."""


class _PendingPrompt(NamedTuple):
    episode: int
    prompt_ids: Sequence[int]
    sampling: Sampling
    future: asyncio.Future[Generation]


class Announced(Protocol):
    """An engine that `play_many` notifies when a worker begins or ends."""

    def worker_began(self) -> None:
        """Count one more worker."""

    def worker_ended(self) -> None:
        """Count one worker less."""


class BatchEngine(ABC):
    """Collects the prompts of the running episodes into batches, for models that generate batch by batch.

    `play_many` announces its workers. When every worker waits for an answer, the batch is generated. A batch is in the
    order of the episodes, whichever environment answered first, so that sampling with a seed is reproducible.
    """

    def __init__(self) -> None:
        self._workers = 0
        self._waiting: list[_PendingPrompt] = []
        self._episodes: list[int] = []
        """The episodes of the batch that is generated, in its order; empty if `generate_batch` is called directly."""

    @abstractmethod
    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """Return one continuation per prompt, in order."""

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """Wait for the batch to fill up, and return the continuation of this prompt."""
        future: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        self._waiting.append(_PendingPrompt(episode_number.get(), prompt_ids, sampling, future))
        self._generate_if_full()
        return await future

    def worker_began(self) -> None:
        """Count one more worker."""
        self._workers += 1

    def worker_ended(self) -> None:
        """Count one worker less."""
        self._workers -= 1
        self._generate_if_full()

    def _generate_if_full(self) -> None:
        self._waiting = [w for w in self._waiting if not w.future.done()]  # without cancelled episodes
        if not self._waiting or len(self._waiting) < self._workers:
            return
        waiting, self._waiting = sorted(self._waiting, key=lambda w: w.episode), []
        self._episodes = [w.episode for w in waiting]
        try:
            answers = self.generate_batch([w.prompt_ids for w in waiting], [w.sampling for w in waiting])
            for pending, answer in zip(waiting, answers, strict=True):
                if not pending.future.done():  # Ctrl-C may cancel episodes while the model answers
                    pending.future.set_result(answer)
        except Exception as error:
            for pending in waiting:
                if not pending.future.done():
                    pending.future.set_exception(error)
        finally:
            self._episodes = []


NEUTRAL = {"min_p": 0.0, "repetition_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}
"""Request fields that leave the model's distribution unchanged."""


class CompletionEngine:
    """An OpenAI-compatible `/v1/completions` server that reads and returns token ids, such as vLLM's.

    Fully asynchronous: each running episode has its own request in flight.
    The two vLLM extensions used are token ids as prompt and `return_token_ids`; see https://docs.vllm.ai.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` ends with `/v1`; `transport` replaces the network in tests."""
        import httpx

        from agentgym_envs.rollout.connections import ConnectionPools

        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.model = model
        self._client = httpx.AsyncClient(
            base_url=base_url.rstrip("/") + "/",
            headers=headers,
            timeout=timeout_s,
            transport=transport or ConnectionPools(),
        )

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """Request one completion. Raises EngineError if the server fails or returns no token ids."""
        answer = await post_json(self._client, "completions", self._request(prompt_ids, sampling))
        try:
            choice = answer["choices"][0]
            ids = choice.get("token_ids")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise EngineError(f"{self._client.base_url}completions returned no choice: {answer!r:.300}") from None
        if not ids:
            raise EngineError(
                f"the server at {self._client.base_url} returned no token ids; token-exact rollouts need a server that "
                "supports `return_token_ids`, such as vLLM. Evaluate through messages instead: --policy openai:MODEL"
            )
        logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
        finish: Literal["stop", "length"] = "length" if choice.get("finish_reason") == "length" else "stop"
        return Generation(list(ids), finish, logprobs if logprobs and len(logprobs) == len(ids) else None)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _request(self, prompt_ids: Sequence[int], sampling: Sampling) -> dict[str, Any]:
        return {
            "model": self.model,
            "prompt": list(prompt_ids),
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k or -1,
            "stop_token_ids": list(sampling.stop_ids),
            # vLLM fills in missing fields, also penalties, from the model's generation_config.json.
            **NEUTRAL,
            "logprobs": 1,
            "return_token_ids": True,
        }
