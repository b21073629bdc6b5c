"""`hfcpu`: verl's interface of an inference engine, on `HFServer`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import ray
import torch
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica
from verl.workers.rollout.utils import ensure_async_iterator

from tests.adapters.verl.cpu.server import HFServer
from tests.adapters.verl.cpu.weights import whole


class HFReplica(RolloutReplica):  # type: ignore[misc]
    """Starts a server, in the trainer's process or, in mode `separate_async`, on a device of its own."""

    async def launch_servers(self) -> None:
        server: Any = HFServer  # an actor class by its decorator, which mypy does not know
        name = _server_name(self.replica_rank)
        handle = server.options(name=name).remote(self.model_config["path"], self.config.seed)
        self.servers, self._server_handle, self._server_address = [handle], handle, name


class HFRollout(BaseRollout):  # type: ignore[misc]
    """Sends new weights to the server of its replica. The first replica is the training process itself."""

    def __init__(self, *args: Any, replica_rank: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._server = _server_name(replica_rank)

    async def resume(self, tags: list[str]) -> None:
        pass

    async def release(self) -> None:
        pass

    async def update_weights(
        self,
        weights: Iterator[tuple[str, torch.Tensor]] | AsyncIterator[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **_: Any,
    ) -> None:
        found = {name: whole(tensor) async for name, tensor in ensure_async_iterator(weights)}
        await ray.get_actor(self._server).load.remote(found, global_steps)


def _server_name(replica: int) -> str:
    return f"hfcpu_server_{replica}"
