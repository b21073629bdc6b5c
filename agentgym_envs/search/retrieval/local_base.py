"""What engines over an index of this machine have in common: how they travel, and how ties are broken."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from agentgym_envs.errors import RetrieverError
from agentgym_envs.search.retrieval.base import Hit, Retriever
from agentgym_envs.search.retrieval.passages import PassageStore

MORE = 8
"""How many hits are asked for beyond `k`, so that ties at the end of the list can be broken."""
MOST_TIES = 10_000
"""Among more passages of one score than this, the engine's own order decides (see `rank`)."""
Ranking = list[tuple[float, int]]
"""Hits as (0 - score, number of the passage), sorted: best first, and of equal scores the least number."""
_log = logging.getLogger(__name__)


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


def damaged(what: str, folder: Path, why: object) -> RetrieverError:
    """The error for an index, or an engine's part of it (`what`), that cannot be read.

    It may reach the clients of a server, so it names the folder without those above it; the log has the whole path.
    """
    _log.info("%s in %s: %s", what, folder, why)
    return RetrieverError(f"{what} {folder.name} is damaged: {str(why).replace(str(folder), folder.name)}")


def rank(found: Callable[[int], Ranking], k: int, passages: int, first: Ranking | None = None) -> Ranking:
    """The `k` best of what `found(limit)` finds, which breaks ties within its limit only.

    So more are asked for until what ties with the last one is known whole. `first` is what it found of the first
    `k + MORE`, if that has been asked already.

    That ends at `MOST_TIES` beyond `k`: of more passages with one score, the least numbers are chosen among those that
    the engine finds first. An index then still gives the same answer every time and in every process, but another index
    of the same corpus may choose others of them.
    """
    limit, most = k + MORE, min(k + MORE + MOST_TIES, passages)
    ranking = sorted(found(limit) if first is None else first)
    while limit < most and len(ranking) >= limit and ranking[k - 1][0] == ranking[-1][0]:
        limit = min(4 * limit, most)
        ranking = sorted(found(limit))
    return ranking[:k]
