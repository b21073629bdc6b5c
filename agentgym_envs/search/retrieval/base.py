"""What a search engine is: queries in, passages out, best first."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from agentgym_envs.errors import UsageError

MAX_TOP_K = 1_000
"""The most passages that one query can ask for."""
MAX_QUERY_CHARS = 4_096
"""A longer query is cut here: no engine finds more by reading on, and some would take seconds."""


class Passage(NamedTuple):
    """A passage as Search-R1's corpora hold it: the first line of `contents` is the title, often in double quotes.

    Source: https://github.com/PeterGriffinJin/Search-R1 (wiki-18.jsonl).
    """

    id: str
    contents: str

    @property
    def title(self) -> str:
        """The title without its quotes; "" if `contents` is a single line, which is text then."""
        first, newline, _ = self.contents.partition("\n")
        if not newline:
            return ""
        return first[1:-1] if len(first) > 1 and first[0] == first[-1] == '"' else first

    @property
    def text(self) -> str:
        """What follows the title."""
        first, newline, rest = self.contents.partition("\n")
        return rest if newline else first


class Hit(NamedTuple):
    """A passage that was found. Scores of different engines have nothing to do with each other; higher is better."""

    passage: Passage
    score: float


class Retriever(ABC):
    """A search engine. It may be used by many environments and threads of a process at a time.

    Results are best first, and of equal scores the passage that stands first in the corpus comes first, so that the
    same corpus and query give the same result everywhere. There may be fewer than `k` hits, never more, and never one
    twice; a query without a word that the corpus knows finds nothing, as does `k <= 0`.
    """

    waits: ClassVar[bool] = False
    """Whether a search waits for something outside this process, so that it should not hold an event loop up."""

    @abstractmethod
    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The `k` best passages for each query.

        Raises:
            UsageError: `k` is larger than `MAX_TOP_K`, or a query is no text.
            RetrieverError: the engine or its server failed.
        """

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """`search` that lets the event loop go on meanwhile, if it waits."""
        if self.waits:
            return await asyncio.to_thread(self.search, queries, k)
        return self.search(queries, k)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What it is (JSON): `engine`, and as far as it knows `corpus`, `passages` and `sha256`."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Free what it holds; closing twice is fine."""


def check_queries(queries: Sequence[str], k: int) -> list[str]:
    """The queries, none longer than `MAX_QUERY_CHARS`. Raises UsageError if they or `k` cannot be."""
    if isinstance(queries, str) or not all(isinstance(query, str) for query in queries):
        raise UsageError(f"queries are a list of texts, got {queries!r:.80}")
    if type(k) is not int or k > MAX_TOP_K:
        raise UsageError(f"k is a whole number of at most {MAX_TOP_K}, got {k!r}")
    return [query[:MAX_QUERY_CHARS] for query in queries]
