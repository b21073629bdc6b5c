"""`pack`: lay the rows of a padded batch end to end in one row.

Linear layers, norms and the head then read real tokens only. Attention still works on blocks: rows of similar length
are gathered into one small padded batch. Rows that begin with the same prompt share it: its tokens, except the last,
are in the packed row once, and its keys and values are gathered for every row that continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

_SHORTEST = 0.6  # of the longest row in a block: shorter rows go to another block
_SMALLEST = 4  # rows in a block before another one is opened; small blocks cost more than padding

_T = TypeVar("_T")


class TokenSpan(NamedTuple):
    """Consecutive tokens of the packed row."""

    start: int
    length: int


class Branch(NamedTuple):
    """A row: the part that it shares with others, possibly empty, and its own tokens."""

    shared: TokenSpan
    own: TokenSpan


@dataclass(frozen=True, slots=True)
class AttentionBlock:
    """Indices in the packed row of the queries (b, q) and keys (b, k) of some rows, padded on the right.

    `real` (b, q) is False where a query is padding, which repeats the last token of its row.

    `mask` (b, 1, q, k) is True where a query may see a key. Without a mask, queries and keys are the same tokens and
    attention is causal; padding is behind the row's end, where no token looks.
    """

    queries: Tensor
    real: Tensor
    keys: Tensor
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class PackedRows:
    """A batch (B, S) in one row of N tokens."""

    ids: Tensor
    """(1, N)"""
    positions: Tensor
    """(1, N) index of each token in its own row"""
    index: Tensor
    """(B, S) index of each token in the packed row; -1 on padding"""
    blocks: tuple[AttentionBlock, ...]
    inverse: Tensor
    """(N,) index of each token among the queries of all blocks, laid end to end"""
    scored: Tensor | None = None
    """(M,) the only tokens whose hidden states leave the backbone; None: all"""
    masks: dict[int | None, list[Tensor | None]] = field(default_factory=dict)
    """The mask of every block for each sliding window with which attention was called; all layers share them"""


def pack(ids: Tensor, mask: Tensor, prompt: int = 0) -> PackedRows:
    """Pack a batch (B, S) with an attention mask. Rows with equal tokens in the first `prompt` columns share them."""
    layout = _Layout()
    real = mask.bool().cpu().numpy()
    table = ids.cpu().numpy()
    index = np.full(table.shape, -1)
    for row, used, places in zip(table, real, index, strict=True):
        places[used] = layout.add(row[used], max(int(used[:prompt].sum()) - 1, 0))
    return layout.packed(torch.from_numpy(index), ids.device)


class _Layout:
    """The packed row while rows are added."""

    def __init__(self) -> None:
        self._tokens: list[np.ndarray] = []
        self._positions: list[np.ndarray] = []
        self._shared: dict[bytes, TokenSpan] = {}
        self._rows: list[Branch] = []
        self._length = 0

    def add(self, tokens: np.ndarray, shareable: int) -> np.ndarray:
        """Add a row whose first `shareable` tokens may be shared; return the index of each of its tokens."""
        head = tokens[:shareable]
        shared = self._shared.get(head.tobytes())
        if shared is None:
            shared = self._shared[head.tobytes()] = self._append(head, 0)
        own = self._append(tokens[shareable:], shareable)
        self._rows.append(Branch(shared, own))
        return np.concatenate([np.arange(s.start, s.start + s.length) for s in (shared, own)])

    def packed(self, index: Tensor, device: torch.device) -> PackedRows:
        blocks = self._blocks()
        queries, real = (torch.cat([getattr(b, name).reshape(-1) for b in blocks]) for name in ("queries", "real"))
        inverse = torch.empty(self._length, dtype=torch.long)
        inverse[queries[real]] = torch.arange(len(queries))[real]
        return PackedRows(
            ids=torch.from_numpy(np.concatenate(self._tokens))[None].to(device),
            positions=torch.from_numpy(np.concatenate(self._positions))[None].to(device),
            index=index.to(device),
            blocks=tuple(_moved(block, device) for block in blocks),
            inverse=inverse.to(device),
        )

    def _append(self, tokens: np.ndarray, position: int) -> TokenSpan:
        segment = TokenSpan(self._length, len(tokens))
        self._tokens.append(tokens)
        self._positions.append(np.arange(position, position + len(tokens)))
        self._length += len(tokens)
        return segment

    def _blocks(self) -> list[AttentionBlock]:
        whole = [s for s in self._shared.values() if s.length]
        whole += [row.own for row in self._rows if not row.shared.length and row.own.length]
        forked = [row for row in self._rows if row.shared.length]
        blocks = [_causal(some) for some in _of_similar_length(whole, lambda s: s.length)]
        return blocks + [_forked(some) for some in _of_similar_length(forked, lambda row: row.own.length)]


def _of_similar_length(items: Sequence[_T], length: Callable[[_T], int]) -> list[list[_T]]:
    """Split items, longest first, where the next one is much shorter than the first of its block."""
    blocks: list[list[_T]] = []
    for item in sorted(items, key=length, reverse=True):
        if not blocks or (len(blocks[-1]) >= _SMALLEST and length(item) < _SHORTEST * length(blocks[-1][0])):
            blocks.append([])
        blocks[-1].append(item)
    return blocks


def _causal(segments: Sequence[TokenSpan]) -> AttentionBlock:
    places, real = _places(segments)
    return AttentionBlock(places, real, places, None)


def _forked(rows: Sequence[Branch]) -> AttentionBlock:
    before, known = _places([row.shared for row in rows])
    own, real = _places([row.own for row in rows])
    size = own.size(1)
    causal = torch.ones(size, size, dtype=torch.bool).tril()
    mask = torch.cat([known[:, None].expand(-1, size, -1), causal.expand(len(rows), -1, -1)], -1)
    return AttentionBlock(own, real, torch.cat([before, own], 1), mask[:, None])


def _places(segments: Sequence[TokenSpan]) -> tuple[Tensor, Tensor]:
    """The indices (b, longest) of some segments, the last one repeated, and a mask of those that are not repeated."""
    start, length = torch.tensor(segments).T
    step = torch.arange(int(length.max()))
    return start[:, None] + torch.minimum(step, length[:, None] - 1), step < length[:, None]


def _moved(block: AttentionBlock, device: torch.device) -> AttentionBlock:
    queries = block.queries.to(device)
    keys = queries if block.keys is block.queries else block.keys.to(device)
    mask = None if block.mask is None else block.mask.to(device)
    return AttentionBlock(queries, block.real, keys, mask)
