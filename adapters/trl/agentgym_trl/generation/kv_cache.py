"""`RowCache`: a transformers `Cache` with one row per sequence. A forward pass reads and writes some of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache, CacheLayerMixin
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "agentgym_grouped_sdpa"
_MAX_FOLDED = 64  # queries per row; with more, a repeated mask would cost more than repeated keys


class _RowLayer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer, (rows, places, heads, head size), so that those of a new token are contiguous."""

    is_sliding = False

    def __init__(self, cache: RowCache) -> None:
        super().__init__()
        self._cache = cache

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate the rows."""
        shape = (self._cache.rows, self._cache.width)
        self.keys = key_states.new_zeros(*shape, key_states.size(1), key_states.size(3))
        self.values = value_states.new_zeros(*shape, value_states.size(1), value_states.size(3))
        self.is_initialized = True

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        """Write new keys and values (n, heads, q, head size) where the pass writes; return all that it may read."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        cache = self._cache
        self.keys[cache.written] = key_states.transpose(1, 2).to(self.keys.dtype)
        self.values[cache.written] = value_states.transpose(1, 2).to(self.values.dtype)
        keys, values = self.keys[cache.read, : cache.used], self.values[cache.read, : cache.used]
        return keys.transpose(1, 2), values.transpose(1, 2)

    def resize(self, kept: torch.Tensor, rows: int, width: int) -> None:
        """Move the rows `kept` to the front of a new table."""
        if not self.is_initialized:
            return
        in_order = bool((kept == torch.arange(len(kept))).all())
        for name in ("keys", "values"):
            held = getattr(self, name)
            table = held.new_zeros(rows, width, *held.shape[2:])
            common = min(width, held.size(1))
            chosen = slice(len(kept)) if in_order else kept.to(held.device)  # a slice is copied once, an index twice
            table[: len(kept), :common] = held[chosen, :common]
            setattr(self, name, table)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` places of a row to another row."""
        for held in (self.keys, self.values):
            held[target, :length] = held[source, :length]

    def swap(self, one: torch.Tensor, other: torch.Tensor, length: int) -> None:
        """Exchange rows, in their first `length` places."""
        for held in (self.keys, self.values):
            a, b = one.to(held.device), other.to(held.device)
            held[a, :length], held[b, :length] = held[b, :length], held[a, :length].clone()

    def get_seq_length(self) -> int:
        """Return 0: every row has its own length, and the caller passes positions."""
        return 0

    def get_max_cache_shape(self) -> int:
        """Return -1: the rows grow."""
        return -1

    def get_max_length(self) -> int:
        """Return -1; the name of `get_max_cache_shape` since transformers 5.2x."""
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of places that the pass reads, and their offset."""
        return self._cache.used, 0


class RowCache(Cache):  # type: ignore[misc]
    """The keys and values of all layers; `width` is the number of places of a row."""

    def __init__(self, layers: int) -> None:
        self.rows = self.width = self.used = 0
        self.read: Any = slice(0)
        self.written: Any = ()
        super().__init__(layers=[_RowLayer(self) for _ in range(layers)])

    def select(self, rows: torch.Tensor, places: torch.Tensor) -> None:
        """Let the next pass read `rows` (n,), in ascending order, and write to their `places` (n, q)."""
        first, last = int(rows[0]), int(rows[-1])
        contiguous = len(rows) == last - first + 1
        self.read = slice(first, last + 1) if contiguous else rows
        self.written = (rows[:, None], places)
        self.used = int(places.max()) + 1

    def resize(self, kept: torch.Tensor, rows: int, width: int) -> None:
        """Make a table of `rows` x `width` that begins with the rows `kept`."""
        self.rows, self.width = rows, width
        for layer in self.layers:
            layer.resize(kept, rows, width)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the beginning of a row to another row."""
        for layer in self.layers:
            layer.copy(source, target, length)

    def swap(self, one: torch.Tensor, other: torch.Tensor, length: int) -> None:
        """Exchange rows."""
        for layer in self.layers:
            layer.swap(one, other, length)

    def drop(self) -> None:
        """Free all tensors."""
        self.rows = self.width = self.used = 0
        for layer in self.layers:
            layer.keys, layer.values, layer.is_initialized = None, None, False

    @property
    def dtype(self) -> torch.dtype | None:
        """The type of the keys; None before the first pass."""
        keys = self.layers[0].keys
        return None if keys is None else keys.dtype


def grouped_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attend like transformers' SDPA, without a copy of the keys for every head that shares them.

    The heads of a group become further queries of the one head of their keys.
    """
    rows, heads, length, size = query.shape
    groups = heads // key.size(1)
    if attention_mask is None or groups == 1 or length > _MAX_FOLDED:
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
        return found
    folded = query.reshape(rows, key.size(1), groups * length, size)
    mask = attention_mask if length == 1 else attention_mask.repeat(1, 1, groups, 1)
    out = scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
    return out.reshape(rows, heads, length, -1).transpose(1, 2).contiguous(), None


@contextmanager
def grouped(config: Any) -> Iterator[None]:
    """Use `grouped_attention` in the models of a text config that has SDPA or flash attention."""
    before = config._attn_implementation
    if before == "eager":
        yield
        return
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = before


AttentionInterface.register(ATTENTION, grouped_attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
