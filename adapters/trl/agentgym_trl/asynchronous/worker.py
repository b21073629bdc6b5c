"""The process that samples while the trainer learns: a copy of the model, and a decoder that requests join at any time.

Messages to it are tuples: `("sample", number, prompt_ids, sampling, seed)` and `("load", version)`. It answers with
`("sampled", number, ids, finish, logprobs, version)`, `("loaded", version)` or `("failed", reason)`. It ends when the
connection is closed.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from agentgym_trl.asynchronous.weights import SharedWeights
from agentgym_trl.attention import without_cudnn_attention
from agentgym_trl.generation.decoder import CachedDecoder, PendingAnswer

_Message = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """All that a process needs to make the model: class, configurations and shared weights."""

    model_class: Any
    config: Any
    adapter: Any
    weights: SharedWeights
    dtype: torch.dtype
    device: str
    threads: int
    logprob_temperature: float

    def make_model(self) -> Any:
        """The model; its weights are those in shared memory at this time."""
        model = self.model_class._from_config(self.config, dtype=self.dtype)
        if self.adapter is not None:
            from peft import get_peft_model

            model = get_peft_model(model, self.adapter)
        model.to(self.device).eval().load_state_dict(self.weights.read())
        return model


def serve(connection: Connection, setup: WorkerSetup) -> None:
    """Answer the messages of a connection until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trainer, which closes the connection
    torch.set_num_threads(setup.threads)
    try:
        _Worker(connection, setup).run()
    except Exception as error:  # a model may fail in any way
        connection.send(("failed", f"{type(error).__name__}: {error}"))


class _Worker:
    def __init__(self, connection: Connection, setup: WorkerSetup) -> None:
        self._connection, self._setup = connection, setup
        self._inbox = queue.SimpleQueue[_Message]()
        # Read in a thread: if both sides waited until the other one reads, none would.
        threading.Thread(target=self._receive, daemon=True).start()
        self._model = setup.make_model()
        self._decoder = CachedDecoder(self._model, logprob_temperature=setup.logprob_temperature)
        self._answers: dict[int, PendingAnswer] = {}
        self._waiting: list[PendingAnswer] = []
        self._load: int | None = None
        self._version = 0

    def run(self) -> None:
        """Sample and load in turns: an answer has the weights of one version."""
        while True:
            self._take(block=True)
            if self._load is not None:
                self._load_weights(self._load)
            if self._waiting:
                with without_cudnn_attention(), self._decoder.running():
                    self._sample()

    def _sample(self) -> None:
        """Sample until nothing is left, or until new weights wait and the answers that have begun are complete."""
        while self._answers:
            begun = len(self._answers) - len(self._waiting)
            if self._load is None:
                self._waiting = self._decoder.advance(self._waiting)
            elif begun:
                self._decoder.advance([])
            else:
                return
            for number, answer in [item for item in self._answers.items() if item[1].ended]:
                del self._answers[number]
                done = answer.generation()
                self._connection.send(("sampled", number, done.ids, done.finish, done.logprobs, self._version))
            self._take(block=False)

    def _take(self, block: bool) -> None:
        """Take what has arrived; with `block`, wait until there is something to do."""
        for message in self._arrived(block and not self._waiting and self._load is None):
            if message[0] == "load":
                self._load = message[1]
            else:
                _, number, prompt_ids, sampling, seed = message
                self._answers[number] = answer = PendingAnswer.of(prompt_ids, sampling, seed)
                self._waiting.append(answer)

    def _arrived(self, block: bool) -> Iterator[_Message]:
        while True:
            try:
                yield self._inbox.get(block=block)
            except queue.Empty:
                return
            block = False

    def _load_weights(self, version: int) -> None:
        self._decoder.drop()
        self._model.load_state_dict(self._setup.weights.read())
        self._version, self._load = version, None
        self._connection.send(("loaded", version))

    def _receive(self) -> None:
        try:
            while True:
                self._inbox.put(self._connection.recv())
        except (EOFError, OSError):
            os._exit(0)  # the trainer is gone
