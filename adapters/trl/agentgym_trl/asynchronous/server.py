"""`ServerSampler`: samples from the vLLM server of a TRL run, and pauses while TRL sends new weights to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentgym_envs.errors import EngineError
from agentgym_envs.rollout import Generation
from agentgym_trl.asynchronous.engine import AnswerRequest, SamplingEngine
from agentgym_trl.asynchronous.loops import Driver
from agentgym_trl.server_engine import ServerEngine, server_engine_for


class ServerSampler(SamplingEngine):
    """Every request is sent at once. TRL sends the weights: before, all answers that have begun must be complete.

    Further requests wait until the next rollout has begun, so that all tokens of an answer have one version.
    """

    def __init__(self, server: ServerEngine, restore: Callable[[], None]) -> None:
        """`restore` is called at the end."""
        self._server, self._restore = server, restore
        self._in_flight = 0
        self._open, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()

    async def answer(self, request: AnswerRequest) -> Generation:
        """Sample one answer."""
        while not self._open.is_set():
            await self._open.wait()
        version = self.version
        self._in_flight += 1
        self._idle.clear()
        try:
            answer = replace(await self._server.generate(request.prompt_ids, request.sampling), version=version)
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()
        request.note(answer, None)
        self.seconds, self.tokens = self._server.seconds, self._server.tokens
        return answer

    async def pause(self) -> None:
        """Hold back further requests, and wait for the answers that have begun."""
        self._open.clear()
        await self._idle.wait()

    async def swap(self, version: int) -> None:
        """The server has the weights of this version: continue."""
        self.version = version
        self._open.set()

    async def aclose(self) -> None:
        """Close the connections."""
        self._restore()
        await self._server.aclose()


def make_server_sampler(trainer: Any, driver: Driver) -> ServerSampler:
    """Make the engine of a trainer with a vLLM server, and let it pause whenever TRL sends weights."""
    vllm = trainer.vllm_generation
    send = vllm.sync_weights
    sampler = ServerSampler(server_engine_for(trainer), lambda: setattr(vllm, "sync_weights", send))

    def send_paused() -> None:
        driver.call(sampler.pause())
        try:
            send()
        except Exception as error:  # TRL and NCCL raise errors of many kinds
            raise EngineError(
                f"the vLLM server did not take the new weights ({type(error).__name__}: {error}); nothing of the last "
                "checkpoint is lost: start the server again, and continue with --resume"
            ) from error

    vllm.sync_weights = send_paused
    return sampler
