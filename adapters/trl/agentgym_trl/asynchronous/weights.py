"""`SharedWeights`: the weights of a model in memory that two processes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

_ALIGNED = 64


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tensor in the buffer."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


class SharedWeights:
    """A copy of a state dict in one buffer of shared memory, which a spawned process receives without a copy.

    One process writes and the other one reads; they must take turns.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        """Make room for the tensors of `state`, and copy them."""
        self._entries, size = [], 0
        for name, tensor in state.items():
            self._entries.append(_Entry(name, tensor.dtype, tuple(tensor.shape), size))
            size += -(-self._entries[-1].bytes // _ALIGNED) * _ALIGNED
        self._buffer = torch.empty(max(size, 1), dtype=torch.uint8)
        self._buffer.share_memory_()  # type: ignore[no-untyped-call]
        self.write(state)

    @torch.no_grad()
    def write(self, state: Mapping[str, Any]) -> None:
        """Copy the tensors of a state dict with the same names and shapes."""
        for name, tensor in self.read().items():
            tensor.copy_(state[name])

    def read(self) -> dict[str, torch.Tensor]:
        """The tensors in the buffer."""
        return {
            entry.name: self._buffer[entry.begin : entry.begin + entry.bytes].view(entry.dtype).view(entry.shape)
            for entry in self._entries
        }
