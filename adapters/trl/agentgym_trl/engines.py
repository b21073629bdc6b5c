"""Engines for models in this process: the model of a trainer in training, a Hugging Face model in evaluation.

Both keep the keys and values of every episode between its turns (`generation/`). Where that is not possible, they use
`generate`, which reads the whole conversation again in each turn: for models whose layers have a state other than keys
and values, and in training with sharded weights or settings of TRL's that only `generate` knows.
"""

from __future__ import annotations

import inspect
import logging
import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from trl import GRPOTrainer

from agentgym_envs.rollout import BatchEngine, Generation, Sampling
from agentgym_trl.attention import without_cudnn_attention
from agentgym_trl.distributed import anywhere, generates_together, has_sharded_weights
from agentgym_trl.generation.cached_model import difference
from agentgym_trl.generation.decoder import CachedDecoder
from agentgym_trl.generation.seeds import Seeds
from agentgym_trl.generation.support import why_not

_log = logging.getLogger(__name__)
_logged: set[str] = set()


class _CachingEngine(BatchEngine):
    """Answers with a `CachedDecoder` if the model permits it."""

    def __init__(self, model: Any, *fixed_seed: int, logprob_temperature: float = 1.0) -> None:
        """`model` is None if nothing is kept."""
        super().__init__()
        self._cached_model, self._logprob_temperature = model, logprob_temperature
        self._decoder: CachedDecoder | None = None
        self._seeds = Seeds(*fixed_seed)

    def worker_began(self) -> None:
        """Count one more worker; the first begins a run."""
        if not self._workers:
            self._seeds.restart()
        super().worker_began()

    def drop_cache(self) -> None:
        """Free the keys and values. A change of weights does so too, unless it is made through `tensor.data`."""
        if self._decoder is not None:
            self._decoder.drop()

    def _answer(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """One answer per prompt, from the cache if possible."""
        if self._cached_model is None or why_not(
            self._cached_model, partial(difference, self._cached_model, prompts[0])
        ):
            return self._generate_all(prompts, samplings)
        if self._decoder is None:
            self._decoder = CachedDecoder(self._cached_model, logprob_temperature=self._logprob_temperature)
        if not self._workers:
            self._seeds.restart()
        episodes = self._episodes or range(len(prompts))
        return self._decoder.answer(prompts, samplings, self._seeds.of(episodes))

    @abstractmethod
    def _generate_all(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """Answer with `generate`."""


class TrainerEngine(_CachingEngine):
    """Generates with the model of a TRL trainer: in this process, or with vLLM if the trainer uses it.

    Answers end at the stop ids of their `Sampling`, and at the end tokens that TRL knows. They are sampled with the
    trainer's temperature, top-p and top-k. Their log-probabilities are those at that temperature, before top-k and
    top-p; TRL's own generation with transformers returns none.

    With transformers, the engine keeps the keys and values of all episodes while it exists, unless
    `reuse_kv_cache=False` is set in the trainer's `AgentConfig`. Every rollout makes its own engine, as the weights
    have changed.

    If generation is a collective call, all processes generate together: a process whose episodes have ended keeps
    generating in `finish` until those of the others have. A process that fails exits, and the launcher ends the others.
    """

    def __init__(self, trainer: Any) -> None:
        """`trainer` is a `GRPOTrainer` or a subclass. `seconds` and `tokens` are the totals of generation."""
        super().__init__(
            _model_to_cache(trainer), trainer.accelerator.process_index, logprob_temperature=trainer.temperature
        )
        self._trainer = trainer
        self._together = generates_together(trainer)
        self.seconds = 0.0
        self.tokens = 0

    @without_cudnn_attention()
    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """One answer per prompt, with the trainer's sampling settings."""
        if self._together:
            anywhere(True)
        samplings = with_settings(self._trainer, samplings)
        began = time.perf_counter()
        try:
            answers = self._answer(prompts, samplings)
        finally:
            self.seconds += time.perf_counter() - began
        self.tokens += sum(len(answer.ids) for answer in answers)
        return answers

    async def finish(self) -> None:
        """Generate unused tokens together with the other processes until all of them have finished."""
        while self._together and anywhere(False):
            self._call_trl([[self._trainer.processing_class.eos_token_id]], 1)

    async def aclose(self) -> None:
        """Free the cache."""
        self.drop_cache()

    def _generate_all(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """TRL has one limit per batch: generate up to the largest, then truncate each answer."""
        ids, logprobs = self._call_trl(prompts, max(sampling.max_tokens for sampling in samplings))
        scores: Sequence[list[float] | None] = logprobs if logprobs is not None else [None] * len(ids)
        return [_truncated(list(i), s, sampling) for i, s, sampling in zip(ids, scores, samplings, strict=True)]

    def _call_trl(self, prompts: Sequence[Sequence[int]], limit: int) -> tuple[Any, Any]:
        trainer = self._trainer
        holder, name = self._limit_holder()
        before = getattr(holder, name)
        setattr(holder, name, limit)
        try:
            # One generation per prompt: with more, TRL's server mode would use every n-th prompt only.
            return tuple(trainer._generate_single_turn([list(p) for p in prompts], None, {}, num_generations=1))
        finally:
            setattr(holder, name, before)

    def _limit_holder(self) -> tuple[Any, str]:
        """The object and the attribute that limit the tokens of one call (trl 1.16)."""
        if self._trainer.use_vllm:
            return self._trainer.vllm_generation, "max_completion_length"
        return self._trainer.generation_config, "max_new_tokens"


class HFEngine(_CachingEngine):
    """Generates with a Hugging Face model; for evaluation.

    It keeps the keys and values of the episodes, up to a quarter of the memory, until the weights change or
    `drop_cache` is called.
    """

    def __init__(self, model: Any, tokenizer: Any, *, logprobs: bool = False, reuse_kv_cache: bool = True) -> None:
        """`model` is any causal language model with `generate`; it is set to evaluation mode.

        Answers have the log-probabilities of their tokens: those of the model at temperature 1, before top-k and top-p,
        like vLLM's. If the model's keys and values cannot be kept, or `reuse_kv_cache` is off, they cost another pass
        of the model over every answer, and `logprobs` asks for it.
        """
        super().__init__(model if reuse_kv_cache else None)
        self.model, self.tokenizer = model.eval(), tokenizer
        self._scores_answers = logprobs

    @without_cudnn_attention()
    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """One answer per prompt, each with its own sampling settings."""
        return self._answer(prompts, samplings)

    def _generate_all(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """One call of `generate` for all prompts with equal settings, except for the limit."""
        alike = defaultdict[Sampling, list[int]](list)
        for number, sampling in enumerate(samplings):
            alike[replace(sampling, max_tokens=0)].append(number)
        answers: dict[int, Generation] = {}
        for numbers in alike.values():
            some = self._generate_alike([prompts[n] for n in numbers], [samplings[n] for n in numbers])
            answers |= zip(numbers, some, strict=True)
        return [answers[number] for number in range(len(prompts))]

    def _generate_alike(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        first = samplings[0]
        ids, mask = left_pad(prompts, self.tokenizer.pad_token_id, self.model.device)
        with torch.no_grad():
            out = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=max(s.max_tokens for s in samplings),
                do_sample=first.temperature > 0,
                **(_sampled(first) if first.temperature > 0 else {}),
                eos_token_id=list(first.stop_ids) or None,
                pad_token_id=self.tokenizer.pad_token_id,
            )
        rows = out[:, ids.size(1) :].tolist()
        answers = [_truncated(_until_stop(row, s.stop_ids), None, s) for row, s in zip(rows, samplings, strict=True)]
        if not self._scores_answers:
            return answers
        return [replace(a, logprobs=self._logprobs(p, a.ids)) for p, a in zip(prompts, answers, strict=True)]

    def _logprobs(self, prompt: Sequence[int], answer: Sequence[int]) -> list[float]:
        """The log-probabilities of one answer; one at a time, as the logits of a large vocabulary need much memory."""
        supported = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        keep = {"logits_to_keep": len(answer) + 1} if supported else {}
        with torch.no_grad():
            logits = self.model(torch.tensor([[*prompt, *answer]], device=self.model.device), **keep).logits
        scores = logits[0, -len(answer) - 1 : -1].float().log_softmax(-1)
        logprobs: list[float] = scores.gather(1, torch.tensor(answer, device=scores.device)[:, None])[:, 0].tolist()
        return logprobs


def sync_vllm(trainer: Any) -> None:
    """Send the weights to vLLM if they have changed since; TRL does so only at the beginning of a training rollout."""
    if trainer.use_vllm and trainer.state.global_step != trainer._last_loaded_step:
        trainer.vllm_generation.sync_weights()
        trainer._last_loaded_step = trainer.state.global_step


def left_pad(rows: Sequence[Sequence[int]], pad_id: int, device: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids (B, T) padded on the left, and their attention mask (B, T)."""
    width = max(len(row) for row in rows)
    ids = [[pad_id] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _generates_itself(trainer: Any) -> bool:
    """True if the run asks for TRL's own generation: with vLLM, by an override, or by the option."""
    overridden = type(trainer)._generate_single_turn is not GRPOTrainer._generate_single_turn
    overridden = overridden or "_generate_single_turn" in vars(trainer)
    return bool(trainer.use_vllm or overridden or not getattr(trainer.args, "reuse_kv_cache", True))


def why_generate(trainer: Any) -> str:
    """The reason for which keys and values cannot be kept in this run; empty if there is none."""
    if has_sharded_weights(trainer):
        return "the weights are sharded, so that every forward pass is a collective call"
    special = {
        "use_transformers_continuous_batching": getattr(trainer, "use_transformers_continuous_batching", False),
        "min_p": trainer.min_p,
        "repetition_penalty": trainer.repetition_penalty != 1.0,
        "generation_kwargs": trainer.args.generation_kwargs,
        "cache_implementation": trainer.args.cache_implementation,
    }
    used = [name for name, value in special.items() if value]
    return f"only `generate` knows {', '.join(used)}" if used else ""


def _model_to_cache(trainer: Any) -> Any:
    """The trainer's model, or None if TRL generates. An unexpected reason is logged once."""
    if _generates_itself(trainer):
        return None
    if reason := why_generate(trainer):
        if reason not in _logged:
            _log.warning("generation reads every conversation again in each turn: %s", reason)
        _logged.add(reason)
        return None
    return trainer.accelerator.unwrap_model(trainer.model_wrapped, keep_torch_compile=False)


def with_settings(trainer: Any, samplings: Sequence[Sampling]) -> list[Sampling]:
    """The same answers with the trainer's sampling settings and end tokens."""
    _add_end_tokens(trainer, {token for sampling in samplings for token in sampling.stop_ids})
    settings = {"temperature": trainer.temperature, "top_p": trainer.top_p, "top_k": max(trainer.top_k or 0, 0)}
    ends = tuple(trainer.eos_token_ids)
    return [replace(sampling, stop_ids=sampling.stop_ids + ends, **settings) for sampling in samplings]


def _add_end_tokens(trainer: Any, stop_ids: Iterable[int]) -> None:
    """Let all ways of TRL to generate end an answer at the template's end tokens too (trl 1.16).

    TRL knows the end tokens of the tokenizer and of the model's generation config. Those of a base model do not contain
    the token that ends a turn in its chat template.
    """
    missing = sorted(set(stop_ids) - set(trainer.eos_token_ids))
    trainer.eos_token_ids = [*trainer.eos_token_ids, *missing]
    if not trainer.use_vllm:
        trainer.generation_config.eos_token_id = list(trainer.eos_token_ids)
        trainer.generation_kwargs["eos_token_id"] = list(trainer.eos_token_ids)
        return
    kwargs = trainer.vllm_generation.generation_kwargs or {}
    stops = sorted({*(kwargs.get("stop_token_ids") or []), *trainer.eos_token_ids})
    trainer.vllm_generation.generation_kwargs = {**kwargs, "stop_token_ids": stops}


def _sampled(sampling: Sampling) -> dict[str, float]:
    return {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}


def _until_stop(row: list[int], stop_ids: Sequence[int]) -> list[int]:
    ends = [index for index, token in enumerate(row) if token in stop_ids]
    return row[: ends[0] + 1] if ends else row


def _truncated(ids: list[int], logprobs: list[float] | None, sampling: Sampling) -> Generation:
    ids = ids[: sampling.max_tokens]
    finish: Literal["stop", "length"] = "stop" if ids and ids[-1] in sampling.stop_ids else "length"
    return Generation(ids, finish, None if logprobs is None else list(logprobs[: len(ids)]))
