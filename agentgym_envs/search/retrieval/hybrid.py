"""A retriever that combines several engines by reciprocal rank fusion.

Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
methods", SIGIR 2009.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import MAX_TOP_K, Hit, Page, Passage, Retriever

CONSTANT = 60
"""The constant of the paper. The larger it is, the less the first ranks count compared with the next."""
_DEPTH = 4
"""Each engine returns this many times `k` hits, so that passages ranked well by several engines are included."""


class HybridRetriever(Retriever):
    """Queries several retrievers and sorts passages by the sum of 1 / (60 + rank). Passages are matched by id.

    Ties are broken by the rank in the earlier retriever.
    """

    def __init__(self, retrievers: Sequence[Retriever]) -> None:
        """Combine `retrievers`, which should be over the same corpus. Raises UsageError for fewer than two."""
        if len(retrievers) < 2:
            raise UsageError("a hybrid needs two retrievers or more")
        self._retrievers = tuple(retrievers)

    def __reduce__(self) -> tuple[Any, ...]:
        return HybridRetriever, (self._retrievers,)

    def __deepcopy__(self, memo: dict[int, Any]) -> HybridRetriever:
        return self

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """True if one of the retrievers waits."""
        return any(retriever.waits for retriever in self._retrievers)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search with each retriever in turn, and fuse the results."""
        return _fuse([retriever.search(queries, _depth(k)) for retriever in self._retrievers], k)

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search with all retrievers concurrently, and fuse the results."""
        tasks = [asyncio.ensure_future(retriever.asearch(queries, _depth(k))) for retriever in self._retrievers]
        try:
            return _fuse(await asyncio.gather(*tasks), k)
        finally:
            for task in tasks:
                task.cancel()

    def page(self, passage: Passage) -> Page:
        """Return the page that the first retriever knows."""
        return self._retrievers[0].page(passage)

    async def apage(self, passage: Passage) -> Page:
        """Return the page that the first retriever knows."""
        return await self._retrievers[0].apage(passage)

    def describe(self) -> dict[str, Any]:
        """Describe the retrievers, and what they have in common."""
        parts = [retriever.describe() for retriever in self._retrievers]
        common = {key: value for key, value in parts[0].items() if all(part.get(key) == value for part in parts)}
        return {**common, "engine": "hybrid", "engines": parts}

    def close(self) -> None:
        """Close all retrievers."""
        for retriever in self._retrievers:
            retriever.close()


def _depth(k: int) -> int:
    return k if type(k) is not int or k > MAX_TOP_K else min(_DEPTH * k, MAX_TOP_K)


def _fuse(found: Sequence[Sequence[Sequence[Hit]]], k: int) -> list[list[Hit]]:
    """Fuse results, given by retriever and then by query."""
    return [_fuse_one(lists, k) for lists in zip(*found, strict=True)] if k > 0 else [[] for _ in found[0]]


def _fuse_one(lists: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    passages, scores = dict[str, Passage](), dict[str, float]()
    for hits in lists:
        for rank, hit in enumerate(hits, 1):
            passages.setdefault(hit.passage.id, hit.passage)
            scores[hit.passage.id] = scores.get(hit.passage.id, 0.0) + 1 / (CONSTANT + rank)
    best = sorted(scores, key=lambda name: -scores[name])[:k]  # stable, so ties stay in order of appearance
    return [Hit(passages[name], scores[name]) for name in best]
