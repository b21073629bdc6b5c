"""Opening retrievers by name, and checking the name before an environment starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Retriever
from agentgym_envs.search.retrieval.batching import BatchingRetriever
from agentgym_envs.search.retrieval.cache import CachedRetriever
from agentgym_envs.search.retrieval.http_retriever import HttpRetriever
from agentgym_envs.search.retrieval.rerankers import check_reranker
from agentgym_envs.search.retrieval.reranking import DEPTH, check_depth, open_reranking
from agentgym_envs.search.retrieval.retrievers import RETRIEVERS, Index, RetrieverKind
from agentgym_envs.search.retrieval.wire import DIALECTS, Dialect

_URL = re.compile(rf"(?:({'|'.join(map(re.escape, DIALECTS))})\+)?(https?://.+)", re.DOTALL)
_ENGINE, _RERANKER, _DEPTH = "engine", "reranker", "rerank_depth"


Spec = str | Retriever | Mapping[str, Any]


def open_retriever(spec: Spec, index: Index = None, version: int | None = None) -> Retriever:
    """Open a retriever by name. All callers in a process share it.

    Args:
        spec: a name in `retrievers.RETRIEVERS`; the URL of a retrieval server, with an optional dialect as a prefix
            ("skyrl+http://127.0.0.1:8000/retrieve"); a mapping with one of these as `engine` and its options
            ({"engine": "faiss", "device": "cpu"}); or a retriever, which is returned. Every engine takes `reranker`
            (see `rerankers`) and `rerank_depth`. Results of a server are cached, and concurrent queries to it are sent
            as one request.
        index: the folder of the index, by default that of the embedded corpus; ignored for a server.
        version: the version of the embedded corpus; by default the newest.

    Raises:
        UsageError: there is no such retriever or no such index.
        RetrieverError: the index is damaged.
    """
    check_retriever(spec, index)
    if isinstance(spec, Retriever):
        return spec
    parsed = _parse(spec)
    if found := _URL.fullmatch(parsed.engine):
        retriever = _server(found[2], cast("Dialect", found[1] or DIALECTS[0]))
    else:
        kind = RETRIEVERS[parsed.engine]
        retriever = kind.open(index, {**parsed.options, "version": version} if kind.own_index else parsed.options)
    return retriever if parsed.reranker is None else open_reranking(retriever, parsed.reranker, parsed.depth)


def check_retriever(spec: Spec, index: Index = None) -> Spec:
    """Return `spec` if `open_retriever` is expected to open it. Does not open an index or connect to a server.

    Raises:
        UsageError: there is no such retriever, option or index.
        MissingExtra: a package that it needs is not installed.
    """
    if not isinstance(spec, Retriever):
        parsed = _parse(spec)
        kind = RETRIEVERS.get(parsed.engine)
        known = kind.options if kind else ()
        if unknown := [name for name in parsed.options if name not in known]:
            choices = ", ".join((*known, _RERANKER, _DEPTH))
            raise UsageError(f"the retriever {parsed.engine!r} has no option {unknown[0]!r}; it takes {choices}")
        if kind:
            kind.check(index, parsed.options)
    return spec


def is_url(spec: object) -> bool:
    """Return true if `spec` names a server, or an engine or a reranker behind one."""
    kind = _kind(spec)
    return bool(_URL.fullmatch(_engine_of(spec)) or (kind and kind.remote) or "://" in _reranker_of(spec))


def uses_encoder(spec: object) -> bool:
    """Return true if `spec` names an engine or a reranker that runs a model, which takes CPU time."""
    kind, reranker = _kind(spec), _reranker_of(spec)
    return bool((kind and kind.encodes) or (reranker and "://" not in reranker))


class _Parsed(NamedTuple):
    engine: str
    options: dict[str, Any]
    reranker: str | None
    depth: int


def _parse(spec: object) -> _Parsed:
    engine = _engine_of(spec)
    if engine not in RETRIEVERS and not _URL.fullmatch(engine):
        urls = ("http://HOST:PORT", *(f"{name}+http://..." for name in DIALECTS))
        choices = ", ".join(map(repr, (*RETRIEVERS, *urls)))
        shown = engine if isinstance(spec, Mapping) else spec
        raise UsageError(f"there is no retriever {shown!r}; choose one of {choices}, or pass a Retriever")
    options = {key: value for key, value in spec.items() if key != _ENGINE} if isinstance(spec, Mapping) else {}
    reranker, depth = options.pop(_RERANKER, None), options.pop(_DEPTH, DEPTH)
    return _Parsed(engine, options, None if reranker is None else check_reranker(reranker), check_depth(depth))


def _engine_of(spec: object) -> str:
    """The name or URL in a specification; "" if there is none."""
    engine = spec.get(_ENGINE) if isinstance(spec, Mapping) else spec
    return engine if isinstance(engine, str) else ""


def _reranker_of(spec: object) -> str:
    reranker = spec.get(_RERANKER) if isinstance(spec, Mapping) else None
    return reranker if isinstance(reranker, str) else ""


def _kind(spec: object) -> RetrieverKind | None:
    return RETRIEVERS.get(_engine_of(spec))


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
