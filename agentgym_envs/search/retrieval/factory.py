"""Opening retrievers by name, and checking the name before an environment starts."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Retriever
from agentgym_envs.search.retrieval.batching import BatchingRetriever
from agentgym_envs.search.retrieval.cache import CachedRetriever
from agentgym_envs.search.retrieval.engines import ENGINES, HYBRID, RETRIEVERS
from agentgym_envs.search.retrieval.http_retriever import HttpRetriever
from agentgym_envs.search.retrieval.hybrid import HybridRetriever
from agentgym_envs.search.retrieval.index import open_index
from agentgym_envs.search.retrieval.manifest import check_built_for, read_manifest
from agentgym_envs.search.retrieval.wire import DIALECTS, Dialect

_URL = re.compile(rf"(?:({'|'.join(map(re.escape, DIALECTS))})\+)?(https?://.+)", re.DOTALL)


Spec = str | Retriever
Index = str | os.PathLike[str] | None


def open_retriever(spec: Spec, index: Index = None, version: int | None = None) -> Retriever:
    """Open a retriever by name. All callers in a process share it.

    Args:
        spec: the name of an engine in `engines.ENGINES`; "hybrid", which combines the dense engine and a lexical one;
            the URL of a retrieval server, with an optional dialect as a prefix
            ("skyrl+http://127.0.0.1:8000/retrieve"); or a retriever, which is returned. Results of a server are cached,
            and concurrent queries to it are sent as one request.
        index: the folder of the index, by default that of the embedded corpus; ignored for a server.
        version: the version of the embedded corpus; by default the newest.

    Raises:
        UsageError: there is no such retriever or no such index.
        RetrieverError: the index is damaged.
    """
    check_retriever(spec, index)
    if isinstance(spec, Retriever):
        return spec
    if found := _URL.fullmatch(spec):
        return _server(found[2], cast("Dialect", found[1] or DIALECTS[0]))
    if spec == HYBRID:
        return _hybrid(*(_open_local(engine, index, version) for engine in _hybrid_engines(index)))
    return _open_local(spec, index, version)


def check_retriever(spec: Spec, index: Index = None) -> Spec:
    """Return `spec` if `open_retriever` is expected to open it. Does not open an index or connect to a server.

    Raises:
        UsageError: there is no such retriever or no such index.
        MissingExtra: a package that it needs is not installed.
    """
    if isinstance(spec, Retriever) or is_url(spec):
        return spec
    if not isinstance(spec, str) or spec not in RETRIEVERS:
        urls = ("http://HOST:PORT", *(f"{name}+http://..." for name in DIALECTS))
        choices = ", ".join(map(repr, (*RETRIEVERS, *urls)))
        raise UsageError(f"there is no retriever {spec!r}; choose one of {choices}, or pass a Retriever")
    engines = _hybrid_engines(index) if spec == HYBRID else (spec,)
    for engine in engines:
        for import_package in ENGINES[engine].packages:
            import_package()
    if index is not None:
        check_built_for(Path(index), engines)
    return spec


def is_url(spec: object) -> bool:
    """Return true if `spec` is the URL of a retrieval server."""
    return isinstance(spec, str) and _URL.fullmatch(spec) is not None


def uses_encoder(spec: object) -> bool:
    """Return true if `spec` names an engine that encodes queries with a model, which takes CPU time."""
    return spec == HYBRID or (isinstance(spec, str) and spec in ENGINES and ENGINES[spec].encodes)


def _open_local(engine: str, index: Index, version: int | None) -> Retriever:
    if index is None:
        from agentgym_envs.search.corpus.embedded import embedded_index

        index = embedded_index(engine) if version is None else embedded_index(engine, version)
    return open_index(index, engine)


def _hybrid_engines(index: Index) -> tuple[str, str]:
    """Engines that a hybrid combines. The lexical one is the fast one if the index was built for it."""
    built = [] if index is None else read_manifest(Path(index))["engines"]
    return "bm25s" if "bm25s" in built else "tantivy", "dense"


@lru_cache(maxsize=16)
def _hybrid(*retrievers: Retriever) -> Retriever:
    return HybridRetriever(retrievers)


@lru_cache(maxsize=16)
def _server(url: str, dialect: Dialect) -> Retriever:
    return _Server(url, dialect)


class _Server(CachedRetriever):
    """The retriever of a server, shared by all callers in a process, also after unpickling."""

    def __init__(self, url: str, dialect: Dialect) -> None:
        super().__init__(BatchingRetriever(HttpRetriever(url, dialect)))
        self._arguments = url, dialect

    def __reduce__(self) -> tuple[Any, ...]:
        return _server, self._arguments
