"""Batching of concurrent queries from one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from agentgym_envs.errors import RetrieverError
from agentgym_envs.search.retrieval.base import Hit, Retriever, check_queries

_Waiting = tuple[str, "asyncio.Future[list[Hit]]"]


class BatchingRetriever(Retriever):
    """Combines the queries of concurrent `asearch` calls with the same `k` into batches of up to `max_batch`.

    A query waits for others for at most `max_wait_ms`. `search` is not batched.
    """

    def __init__(self, inner: Retriever, max_batch: int = 64, max_wait_ms: float = 1.0) -> None:
        """Wrap the retriever `inner`."""
        self._inner, self._max_batch, self._seconds = inner, max_batch, max_wait_ms / 1_000
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, list[_Waiting]]] = WeakKeyDictionary()
        self._running: set[asyncio.Task[None]] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchingRetriever, (self._inner, self._max_batch, self._seconds * 1_000)

    def __deepcopy__(self, memo: dict[int, Any]) -> BatchingRetriever:
        return self

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """True if the inner retriever waits."""
        return self._inner.waits

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Pass the queries on without batching."""
        return self._inner.search(queries, k)

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search in a batch with the queries of other callers."""
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in queries]
        waiting = self._waiting.setdefault(loop, {})
        for query, future in zip(check_queries(queries, k), futures, strict=True):
            batch = waiting.setdefault(k, [])
            batch.append((query, future))
            if len(batch) == 1:
                loop.call_later(self._seconds, self._send, waiting, k, batch)
            if len(batch) >= self._max_batch:
                self._send(waiting, k, batch)
        # await all of them, so that no exception stays unretrieved
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    def describe(self) -> dict[str, Any]:
        """Describe the inner retriever."""
        return self._inner.describe()

    def close(self) -> None:
        """Close the inner retriever."""
        self._inner.close()

    def _send(self, waiting: dict[int, list[_Waiting]], k: int, batch: list[_Waiting]) -> None:
        """Start the search of a batch, unless it has been started. Queries that were cancelled are left out."""
        if waiting.get(k) is not batch:
            return
        del waiting[k]
        wanted = [(query, future) for query, future in batch if not future.done()]
        if wanted:
            task = asyncio.get_running_loop().create_task(self._search_batch(wanted, k))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _search_batch(self, batch: list[_Waiting], k: int) -> None:
        try:
            answers = await self._inner.asearch([query for query, _ in batch], k)
            if len(answers) != len(batch):
                raise RetrieverError(f"the retriever returned {len(answers)} results for {len(batch)} queries")
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.cancel() if isinstance(error, asyncio.CancelledError) else future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), hits in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(hits)
