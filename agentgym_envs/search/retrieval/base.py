"""The protocol of search engines: queries in, passages out, best first."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from agentgym_envs.errors import UsageError

MAX_TOP_K = 1_000
"""The most passages that a query can return."""
MAX_QUERY_CHARS = 4_096
"""Longer queries are truncated: no engine finds more with the rest, and some would take seconds."""

PAGE_HITS = 100
"""The hits for a title among which a page is collected. Our own server returns no more."""


class Passage(NamedTuple):
    """A passage in the format of Search-R1's corpora: the first line of `contents` is the title, often quoted.

    Source: https://github.com/PeterGriffinJin/Search-R1 (wiki-18.jsonl).
    """

    id: str
    contents: str

    @property
    def title(self) -> str:
        """The title without its quotes; "" if `contents` is a single line, which then is the text."""
        first, newline, _ = self.contents.partition("\n")
        if not newline:
            return ""
        return first[1:-1] if len(first) > 1 and first[0] == first[-1] == '"' else first

    @property
    def text(self) -> str:
        """The text after the title."""
        first, newline, rest = self.contents.partition("\n")
        return rest if newline else first


class Hit(NamedTuple):
    """A passage in a search result. Higher scores are better; scores of different engines are not comparable."""

    passage: Passage
    score: float


class Page(NamedTuple):
    """All passages of a document, in order. Passages with the same title are of one document.

    `complete` is false if parts of it may be missing.
    """

    title: str
    passages: tuple[Passage, ...]
    complete: bool


class Retriever(ABC):
    """A search engine. Many environments and threads of a process may use it at the same time.

    Results are ordered by score, and equal scores by position in the corpus, so the same corpus and query give the same
    result everywhere. A result holds at most `k` distinct passages, and may hold fewer. It is empty if no word of the
    query is in the corpus, or if `k <= 0`.
    """

    waits: ClassVar[bool] = False
    """True if a search waits for something outside this process and should not block an event loop."""

    @abstractmethod
    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the `k` best passages for each query.

        Raises:
            UsageError: `k` is larger than `MAX_TOP_K`, or a query is not a string.
            RetrieverError: the engine or its server failed.
        """

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search without blocking the event loop: a search that `waits` runs in a thread."""
        if self.waits:
            return await asyncio.to_thread(self.search, queries, k)
        return self.search(queries, k)

    def page(self, passage: Passage) -> Page:
        """Return the page that a passage is from.

        By default the passages with its title among the hits for the title, in the order of their ids: an engine that
        only answers queries knows no more. Raises RetrieverError.
        """
        return page_of_hits(passage, self.search([passage.title], PAGE_HITS)[0] if passage.title else ())

    async def apage(self, passage: Passage) -> Page:
        """Return the page that a passage is from, without blocking the event loop."""
        return page_of_hits(passage, (await self.asearch([passage.title], PAGE_HITS))[0] if passage.title else ())

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return a description (JSON): `engine`, and where known `corpus`, `passages` and `sha256`."""

    def close(self) -> None:  # noqa: B027 (most engines hold no resources)
        """Free resources. Closing twice is allowed."""


def check_queries(queries: Sequence[str], k: int) -> list[str]:
    """Return the queries, truncated to `MAX_QUERY_CHARS`. Raises UsageError for invalid queries or an invalid `k`."""
    if isinstance(queries, str) or not all(isinstance(query, str) for query in queries):
        raise UsageError(f"queries must be a list of strings, got {queries!r:.80}")
    if type(k) is not int or k > MAX_TOP_K:
        raise UsageError(f"k must be a whole number of at most {MAX_TOP_K}, got {k!r}")
    return [query[:MAX_QUERY_CHARS] for query in queries]


def page_of_hits(passage: Passage, hits: Iterable[Hit]) -> Page:
    """Collect the page of a passage from the hits for its title."""
    found = {hit.passage.id: hit.passage for hit in hits if hit.passage.title == passage.title}
    ordered = sorted((found | {passage.id: passage}).values(), key=lambda part: _natural_order(part.id))
    return Page(passage.title, tuple(ordered), complete=not passage.title)


def _natural_order(id: str) -> list[tuple[int, str]]:
    """A sort key in which "page#10" follows "page#9": digits are ordered by their number first."""
    parts = [part.lstrip("0") if index % 2 else part for index, part in enumerate(re.split(r"([0-9]+)", id))]
    return [(len(part) if index % 2 else 0, part) for index, part in enumerate(parts)]
