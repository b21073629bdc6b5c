"""The second stage of a search: more passages than needed are retrieved, and a reranker puts the best ones first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import MAX_TOP_K, Hit, Retriever, check_queries
from agentgym_envs.search.retrieval.http_client import gather_or_cancel
from agentgym_envs.search.retrieval.rerankers import Reranker, load_reranker

DEPTH = 20
"""Passages that are retrieved for the reranker by default."""
_AT_ONCE = 16


class RerankingRetriever(Retriever):
    """Sorts the first `depth` passages of a retriever by the scores of a reranker.

    Equal scores stay in the order of the retriever. If more than `depth` passages are asked for, all are reranked.
    """

    def __init__(self, inner: Retriever, reranker: Reranker, depth: int = DEPTH) -> None:
        """Wrap the retriever `inner`. Raises UsageError for an invalid depth."""
        self._inner, self._reranker, self._depth = inner, reranker, check_depth(depth)

    def __reduce__(self) -> tuple[Any, ...]:
        return RerankingRetriever, (self._inner, self._reranker, self._depth)

    def __deepcopy__(self, memo: dict[int, Any]) -> RerankingRetriever:
        return self

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """True if the retriever or the reranker waits."""
        return self._inner.waits or self._reranker.waits

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search, and rerank the passages of each query."""
        found = self._inner.search(check_queries(queries, k), self._limit(k))
        pairs = zip(queries, found, strict=True)
        return [_sorted(hits, self._reranker.scores(query, _texts(hits)) if hits else [], k) for query, hits in pairs]

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search, and rerank the passages of all queries concurrently."""
        found = await self._inner.asearch(check_queries(queries, k), self._limit(k))
        places = asyncio.Semaphore(_AT_ONCE)

        async def rerank(query: str, hits: list[Hit]) -> list[Hit]:
            async with places:
                return _sorted(hits, await self._reranker.ascores(query, _texts(hits)) if hits else [], k)

        pairs = zip(queries, found, strict=True)
        return await gather_or_cancel([asyncio.create_task(rerank(query, hits)) for query, hits in pairs])

    def describe(self) -> dict[str, Any]:
        """Describe the retriever and the reranker."""
        return {**self._inner.describe(), **self._reranker.describe(), "rerank_depth": self._depth}

    def close(self) -> None:
        """Close the retriever and the reranker."""
        self._inner.close()
        self._reranker.close()

    def _limit(self, k: int) -> int:
        return max(k, self._depth) if k > 0 else k


class _SharedReranking(RerankingRetriever):
    """A retriever that `open_reranking` made, shared by all callers in a process, also after unpickling."""

    def __init__(self, inner: Retriever, spec: str, depth: int) -> None:
        super().__init__(inner, _reranker(spec), depth)
        self._arguments = inner, spec, depth

    def __reduce__(self) -> tuple[Any, ...]:
        return open_reranking, self._arguments


@lru_cache(maxsize=16)
def open_reranking(inner: Retriever, spec: str, depth: int = DEPTH) -> Retriever:
    """Put the reranker that `load_reranker` loads behind a retriever, once per process."""
    return _SharedReranking(inner, spec, depth)


@lru_cache(maxsize=4)
def _reranker(spec: str) -> Reranker:
    return load_reranker(spec)


def check_depth(depth: object) -> int:
    """Return a depth. Raises UsageError if it is not a whole number in range."""
    if type(depth) is not int or not 1 <= depth <= MAX_TOP_K:
        raise UsageError(f"rerank_depth must be a whole number from 1 to {MAX_TOP_K}, got {depth!r}")
    return depth


def _texts(hits: Sequence[Hit]) -> list[str]:
    return [f"{passage.title}\n{passage.text}".strip() for passage, _ in hits]


def _sorted(hits: Sequence[Hit], scores: Sequence[float], k: int) -> list[Hit]:
    order = sorted(range(len(hits)), key=lambda number: -scores[number])  # stable, so ties stay in order
    return [Hit(hits[number].passage, scores[number]) for number in order[:k]]
