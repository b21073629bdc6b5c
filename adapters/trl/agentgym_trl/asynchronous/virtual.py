"""`VirtualEngine`: samples with the trainer's model in this process, and takes modelled time on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agentgym_envs.rollout import Generation, Sampling
from agentgym_trl.asynchronous.engine import AnswerRequest, BatchingEngine
from agentgym_trl.asynchronous.loops import until
from agentgym_trl.asynchronous.settings import VirtualTimes
from agentgym_trl.engines import TrainerEngine

Sample = Callable[[Sequence[AnswerRequest]], list[Generation]]


class VirtualEngine(BatchingEngine):
    """A batch is sampled when it begins, with the weights of that time, and delivered when it ends."""

    def __init__(
        self, sample: Sample, times: VirtualTimes, *, lockstep: bool, on_swap: Callable[[], None] | None = None
    ) -> None:
        """`sample` answers a batch of requests at once; `on_swap` is called when the weights have changed."""
        super().__init__(lockstep=lockstep)
        self._sample, self._times, self._on_swap = sample, times, on_swap

    async def decode(self, requests: Sequence[AnswerRequest]) -> list[Generation]:
        """Sample, and wait for as long as the batch takes."""
        answers = [replace(answer, version=self.version) for answer in self._sample(requests)]
        at = asyncio.get_running_loop().time() + self._times.decode_seconds([len(answer.ids) for answer in answers])
        self._busy_until = at
        for request, answer in zip(requests, answers, strict=True):
            request.note(answer, at)
        await until(at)
        self.tokens += sum(len(answer.ids) for answer in answers)
        return answers

    async def swap(self, version: int) -> None:
        """The weights are the trainer's own."""
        self.version = version
        if self._on_swap is not None:
            self._on_swap()


class TrainerSampler:
    """Samples with the model of a trainer, each answer with the random numbers of its request."""

    def __init__(self, trainer: Any) -> None:
        self.engine = TrainerEngine(trainer)
        self._seeds = self.engine._seeds = _GivenSeeds()  # type: ignore[assignment]

    def __call__(self, requests: Sequence[AnswerRequest]) -> list[Generation]:
        """One answer per request."""
        self._seeds.next = [request.seed for request in requests]
        samplings: list[Sampling] = [request.sampling for request in requests]
        return self.engine.generate_batch([request.prompt_ids for request in requests], samplings)


class _GivenSeeds:
    """The seeds of the next batch, in place of `Seeds`."""

    def __init__(self) -> None:
        self.next: list[tuple[int, ...]] = []

    def of(self, episodes: Sequence[int]) -> list[tuple[int, ...]]:
        """The given seeds."""
        return self.next

    def restart(self) -> None:
        """Do nothing: the seeds of a request contain the number of the run."""
