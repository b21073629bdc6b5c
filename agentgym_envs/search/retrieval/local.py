"""What engines over an index of this machine have in common: how they travel, and how ties are broken."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from agentgym_envs.search.retrieval.base import Hit, Retriever
from agentgym_envs.search.retrieval.passages import PassageStore

MORE = 8
"""How many hits are asked for beyond `k`, so that ties at the end of the list can be broken."""
Ranking = list[tuple[float, int]]
"""Hits as (0 - score, number of the passage), sorted: best first, and of equal scores the least number."""


class LocalRetriever(Retriever):
    """An engine over the passages of an index. A copy is itself; a pickle names the index, and loading opens it."""

    engine: ClassVar[str]

    def __init__(self, folder: str | os.PathLike[str], passages: PassageStore) -> None:
        """`folder` is that of the index, `passages` those that it is of."""
        self._folder, self._passages = Path(folder).resolve(), passages

    def describe(self) -> dict[str, Any]:
        """See `Retriever.describe`."""
        return {"engine": self.engine, "passages": len(self._passages)}

    def __reduce__(self) -> tuple[Any, ...]:
        from agentgym_envs.search.retrieval.index import open_index

        return open_index, (str(self._folder), self.engine)

    def __deepcopy__(self, memo: dict[int, Any]) -> LocalRetriever:
        return self

    def _hits(self, ranking: Ranking) -> list[Hit]:
        return [Hit(self._passages[number], -score) for score, number in ranking]


def rank(found: Callable[[int], Ranking], k: int, passages: int, first: Ranking | None = None) -> Ranking:
    """The `k` best of what `found(limit)` finds, which breaks ties within its limit only.

    So more are asked for until what ties with the last one is known whole. `first` is what it found of the first
    `k + MORE`, if that has been asked already.
    """
    limit = k + MORE
    ranking = sorted(found(limit) if first is None else first)
    while limit < passages and len(ranking) >= limit and ranking[k - 1][0] == ranking[-1][0]:
        limit *= 4
        ranking = sorted(found(limit))
    return ranking[:k]
