"""Retrievers by name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Retriever
from agentgym_envs.search.retrieval.batching import BatchingRetriever
from agentgym_envs.search.retrieval.bm25s_engine import import_bm25s
from agentgym_envs.search.retrieval.cache import CachedRetriever
from agentgym_envs.search.retrieval.dense_engine import import_faiss
from agentgym_envs.search.retrieval.http_retriever import HttpRetriever
from agentgym_envs.search.retrieval.hybrid import HybridRetriever
from agentgym_envs.search.retrieval.index import ENGINES, check_engines, open_index, read_manifest
from agentgym_envs.search.retrieval.tantivy_engine import import_tantivy
from agentgym_envs.search.retrieval.wire import DIALECTS, Dialect

HYBRID = "hybrid"
_NEEDS: dict[str, tuple[Callable[[], object], ...]] = {
    "tantivy": (import_tantivy,),
    "bm25s": (import_tantivy, import_bm25s),
    "dense": (import_faiss,),
    HYBRID: (import_tantivy, import_faiss),
}
"""What finds out whether the packages of an engine are there."""
_URL = re.compile(rf"(?:({'|'.join(map(re.escape, DIALECTS))})\+)?(https?://.+)", re.DOTALL)


Spec = str | Retriever
Index = str | os.PathLike[str] | None


def open_retriever(spec: Spec, index: Index = None) -> Retriever:
    """A retriever by name; all of a process share one.

    Args:
        spec: an engine ("tantivy", "bm25s", "dense"); "hybrid", the dense one and one of the others together; the URL
            of a retrieval server, perhaps with the dialect that it speaks before it
            ("skyrl+http://127.0.0.1:8000/retrieve"), whose answers are remembered, and which gets what is asked
            at a time as one request; or a retriever, which is returned.
        index: the folder of the index, by default the embedded corpus's; it does not matter for a server.

    Raises:
        UsageError: there is no such retriever, or no such index.
        RetrieverError: the index is damaged.
    """
    check_retriever(spec, index)
    if isinstance(spec, Retriever):
        return spec
    if found := _URL.fullmatch(spec):
        return _server(found[2], cast("Dialect", found[1] or DIALECTS[0]))
    if spec == HYBRID:
        return _hybrid(_open_local(_words_of(index), index), _open_local("dense", index))
    return _open_local(spec, index)


def check_retriever(spec: Spec, index: Index = None) -> Spec:
    """The same `spec`, if `open_retriever` can open it, as far as that can be known before.

    Raises:
        UsageError: there is no such retriever or no such index.
        MissingExtra: a package that it needs is not installed.
    """
    if isinstance(spec, Retriever) or is_url(spec):
        return spec
    if not isinstance(spec, str) or spec not in (*ENGINES, HYBRID):
        urls = ("http://HOST:PORT", *(f"{name}+http://..." for name in DIALECTS))
        choices = ", ".join(map(repr, (*ENGINES, HYBRID, *urls)))
        raise UsageError(f"there is no retriever {spec!r}; choose one of {choices}, or pass a Retriever")
    for need in _NEEDS[spec]:
        need()
    if index is not None:
        check_engines(Path(index), (_words_of(index), "dense") if spec == HYBRID else (spec,))
    return spec


def is_url(spec: object) -> bool:
    """Whether it names a retrieval server."""
    return isinstance(spec, str) and _URL.fullmatch(spec) is not None


def _open_local(engine: str, index: Index) -> Retriever:
    if index is None:
        from agentgym_envs.search.corpus.embedded import embedded_index

        index = embedded_index(engine)
    return open_index(index, engine)


def _words_of(index: Index) -> str:
    """The engine that stands for words in a hybrid: the fast one if the index was made for it."""
    made = [] if index is None else read_manifest(Path(index))["engines"]
    return "bm25s" if "bm25s" in made else "tantivy"


@lru_cache(maxsize=16)
def _hybrid(*retrievers: Retriever) -> Retriever:
    return HybridRetriever(retrievers)


@lru_cache(maxsize=16)
def _server(url: str, dialect: Dialect) -> Retriever:
    return _Server(url, dialect)


class _Server(CachedRetriever):
    """A server's retriever that is shared, wherever it is loaded from a pickle too."""

    def __init__(self, url: str, dialect: Dialect) -> None:
        super().__init__(BatchingRetriever(HttpRetriever(url, dialect)))
        self._opened = url, dialect

    def __reduce__(self) -> tuple[Any, ...]:
        return _server, self._opened
