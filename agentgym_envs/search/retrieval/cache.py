"""A cache of search results, which also merges identical queries that are in progress."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any
from weakref import WeakSet

from agentgym_envs.search.retrieval.base import Hit, Retriever, check_queries

_Key = tuple[str, int]


class _Abandoned(Exception):
    """Raised when the caller that ran a search was stopped; waiting callers run the search themselves."""


class _Pending(Future[list[Hit]]):
    """The future result of a query. `loop_thread` is the thread of the event loop that runs the search, if any."""

    loop_thread: int | None = None


class CachedRetriever(Retriever):
    """Caches the results of the latest queries, and searches for the other queries of a call in one batch.

    If another thread or task is already searching for a query, the caller waits for that result. All waiting callers
    get its errors, and errors are not cached.
    """

    def __init__(self, inner: Retriever, size: int = 10_000) -> None:
        """Wrap the retriever `inner`, and cache up to `size` queries."""
        self._inner, self._size = inner, size
        self._cached: OrderedDict[_Key, list[Hit]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reset_pending()
        _all.add(self)

    def _reset_pending(self) -> None:
        """Reset the lock and the searches in progress, also in a forked child, where their threads do not exist."""
        self._lock, self._pending = threading.Lock(), dict[_Key, _Pending]()

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedRetriever, (self._inner, self._size)

    def __deepcopy__(self, memo: dict[int, Any]) -> CachedRetriever:
        return self

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """True if the inner retriever waits."""
        return self._inner.waits

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return cached results, and search for the rest."""
        keys = [(query, k) for query in check_queries(queries, k)]
        found: dict[_Key, list[Hit]] = {}
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            own, others = self._sort_out(missing, found, None)
            if own:
                self._run(own, k)
            for key, pending in others.items():
                if pending.loop_thread == threading.get_ident():  # it cannot finish while this thread waits
                    found[key] = self._inner.search([key[0]], k)[0]
            _collect({**own, **others}, found)
        return [list(found[key]) for key in keys]

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return cached results, and search for the rest without blocking the event loop."""
        keys = [(query, k) for query in check_queries(queries, k)]
        found: dict[_Key, list[Hit]] = {}
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            own, others = self._sort_out(missing, found, threading.get_ident())
            if own:  # in a separate task, so that other callers get their result if this one is cancelled
                task = asyncio.create_task(self._arun(own, k))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            futures = [asyncio.wrap_future(pending) for pending in (*own.values(), *others.values())]
            await asyncio.gather(*map(asyncio.shield, futures), return_exceptions=True)
            _collect({**own, **others}, found)
        return [list(found[key]) for key in keys]

    def describe(self) -> dict[str, Any]:
        """Describe the inner retriever."""
        return self._inner.describe()

    def close(self) -> None:
        """Close the inner retriever."""
        self._inner.close()

    def _sort_out(
        self, keys: Sequence[_Key], found: dict[_Key, list[Hit]], loop_thread: int | None
    ) -> tuple[dict[_Key, _Pending], dict[_Key, _Pending]]:
        """Take what is cached. Return the searches that this caller must run, and those that others are running."""
        own, others = dict[_Key, _Pending](), dict[_Key, _Pending]()
        with self._lock:
            for key in keys:
                if key in self._cached:
                    self._cached.move_to_end(key)
                    found[key] = self._cached[key]
                elif key in self._pending:
                    others[key] = self._pending[key]
                else:
                    own[key] = self._pending[key] = _Pending()
                    own[key].loop_thread = loop_thread
        return own, others

    def _run(self, own: dict[_Key, _Pending], k: int) -> None:
        try:
            self._store(own, self._inner.search([query for query, _ in own], k))
        except BaseException as error:
            self._fail(own, error)
            raise

    async def _arun(self, own: dict[_Key, _Pending], k: int) -> None:
        try:
            self._store(own, await self._inner.asearch([query for query, _ in own], k))
        except BaseException as error:
            self._fail(own, error)
            if not isinstance(error, Exception):
                raise

    def _store(self, own: dict[_Key, _Pending], results: Sequence[list[Hit]]) -> None:
        done = list(zip(own.items(), results, strict=True))
        with self._lock:
            for (key, _), hits in done:
                self._cached[key] = hits
                del self._pending[key]
            while len(self._cached) > self._size:
                self._cached.popitem(last=False)
        for (_, pending), hits in done:
            pending.set_result(hits)

    def _fail(self, own: dict[_Key, _Pending], error: BaseException) -> None:
        with self._lock:
            for key in own:
                self._pending.pop(key, None)
        for pending in own.values():
            if not pending.done():
                pending.set_exception(error if isinstance(error, Exception) else _Abandoned())


def _collect(searches: dict[_Key, _Pending], found: dict[_Key, list[Hit]]) -> None:
    """Wait for searches and take their results, except for abandoned ones."""
    for key, pending in searches.items():
        if key not in found:
            try:
                found[key] = pending.result()
            except _Abandoned:
                continue


_all: WeakSet[CachedRetriever] = WeakSet()


def _after_fork() -> None:
    for retriever in list(_all):
        retriever._reset_pending()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
