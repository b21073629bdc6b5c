"""Engines that take requests at any time, while the trainer learns, and change their weights between answers."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgym_envs.rollout import Generation, Sampling

LINGER_SECONDS = 0.002
"""The time that a batch waits for more requests, unless all running episodes wait already."""


@dataclass(eq=False, slots=True)
class AnswerRequest:
    """An answer to sample. `seed` has its random numbers, and `order` its place in a batch.

    `note` is called with the answer as soon as it is known, and with the time at which it is delivered.
    """

    prompt_ids: Sequence[int]
    sampling: Sampling
    seed: tuple[int, ...]
    order: tuple[int, int]
    note: Callable[[Generation, float | None], None]
    future: asyncio.Future[Generation] = field(init=False)


class SamplingEngine(ABC):
    """Samples answers for a scheduler. `version` is the version of its weights."""

    version = 0
    seconds = 0.0
    tokens = 0

    @abstractmethod
    async def answer(self, request: AnswerRequest) -> Generation:
        """Sample one answer, with the version of the weights."""

    @abstractmethod
    async def swap(self, version: int) -> None:
        """Take over the trainer's weights, which stay unchanged during this call, for all answers that begin later."""

    async def aclose(self) -> None:  # noqa: B027  (nothing to close by default)
        """Free all resources."""

    def began(self) -> None:  # noqa: B027
        """Count one more running episode."""

    def ended(self) -> None:  # noqa: B027
        """Count one running episode less."""

    def freeze(self) -> None:  # noqa: B027
        """Only collect requests, until `thaw`."""

    def thaw(self, state: dict[str, Any]) -> None:  # noqa: B027
        """Continue from a state."""

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {}


class BatchingEngine(SamplingEngine):
    """Collects requests into batches: a batch begins when the last has ended, and all requests that wait join it.

    In lock-step it begins when all running episodes wait, as in a synchronous rollout. With `parallel`, batches do not
    wait for the last one.
    """

    parallel = False

    def __init__(self, *, lockstep: bool) -> None:
        self._lockstep, self._running, self._busy, self._frozen = lockstep, 0, False, False
        self._waiting: list[AnswerRequest] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = set[asyncio.Task[None]]()
        self._busy_until: float | None = None

    @abstractmethod
    async def decode(self, requests: Sequence[AnswerRequest]) -> list[Generation]:
        """One answer per request, in order; call `note` of every request."""

    async def answer(self, request: AnswerRequest) -> Generation:
        """Wait for a batch, and return the answer."""
        request.future = asyncio.get_running_loop().create_future()
        self._waiting.append(request)
        self._wake()
        return await request.future

    def began(self) -> None:
        """Count one more running episode."""
        self._running += 1

    def ended(self) -> None:
        """Count one running episode less."""
        self._running -= 1
        self._wake()

    def freeze(self) -> None:
        """Only collect requests, until `thaw`."""
        self._frozen = True

    def thaw(self, state: dict[str, Any]) -> None:
        """Continue from a state: a batch that was running ends at its time."""
        self._frozen = False
        loop = asyncio.get_running_loop()
        if state.get("busy_until") is not None:
            self._busy, self._busy_until = True, state["busy_until"]
            loop.call_at(state["busy_until"], self._free)
        elif state.get("begins_at") is not None:
            self._timer = loop.call_at(state["begins_at"], self._begin)
        else:
            self._wake()

    def state(self) -> dict[str, Any]:
        """The times, on a virtual clock, at which the running batch ends and the next one begins."""
        begins_at = None if self._timer is None else self._timer.when()
        return {"busy_until": self._busy_until if self._busy else None, "begins_at": begins_at}

    async def aclose(self) -> None:
        """Stop the running batch."""
        self._cancel_timer()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _wake(self) -> None:
        """Begin a batch if it is time."""
        self._waiting = [request for request in self._waiting if not request.future.done()]  # without cancelled ones
        if self._busy or self._frozen or not self._waiting:
            return
        if len(self._waiting) >= self._running:
            self._begin()
        elif not self._lockstep and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._begin)

    def _begin(self) -> None:
        self._cancel_timer()
        requests = sorted((request for request in self._waiting if not request.future.done()), key=_order)
        self._waiting = []
        if requests:
            self._busy = not self.parallel
            task = asyncio.get_running_loop().create_task(self._run(requests))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, requests: Sequence[AnswerRequest]) -> None:
        try:
            answers = await self.decode(requests)
            for request, answer in zip(requests, answers, strict=True):
                if not request.future.done():
                    request.future.set_result(answer)
        except Exception as error:
            for request in requests:
                if not request.future.done():
                    request.future.set_exception(error)
        finally:
            self._free()

    def _free(self) -> None:
        self._busy, self._busy_until = False, None
        self._wake()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None


def _order(request: AnswerRequest) -> tuple[int, int]:
    return request.order
