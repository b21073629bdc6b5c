"""The base of engines over an index on this machine: sharing, pickling and stable tie-breaking."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar

from agentgym_envs.search.retrieval.base import Hit, Page, Passage, Retriever
from agentgym_envs.search.retrieval.manifest import (
    MANIFEST,
    check_built_for,
    check_sizes,
    open_passages,
    read_manifest,
)
from agentgym_envs.search.retrieval.passages import PassageStore

MORE = 8
"""Hits requested beyond `k`, so that ties at the end of the list can be broken."""
MOST_TIES = 10_000
"""The most tied passages that are put in order; beyond this, the engine's own order decides (see `rank`)."""
MOST_NEIGHBOURS = 1_000
"""The most passages of a page before the one that is opened, and after it."""
Ranking = list[tuple[float, int]]
"""Hits as (negated score, passage number), sorted: best first, and equal scores by passage number."""


class LocalRetriever(Retriever):
    """An engine over the passages of an index.

    Copying returns the same object. A pickle holds the folder of the index, and unpickling opens it again.
    """

    engine: ClassVar[str]

    def __init__(self, folder: str | os.PathLike[str], passages: PassageStore) -> None:
        """Take the folder of an index and its passages."""
        self._folder, self._passages = Path(folder).resolve(), passages

    def describe(self) -> dict[str, Any]:
        """Return the engine's name and the number of passages."""
        return {"engine": self.engine, "passages": len(self._passages)}

    def page(self, passage: Passage) -> Page:
        """Return the passage with its neighbours in the corpus that have the same title.

        A dump stores the parts of a document one after the other.
        """
        number = self._passages.find(passage.id)
        if number is None or not passage.title:
            return Page(passage.title, (passage,), complete=True)
        last = min(number + MOST_NEIGHBOURS, len(self._passages) - 1)
        before = self._same_title(passage.title, range(number - 1, max(number - MOST_NEIGHBOURS, 0) - 1, -1))
        after = self._same_title(passage.title, range(number + 1, last + 1))
        complete = max(len(before), len(after)) < MOST_NEIGHBOURS
        return Page(passage.title, (*reversed(before), passage, *after), complete)

    async def apage(self, passage: Passage) -> Page:
        """Return the page as `page` does."""
        return self.page(passage)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_shared, (type(self), self.engine, str(self._folder))

    def __deepcopy__(self, memo: dict[int, Any]) -> LocalRetriever:
        return self

    def _same_title(self, title: str, numbers: Iterable[int]) -> list[Passage]:
        return list(takewhile(lambda part: part.title == title, map(self._passages.__getitem__, numbers)))

    def _hits(self, ranking: Ranking) -> list[Hit]:
        return [Hit(self._passages[number], -score) for score, number in ranking]


def open_shared(
    retriever: Callable[[Path, PassageStore], Retriever], engine: str, folder: str | os.PathLike[str]
) -> Retriever:
    """Open an index with a retriever class, once per process.

    Raises:
        UsageError: the folder is not an index of this format, or it was not built for `engine`.
        RetrieverError: the index is damaged.
    """
    path = Path(folder).resolve()
    read_manifest(path)
    return _open(retriever, engine, path, (path / MANIFEST).stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _open(retriever: Callable[[Path, PassageStore], Retriever], engine: str, folder: Path, changed: int) -> Retriever:
    manifest = check_built_for(folder, [engine])
    check_sizes(folder, manifest["engines"][engine]["files"])
    return retriever(folder, open_passages(folder, manifest))


def rank(
    find: Callable[[int], Ranking], k: int, passages: int, first: Ranking | None = None, *, more: int = MORE
) -> Ranking:
    """Return the `k` best hits of an engine that breaks ties only within the limit that it is given.

    The limit grows until all passages that tie with the last hit are known. It stops `MOST_TIES` beyond `k`: among
    more passages of one score, the lowest numbers of those that the engine finds first are chosen. The result is then
    still the same every time and in every process, but another index of the same corpus may choose other passages.

    Args:
        find: returns up to `limit` hits.
        k: the number of hits wanted.
        passages: the number of passages in the index.
        first: the result of `find(k + more)`, if already known.
        more: the hits beyond `k` that are requested at first.
    """
    limit, most = k + more, min(k + more + MOST_TIES, passages)
    ranking = sorted(find(limit) if first is None else first)
    while limit < most and len(ranking) >= limit and ranking[k - 1][0] == ranking[-1][0]:
        limit = min(4 * limit, most)
        ranking = sorted(find(limit))
    return ranking[:k]
