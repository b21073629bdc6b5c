"""Several engines as one: reciprocal rank fusion.

Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
methods", SIGIR 2009.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import MAX_TOP_K, Hit, Passage, Retriever

CONSTANT = 60
"""The paper's: the larger, the less the first places count beyond the next."""
_DEPTH = 4
"""How many times `k` hits each engine is asked for, so that what is good for several of them is seen."""


class HybridRetriever(Retriever):
    """Asks several retrievers and sorts by the sum of 1 / (60 + place); the passages' ids tell which are the same.

    Ties go to the passage that stands higher with the earlier retriever.
    """

    def __init__(self, retrievers: Sequence[Retriever]) -> None:
        """`retrievers` should be over the same corpus. Raises UsageError for fewer than two."""
        if len(retrievers) < 2:
            raise UsageError("a hybrid is of two retrievers or more")
        self._retrievers = tuple(retrievers)

    def __reduce__(self) -> tuple[Any, ...]:
        return HybridRetriever, (self._retrievers,)

    def __deepcopy__(self, memo: dict[int, Any]) -> HybridRetriever:
        return self

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """See `Retriever.waits`."""
        return any(retriever.waits for retriever in self._retrievers)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        return _fuse([retriever.search(queries, _depth(k)) for retriever in self._retrievers], k)

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.asearch`; all are asked at once."""
        tasks = [asyncio.ensure_future(retriever.asearch(queries, _depth(k))) for retriever in self._retrievers]
        try:
            return _fuse(await asyncio.gather(*tasks), k)
        finally:
            for task in tasks:
                task.cancel()

    def describe(self) -> dict[str, Any]:
        """See `Retriever.describe`."""
        parts = [retriever.describe() for retriever in self._retrievers]
        common = {key: value for key, value in parts[0].items() if all(part.get(key) == value for part in parts)}
        return {**common, "engine": "hybrid", "engines": parts}

    def close(self) -> None:
        """See `Retriever.close`."""
        for retriever in self._retrievers:
            retriever.close()


def _depth(k: int) -> int:
    return k if type(k) is not int or k > MAX_TOP_K else min(_DEPTH * k, MAX_TOP_K)


def _fuse(found: Sequence[Sequence[Sequence[Hit]]], k: int) -> list[list[Hit]]:
    """`found` is by retriever, then by query."""
    return [_fuse_one(lists, k) for lists in zip(*found, strict=True)] if k > 0 else [[] for _ in found[0]]


def _fuse_one(lists: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    passages, scores = dict[str, Passage](), dict[str, float]()
    for hits in lists:
        for place, hit in enumerate(hits, 1):
            passages.setdefault(hit.passage.id, hit.passage)
            scores[hit.passage.id] = scores.get(hit.passage.id, 0.0) + 1 / (CONSTANT + place)
    best = sorted(scores, key=lambda name: -scores[name])[:k]  # a stable sort of what is in order of appearance
    return [Hit(passages[name], scores[name]) for name in best]
