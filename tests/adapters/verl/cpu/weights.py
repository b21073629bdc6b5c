"""`gloo`: verl's interface of a transfer of weights between processes, which mode `separate_async` needs."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ProcessGroupGloo, TCPStore  # type: ignore[attr-defined]
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry

_HOST, _TIMEOUT = "127.0.0.1", timedelta(seconds=60)


@CheckpointEngineRegistry.register("gloo")
class GlooCheckpointEngine(CheckpointEngine):  # type: ignore[misc]
    """Broadcasts the weights of the first training process to the processes beside the servers, all at once."""

    def __init__(self, bucket_size: int, is_master: bool = False) -> None:
        self._is_master = is_master
        self._store: TCPStore | None = None
        self._group: Any = None  # a ProcessGroupGloo; torch declares no methods of it

    def prepare(self) -> int | None:
        """The port at which the processes find each other, from the first one."""
        if not self._is_master:
            return None
        self._store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False, timeout=_TIMEOUT)
        return int(self._store.port)

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: Sequence[int | None]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """The arguments of `init_process_group` for each process; training processes but the first send nothing."""
        ranks = [0, *[-1] * (actor_wg_world_size - 1)], [*range(1, 1 + rollout_world_size)]
        return tuple(  # type: ignore[return-value]
            {"rank": own, "size": [1 + rollout_world_size] * len(own), "port": [metadata[0]] * len(own)}
            for own in ranks
        )

    def init_process_group(self, rank: int, size: int, port: int) -> None:
        if rank >= 0:
            store = self._store or TCPStore(_HOST, port, is_master=False, timeout=_TIMEOUT)
            self._group = ProcessGroupGloo(store, rank, size, _TIMEOUT)

    def finalize(self) -> None:
        self._group = self._store = None

    async def send_weights(
        self, weights: Iterator[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> dict[str, float]:
        found = {name: whole(tensor) for name, tensor in weights}  # all training processes gather the shards
        if self._group is not None:
            file = io.BytesIO()
            torch.save(found, file)
            data = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
            self._broadcast(torch.tensor([len(data)]))
            self._broadcast(data)
        return {}

    async def receive_weights(self, global_steps: int | None = None) -> AsyncIterator[tuple[str, torch.Tensor]]:
        size = self._broadcast(torch.zeros(1, dtype=torch.long))
        data = self._broadcast(torch.zeros(int(size), dtype=torch.uint8))
        for name, tensor in torch.load(io.BytesIO(data.numpy().tobytes())).items():
            yield name, tensor

    def _broadcast(self, tensor: torch.Tensor) -> torch.Tensor:
        assert self._group is not None
        self._group.broadcast(tensor, 0).wait()
        return tensor


def whole(tensor: Any) -> torch.Tensor:
    """A copy of a sharded or whole tensor, in float32."""
    full: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full.detach().float().clone()
