"""`hfcpu`: verl's interface of an inference engine, on `HFServer`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ray
import torch
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica

from tests.adapters.verl.cpu.server import HFServer

_NAME = "hfcpu_server"


class HFReplica(RolloutReplica):  # type: ignore[misc]
    """Starts the server, in the trainer's process."""

    async def launch_servers(self) -> None:
        server: Any = HFServer  # an actor class by its decorator, which mypy does not know
        handle = server.options(name=_NAME).remote(self.model_config["path"], self.config.seed)
        self.servers, self._server_handle, self._server_address = [handle], handle, "hfcpu"


class HFRollout(BaseRollout):  # type: ignore[misc]
    """Sends new weights to the server, from the training process."""

    async def resume(self, tags: list[str]) -> None:
        pass

    async def release(self) -> None:
        pass

    async def update_weights(
        self,
        weights: Iterator[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **_: Any,
    ) -> None:
        found = {name: _whole(tensor) for name, tensor in weights}
        await ray.get_actor(_NAME).load.remote(found, global_steps)


def _whole(tensor: Any) -> torch.Tensor:
    full: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full.detach().float().clone()
