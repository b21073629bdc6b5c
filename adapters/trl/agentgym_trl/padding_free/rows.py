"""`pack`: lay the rows of a padded batch end to end in one row.

Linear layers, norms and the head then read real tokens only. Attention still works on blocks: rows of similar length
are gathered into one small padded batch. Rows that begin with the same tokens share them: the prompt of a group, and
what the contexts of an episode have in common, are in the packed row once. So the tokens form a tree, and a branch of
it gathers the keys and values of its path from the root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

_SHORTEST = 0.6  # of the longest row in a block: shorter rows go to another block
_SMALLEST = 4  # rows in a block before another one is opened; small blocks cost more than padding
_SHARED = 8  # tokens that rows must have in common to share them; a branch costs more than a few tokens

_T = TypeVar("_T")


class TokenSpan(NamedTuple):
    """Consecutive tokens of the packed row."""

    start: int
    length: int


class Branch(NamedTuple):
    """Tokens of the tree, and the path from the root that they continue, possibly empty."""

    path: tuple[TokenSpan, ...]
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


def pack(ids: Tensor, mask: Tensor, *, shares: bool = True) -> PackedRows:
    """Pack a batch (B, S) with an attention mask. With `shares`, what rows begin with in common is read once."""
    real = mask.bool().cpu().numpy()
    rows = [row[used] for row, used in zip(ids.cpu().numpy(), real, strict=True)]
    layout = _Layout(rows, shares)
    index = np.full(real.shape, -1)
    for places, used, own in zip(index, real, layout.places, strict=True):
        places[used] = own
    return layout.packed(torch.from_numpy(index), ids.device)


class _Layout:
    """The packed row, and in `places` the indices of the tokens of each row."""

    def __init__(self, rows: Sequence[np.ndarray], shares: bool) -> None:
        self._rows = rows
        self._tokens: list[np.ndarray] = []
        self._positions: list[np.ndarray] = []
        self._branches: list[Branch] = []
        self._length = 0
        self.places: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(rows)
        if shares:
            self._grow(sorted(range(len(rows)), key=lambda n: rows[n].astype(">i8").tobytes()), (), 0)
        else:
            self._leaves(range(len(rows)), (), 0)

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

    def _grow(self, rows: Sequence[int], path: tuple[TokenSpan, ...], start: int) -> None:
        """Add the tokens from `start` on of some rows, in lexicographic order, which continue the same path."""
        if len(rows) < 2:
            self._leaves(rows, path, start)
            return
        shortest = min(len(self._rows[n]) for n in rows)
        common = min(_equal_length(self._rows[rows[0]], self._rows[rows[-1]]), shortest - 1)  # each keeps a token
        if common - start >= _SHARED:
            path = (*path, self._append(path, self._rows[rows[0]][start:common], start))
            start = common
        self._leaves([n for n in rows if len(self._rows[n]) <= common + 1], path, start)
        longer = [n for n in rows if len(self._rows[n]) > common + 1]
        for _, part in groupby(longer, key=lambda n: int(self._rows[n][max(common, 0)])):
            self._grow(list(part), path, start)

    def _leaves(self, rows: Sequence[int], path: tuple[TokenSpan, ...], start: int) -> None:
        for n in rows:
            own = self._append(path, self._rows[n][start:], start) if len(self._rows[n]) else TokenSpan(0, 0)
            self.places[n] = _indices((*path, own))

    def _append(self, path: tuple[TokenSpan, ...], tokens: np.ndarray, position: int) -> TokenSpan:
        span = TokenSpan(self._length, len(tokens))
        self._tokens.append(tokens)
        self._positions.append(np.arange(position, position + len(tokens)))
        self._branches.append(Branch(path, span))
        self._length += len(tokens)
        return span

    def _blocks(self) -> list[AttentionBlock]:
        whole = [branch for branch in self._branches if not branch.path]
        forked = [branch for branch in self._branches if branch.path]
        blocks = [_causal(some) for some in _of_similar_length(whole, _own_length)]
        return blocks + [_forked(some) for some in _of_similar_length(forked, _own_length)]


def _equal_length(first: np.ndarray, second: np.ndarray) -> int:
    """The number of tokens that two rows begin with in common."""
    size = min(len(first), len(second))
    differs = np.flatnonzero(first[:size] != second[:size])
    return int(differs[0]) if len(differs) else size


def _indices(spans: Sequence[TokenSpan]) -> np.ndarray:
    """The indices of the tokens of spans, end to end."""
    return np.concatenate([np.arange(span.start, span.start + span.length) for span in spans])


def _own_length(branch: Branch) -> int:
    return branch.own.length


def _of_similar_length(items: Sequence[_T], length: Callable[[_T], int]) -> list[list[_T]]:
    """Split items, longest first, where the next one is much shorter than the first of its block."""
    blocks: list[list[_T]] = []
    for item in sorted(items, key=length, reverse=True):
        if not blocks or (len(blocks[-1]) >= _SMALLEST and length(item) < _SHORTEST * length(blocks[-1][0])):
            blocks.append([])
        blocks[-1].append(item)
    return blocks


def _causal(branches: Sequence[Branch]) -> AttentionBlock:
    places, real = _padded([_indices([branch.own]) for branch in branches])
    return AttentionBlock(places, real, places, None)


def _forked(branches: Sequence[Branch]) -> AttentionBlock:
    before, known = _padded([_indices(branch.path) for branch in branches])
    own, real = _padded([_indices([branch.own]) for branch in branches])
    size = own.size(1)
    causal = torch.ones(size, size, dtype=torch.bool).tril()
    mask = torch.cat([known[:, None].expand(-1, size, -1), causal.expand(len(branches), -1, -1)], -1)
    return AttentionBlock(own, real, torch.cat([before, own], 1), mask[:, None])


def _padded(rows: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Indices as (b, longest), the last one of each row repeated, and a mask of those that are not repeated."""
    longest = max(map(len, rows))
    padded = np.stack([np.pad(row, (0, longest - len(row)), mode="edge") for row in rows])
    real = np.arange(longest) < np.array([len(row) for row in rows])[:, None]
    return torch.from_numpy(padded), torch.from_numpy(real)


def _moved(block: AttentionBlock, device: torch.device) -> AttentionBlock:
    queries = block.queries.to(device)
    keys = queries if block.keys is block.queries else block.keys.to(device)
    mask = None if block.mask is None else block.mask.to(device)
    return AttentionBlock(queries, block.real, keys, mask)
