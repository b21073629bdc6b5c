"""`ProcessEngine`: samples in a process with a copy of the model, which gets new weights through shared memory."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.multiprocessing

from agentgym_envs.errors import EngineError
from agentgym_envs.rollout import Generation, Sampling
from agentgym_trl.asynchronous.engine import AnswerRequest, BatchingEngine
from agentgym_trl.asynchronous.worker import WorkerSetup, serve

HANG_SECONDS = 600.0
"""Time without a message after which a process that has work is ended and started again."""
_ATTEMPTS = 2
_CLOSE_SECONDS = 5.0
_log = logging.getLogger(__name__)

ReadWeights = Callable[[], Mapping[str, Any]]


class ProcessEngine(BatchingEngine):
    """Requests join the answers that the process samples at any time. Weights change when the begun ones are complete.

    A process that dies or hangs is started again, once, with the newest weights, and gets the open requests again. They
    have the same random numbers, so an answer under the same weights is the same.
    """

    parallel = True

    def __init__(self, setup: WorkerSetup, read_weights: ReadWeights, sampling: Sampling, *, lockstep: bool) -> None:
        """`read_weights` returns the state dict of the trainer's model; `sampling` has the settings of all answers."""
        super().__init__(lockstep=lockstep)
        self._setup, self._read_weights, self._sampling = setup, read_weights, sampling
        self.hang_seconds = HANG_SECONDS
        self._numbers = itertools.count()
        self._open: dict[int, tuple[tuple[Any, ...], AnswerRequest, asyncio.Future[Generation]]] = {}
        self._loaded = asyncio.Event()
        self._loaded.set()
        self._attempts = 0
        self._error: EngineError | None = None
        self._heard = 0.0
        self._since: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._process: Any = None
        self._connection: Connection | None = None

    async def decode(self, requests: Sequence[AnswerRequest]) -> list[Generation]:
        """Send the requests and wait for their answers."""
        self._check_error()
        return list(await asyncio.gather(*map(self._send, requests)))

    async def swap(self, version: int) -> None:
        """Copy the weights, once the process has read the ones before, and have them loaded."""
        self._start()
        await self._loaded.wait()
        self._check_error()
        self._setup.weights.write(self._read_weights())
        self.version = version
        self._loaded.clear()
        self._post(("load", version))

    async def aclose(self) -> None:
        """End the process."""
        await super().aclose()
        self._end_process()

    def _send(self, request: AnswerRequest) -> asyncio.Future[Generation]:
        number = next(self._numbers)
        sampling = replace(self._sampling, max_tokens=request.sampling.max_tokens)
        message = ("sample", number, list(request.prompt_ids), sampling, request.seed)
        future: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        self._open[number] = message, request, future
        if self._since is None:
            self._since = time.perf_counter()
        self._post(message)
        return future

    def _post(self, message: tuple[Any, ...]) -> None:
        assert self._connection is not None
        try:
            self._connection.send(message)
        except OSError:
            return  # the end of the process is noticed when its answers are read
        self._watch_process()

    def _start(self) -> None:
        if self._process is not None or self._error is not None:
            return
        context = torch.multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, self._setup), name="agentgym-sampler", daemon=True)
        self._process.start()
        other.close()
        asyncio.get_running_loop().add_reader(self._connection.fileno(), self._receive)

    def _receive(self) -> None:
        assert self._connection is not None
        try:
            while self._connection.poll():
                self._handle(self._connection.recv())
        except (EOFError, OSError):
            self._restart(f"ended with exit code {self._exit_code()}")

    def _handle(self, message: tuple[Any, ...]) -> None:
        if message[0] == "failed":
            self._restart(f"failed with {message[1]}")
            return
        self._heard = time.monotonic()
        if message[0] == "loaded":
            self._loaded.set()
            return
        _, number, ids, finish, logprobs, version = message
        _, request, future = self._open.pop(number)
        self._attempts = 0
        answer = Generation(ids, finish, logprobs, version)
        request.note(answer, None)
        self.tokens += len(ids)
        if not self._open and self._since is not None:
            self.seconds, self._since = self.seconds + time.perf_counter() - self._since, None
        if not future.done():
            future.set_result(answer)

    def _restart(self, problem: str) -> None:
        """Start the process again and repeat what it had not done, or fail all requests."""
        self._end_process()
        self._attempts += 1
        if self._attempts >= _ATTEMPTS:
            self._fail(
                EngineError(
                    f"the process that samples for --async {problem}, {_ATTEMPTS} times in a row; nothing of the last "
                    "checkpoint is lost: continue with --resume, or train without --async"
                )
            )
            return
        _log.warning("the process that samples %s; it is started again", problem)
        self._start()
        self._loaded.clear()
        self._post(("load", self.version))
        for message, _, _ in self._open.values():
            self._post(message)

    def _fail(self, error: EngineError) -> None:
        for _, _, future in self._open.values():
            if not future.done():
                future.set_exception(error)
        self._open.clear()
        self._error = error
        self._loaded.set()

    def _check_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _watch_process(self) -> None:
        """Restart a process that has work and sends nothing for too long."""
        self._heard = time.monotonic()
        if self._watch is not None:
            self._watch.cancel()
        self._watch = asyncio.get_running_loop().call_later(self.hang_seconds, self._check)

    def _check(self) -> None:
        self._watch = None
        busy = bool(self._open) or not self._loaded.is_set()
        silent = time.monotonic() - self._heard
        if busy and silent >= self.hang_seconds:
            self._restart(f"sent nothing for {self.hang_seconds:.0f} seconds")
        elif busy:
            left = self.hang_seconds - silent
            self._watch = asyncio.get_running_loop().call_later(left, self._check)

    def _end_process(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = None
        if self._connection is not None:
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join(_CLOSE_SECONDS)
        self._process = self._connection = None

    def _exit_code(self) -> Any:
        self._process.join(_CLOSE_SECONDS)
        return self._process.exitcode
