"""Engines for models in this process: TRL's own generation in training, a Hugging Face model in evaluation."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import torch

from agentgym_envs.rollout import BatchEngine, Generation, Sampling
from agentgym_trl.attention import without_cudnn_attention
from agentgym_trl.distributed import anywhere, generates_together


class TrainerEngine(BatchEngine):
    """Generates with the model of a TRL trainer: with transformers, or with vLLM if the trainer uses it.

    TRL samples with the trainer's temperature, top-p and top-k, and returns log-probabilities with vLLM only.
    If generation is a collective call, all processes generate together: a process whose episodes have ended keeps
    generating in `finish` until those of the others have. A process that fails exits, and the launcher ends the others.
    """

    def __init__(self, trainer: Any) -> None:
        """`trainer` is a `GRPOTrainer` or a subclass. `seconds` and `tokens` are the totals of generation."""
        super().__init__()
        self._trainer = trainer
        self._together = generates_together(trainer)
        self.seconds = 0.0
        self.tokens = 0

    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """One answer per prompt. TRL has one limit per batch: generate up to the largest, then truncate each answer."""
        if self._together:
            anywhere(True)
        ids, logprobs = self._generate(prompts, max(sampling.max_tokens for sampling in samplings))
        scores: Sequence[list[float] | None] = logprobs if logprobs is not None else [None] * len(ids)
        answers = [_truncated(list(i), s, sampling) for i, s, sampling in zip(ids, scores, samplings, strict=True)]
        self.tokens += sum(len(answer.ids) for answer in answers)
        return answers

    async def finish(self) -> None:
        """Generate unused tokens together with the other processes until all of them have finished."""
        while self._together and anywhere(False):
            self._generate([[self._trainer.processing_class.eos_token_id]], 1)

    async def aclose(self) -> None:
        """Do nothing: there is no connection to close."""

    @without_cudnn_attention()
    def _generate(self, prompts: Sequence[Sequence[int]], limit: int) -> tuple[Any, Any]:
        trainer = self._trainer
        holder, name = self._limit_holder()
        before, began = getattr(holder, name), time.perf_counter()
        setattr(holder, name, limit)
        try:
            # One generation per prompt: with more, TRL's server mode would use every n-th prompt only.
            return tuple(trainer._generate_single_turn([list(p) for p in prompts], None, {}, num_generations=1))
        finally:
            setattr(holder, name, before)
            self.seconds += time.perf_counter() - began

    def _limit_holder(self) -> tuple[Any, str]:
        """The object and the attribute that limit the tokens of one call (trl 1.16)."""
        if self._trainer.use_vllm:
            return self._trainer.vllm_generation, "max_completion_length"
        return self._trainer.generation_config, "max_new_tokens"


class HFEngine(BatchEngine):
    """Generates with a Hugging Face model; for evaluation."""

    def __init__(self, model: Any, tokenizer: Any, *, logprobs: bool = False) -> None:
        """`model` is any causal language model with `generate`; it is set to evaluation mode.

        With `logprobs`, answers have the log-probabilities of their tokens: those of the model at temperature 1,
        before top-k and top-p, like vLLM's. They cost another pass of the model over every answer.
        """
        super().__init__()
        self.model, self.tokenizer = model.eval(), tokenizer
        self._scores_answers = logprobs

    @without_cudnn_attention()
    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        """One answer per prompt; the whole batch uses the sampling settings of the first."""
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


def left_pad(rows: Sequence[Sequence[int]], pad_id: int, device: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids (B, T) padded on the left, and their attention mask (B, T)."""
    width = max(len(row) for row in rows)
    ids = [[pad_id] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _sampled(sampling: Sampling) -> dict[str, float]:
    return {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}


def _until_stop(row: list[int], stop_ids: Sequence[int]) -> list[int]:
    ends = [index for index, token in enumerate(row) if token in stop_ids]
    return row[: ends[0] + 1] if ends else row


def _truncated(ids: list[int], logprobs: list[float] | None, sampling: Sampling) -> Generation:
    ids = ids[: sampling.max_tokens]
    finish: Literal["stop", "length"] = "stop" if ids and ids[-1] in sampling.stop_ids else "length"
    return Generation(ids, finish, None if logprobs is None else list(logprobs[: len(ids)]))
