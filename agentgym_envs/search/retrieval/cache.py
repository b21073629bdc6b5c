"""Results that are remembered, and questions that are asked once however many ask them at a time."""

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
    """Who asked was stopped; who waits asks anew."""


class _Flight(Future[list[Hit]]):
    """A query that is being asked. `loop_thread` is the thread whose event loop does so, if one does."""

    loop_thread: int | None = None


class CachedRetriever(Retriever):
    """Remembers the results of the last queries; queries of the same `k` that are not among them go on in one batch.

    Who asks what another thread or task is asking already waits for that answer. A failure reaches all who wait, and
    is not remembered.
    """

    def __init__(self, inner: Retriever, size: int = 10_000) -> None:
        """`inner` is who is asked, `size` how many queries are remembered."""
        self._inner, self._size = inner, size
        self._known: OrderedDict[_Key, list[Hit]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._forget_flights()
        _all.add(self)

    def _forget_flights(self) -> None:
        """Begin anew; in the child of a fork too, where those who flew and who held the lock do not exist."""
        self._lock, self._flights = threading.Lock(), dict[_Key, _Flight]()

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedRetriever, (self._inner, self._size)

    def __deepcopy__(self, memo: dict[int, Any]) -> CachedRetriever:
        return self

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """See `Retriever.waits`."""
        return self._inner.waits

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        keys = [(query, k) for query in check_queries(queries, k)]
        found: dict[_Key, list[Hit]] = {}
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            own, others = self._sort_out(missing, found, None)
            if own:
                self._fly(own, k)
            for key, flight in others.items():
                if flight.loop_thread == threading.get_ident():  # it cannot land while this thread waits
                    found[key] = self._inner.search([key[0]], k)[0]
            _collect({**own, **others}, found)
        return [list(found[key]) for key in keys]

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.asearch`."""
        keys = [(query, k) for query in check_queries(queries, k)]
        found: dict[_Key, list[Hit]] = {}
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            own, others = self._sort_out(missing, found, threading.get_ident())
            if own:  # in a task of its own, so that others get their answer if this caller is cancelled
                task = asyncio.create_task(self._afly(own, k))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            flights = [asyncio.wrap_future(flight) for flight in (*own.values(), *others.values())]
            await asyncio.gather(*map(asyncio.shield, flights), return_exceptions=True)
            _collect({**own, **others}, found)
        return [list(found[key]) for key in keys]

    def describe(self) -> dict[str, Any]:
        """See `Retriever.describe`."""
        return self._inner.describe()

    def close(self) -> None:
        """See `Retriever.close`."""
        self._inner.close()

    def _sort_out(
        self, keys: Sequence[_Key], found: dict[_Key, list[Hit]], loop_thread: int | None
    ) -> tuple[dict[_Key, _Flight], dict[_Key, _Flight]]:
        """Take what is known; of the rest, what the caller has to ask now, and what others are asking."""
        own, others = dict[_Key, _Flight](), dict[_Key, _Flight]()
        with self._lock:
            for key in keys:
                if key in self._known:
                    self._known.move_to_end(key)
                    found[key] = self._known[key]
                elif key in self._flights:
                    others[key] = self._flights[key]
                else:
                    own[key] = self._flights[key] = _Flight()
                    own[key].loop_thread = loop_thread
        return own, others

    def _fly(self, own: dict[_Key, _Flight], k: int) -> None:
        try:
            self._land(own, self._inner.search([query for query, _ in own], k))
        except BaseException as error:
            self._crash(own, error)
            raise

    async def _afly(self, own: dict[_Key, _Flight], k: int) -> None:
        try:
            self._land(own, await self._inner.asearch([query for query, _ in own], k))
        except BaseException as error:
            self._crash(own, error)
            if not isinstance(error, Exception):
                raise

    def _land(self, own: dict[_Key, _Flight], results: Sequence[list[Hit]]) -> None:
        landed = list(zip(own.items(), results, strict=True))
        with self._lock:
            for (key, _), hits in landed:
                self._known[key] = hits
                del self._flights[key]
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        for (_, flight), hits in landed:
            flight.set_result(hits)

    def _crash(self, own: dict[_Key, _Flight], error: BaseException) -> None:
        with self._lock:
            for key in own:
                self._flights.pop(key, None)
        for flight in own.values():
            if not flight.done():
                flight.set_exception(error if isinstance(error, Exception) else _Abandoned())


def _collect(flights: dict[_Key, _Flight], found: dict[_Key, list[Hit]]) -> None:
    """Wait for flights and take what they bring, but for abandoned ones."""
    for key, flight in flights.items():
        if key not in found:
            try:
                found[key] = flight.result()
            except _Abandoned:
                continue


_all: WeakSet[CachedRetriever] = WeakSet()


def _after_fork() -> None:
    for retriever in list(_all):
        retriever._forget_flights()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
