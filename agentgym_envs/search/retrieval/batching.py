"""Queries of many callers of an event loop, asked together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from agentgym_envs.errors import RetrieverError
from agentgym_envs.search.retrieval.base import Hit, Retriever, check_queries

_Waiting = tuple[str, "asyncio.Future[list[Hit]]"]


class BatchingRetriever(Retriever):
    """Gathers the queries of `asearch` calls with the same `k` and asks for up to `max_batch` of them at a time.

    A query waits for others for at most `max_wait_ms`. `search` goes straight through.
    """

    def __init__(self, inner: Retriever, max_batch: int = 64, max_wait_ms: float = 1.0) -> None:
        """`inner` is who is asked."""
        self._inner, self._most, self._seconds = inner, max_batch, max_wait_ms / 1_000
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, list[_Waiting]]] = WeakKeyDictionary()
        self._running: set[asyncio.Task[None]] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchingRetriever, (self._inner, self._most, self._seconds * 1_000)

    def __deepcopy__(self, memo: dict[int, Any]) -> BatchingRetriever:
        return self

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """See `Retriever.waits`."""
        return self._inner.waits

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        return self._inner.search(queries, k)

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.asearch`."""
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in queries]
        waiting = self._waiting.setdefault(loop, {})
        for query, future in zip(check_queries(queries, k), futures, strict=True):
            batch = waiting.setdefault(k, [])
            batch.append((query, future))
            if len(batch) == 1:
                loop.call_later(self._seconds, self._send, waiting, k, batch)
            if len(batch) >= self._most:
                self._send(waiting, k, batch)
        # each is awaited, so that no error of another is left unread
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    def describe(self) -> dict[str, Any]:
        """See `Retriever.describe`."""
        return self._inner.describe()

    def close(self) -> None:
        """See `Retriever.close`."""
        self._inner.close()

    def _send(self, waiting: dict[int, list[_Waiting]], k: int, batch: list[_Waiting]) -> None:
        """Ask for a batch, unless that has been done; those who were cancelled meanwhile are left out."""
        if waiting.get(k) is not batch:
            return
        del waiting[k]
        wanted = [(query, future) for query, future in batch if not future.done()]
        if wanted:
            task = asyncio.get_running_loop().create_task(self._ask(wanted, k))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _ask(self, batch: list[_Waiting], k: int) -> None:
        try:
            answers = await self._inner.asearch([query for query, _ in batch], k)
            if len(answers) != len(batch):
                raise RetrieverError(f"the retriever gave {len(answers)} results for {len(batch)} queries")
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
