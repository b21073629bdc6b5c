"""Nearest neighbours of queries in a faiss index. Source: https://github.com/facebookresearch/faiss."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from agentgym_envs.errors import missing_extra
from agentgym_envs.search.retrieval.encoders import Encoder, Vectors
from agentgym_envs.search.retrieval.local_base import MORE, Ranking, rank

_SEARCH_EFFORT = 64
_DECIMALS = 5
"""Decimals of a score. Further ones vary with the batch size, and must not decide the order of ties."""


def import_faiss() -> ModuleType:
    """Import faiss. Raises MissingExtra."""
    try:
        import faiss
    except ModuleNotFoundError:
        raise missing_extra("this search engine", "faiss-cpu", "search-dense") from None
    module: ModuleType = faiss
    return module


class VectorSearch:
    """Encodes queries and finds the nearest vectors of an index. Threads may share it."""

    def __init__(self, index: Any, encoder: Encoder, *, one_at_a_time: bool = False) -> None:
        """Take a faiss index over inner products, and the encoder of its vectors.

        `one_at_a_time` serializes searches, for indexes that threads cannot share, such as those on a GPU.
        """
        faiss = import_faiss()
        self._index, self._encoder = index, encoder
        self._turn = threading.Lock() if one_at_a_time else contextlib.nullcontext()
        self._parameters = faiss.SearchParametersHNSW if isinstance(index, faiss.IndexHNSW) else None

    def rankings(self, queries: Sequence[str], k: int) -> list[Ranking]:
        """Return the `k` best hits of each query; none for a query without a letter or digit."""
        results: list[Ranking] = [[] for _ in queries]
        indices = [index for index, query in enumerate(queries) if k > 0 and any(map(str.isalnum, query))]
        if indices:
            vectors = self._encoder.encode([queries[index] for index in indices], "query")
            for index, vector, first in zip(indices, vectors, self._nearest(vectors, k + MORE), strict=True):
                results[index] = self._best(vector[np.newaxis], k, first)
        return results

    def _best(self, vector: Vectors, k: int, first: Ranking) -> Ranking:
        if not vector.any():
            return []
        return rank(lambda limit: self._nearest(vector, limit)[0], k, self._index.ntotal, first)

    def _nearest(self, vectors: Vectors, limit: int) -> list[Ranking]:
        limit = min(limit, self._index.ntotal)
        effort = self._parameters and self._parameters(efSearch=max(_SEARCH_EFFORT, 2 * limit))
        with self._turn:
            scores, numbers = self._index.search(vectors, limit, **({"params": effort} if effort else {}))
        # faiss pads with the number -1 and the lowest float32, which rounding would overflow, if it finds too few
        rows = zip((-scores.astype(np.float64)).round(_DECIMALS).tolist(), numbers.tolist(), strict=True)
        return [[(score, number) for score, number in zip(*row, strict=True) if number >= 0] for row in rows]
