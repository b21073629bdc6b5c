"""Attention of transformers models over packed rows, by SDPA on the blocks of `PackedRows`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from agentgym_trl.padding_free.rows import AttentionBlock, PackedRows

ATTENTION = "agentgym_padding_free"


def packed_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    packed: PackedRows | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend inside each row of `packed`; without it, attend like transformers' SDPA."""
    if packed is None:
        found: tuple[Tensor, None] = sdpa_attention_forward(
            module,
            query,
            key,
            value,
            attention_mask,
            scaling=scaling,
            dropout=dropout,
            sliding_window=sliding_window,
            **kwargs,
        )
        return found
    flat = [tensor[0].transpose(0, 1) for tensor in (query, key, value)]  # (N, heads, size)
    outs = []
    for block, mask in zip(packed.blocks, _masks(packed, sliding_window), strict=True):
        q, k, v = (_gathered(x, at) for x, at in zip(flat, (block.queries, block.keys, block.keys), strict=True))
        out = _attend(q, k, v, mask, scaling, dropout)
        outs.append(out.transpose(1, 2).flatten(0, 1))
    return torch.cat(outs).index_select(0, packed.inverse)[None], None


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scaling: float | None, dropout: float) -> Tensor:
    groups = q.size(1) // k.size(1)
    if groups > 1 and q.is_cuda and mask is not None:  # grouped heads with a mask have only a slow kernel on a GPU
        k, v, groups = repeat_kv(k, groups), repeat_kv(v, groups), 1
    return scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=mask is None, scale=scaling, dropout_p=dropout, enable_gqa=groups > 1
    )


def _masks(packed: PackedRows, window: int | None) -> list[Tensor | None]:
    if window not in packed.masks:
        packed.masks[window] = [_windowed(block, packed.positions[0], window) for block in packed.blocks]
    return packed.masks[window]


def _windowed(block: AttentionBlock, positions: Tensor, window: int | None) -> Tensor | None:
    """The mask of a block for a layer that sees the last `window` tokens."""
    if window is None or block.keys.size(1) <= window:
        return block.mask
    at, seen = positions[block.queries][:, None, :, None], positions[block.keys][:, None, None, :]
    near = seen > at - window
    return near & block.mask if block.mask is not None else near.tril()  # by column: padding repeats a position


def _gathered(flat: Tensor, index: Tensor) -> Tensor:
    """(N, heads, size) at an index (b, n), as (b, heads, n, size)."""
    return flat.index_select(0, index.reshape(-1)).view(*index.shape, *flat.shape[1:]).transpose(1, 2)


AttentionInterface.register(ATTENTION, packed_attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
