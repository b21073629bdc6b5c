"""The registry of everything that `retriever=` may name, besides the URLs of servers: one row each.

The factory, the help of `agentgym search` and its completion read `RETRIEVERS`. An engine over an index of our own is a
row of `engines.ENGINES`, a web search engine one of `web.vendors.WEB_ENGINES`; both appear here by themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval import faiss_engine
from agentgym_envs.search.retrieval.base import Retriever
from agentgym_envs.search.retrieval.engines import ENGINES
from agentgym_envs.search.retrieval.hybrid import HybridRetriever
from agentgym_envs.search.retrieval.index import open_index
from agentgym_envs.search.retrieval.manifest import check_built_for, read_manifest
from agentgym_envs.search.retrieval.ranking import read_ranking
from agentgym_envs.search.retrieval.vector_search import import_faiss
from agentgym_envs.search.web.vendors import WEB_ENGINES
from agentgym_envs.search.web.web_retriever import OPTIONS, check_web, open_web

Index = str | os.PathLike[str] | None
Options = Mapping[str, Any]


class RetrieverKind(NamedTuple):
    """A search engine that is chosen by name.

    Attributes:
        help: a few words for the command line.
        open: opens it over an index (None: the embedded corpus), with options; equal arguments give the same object.
        check: raises UsageError or MissingExtra if `open` would fail for a reason that is known before opening.
        options: the names of its options.
        encodes: true if it runs a model in this process, which takes CPU time.
        remote: true if it waits for a server.
        own_index: true if it searches an index of `agentgym search index`, by default the embedded corpus. `open` then
            also gets the option "version", that of the embedded corpus (None: the newest).
    """

    help: str
    open: Callable[[Index, Options], Retriever]
    check: Callable[[Index, Options], object]
    options: tuple[str, ...] = ()
    encodes: bool = False
    remote: bool = False
    own_index: bool = False


def _over_index(engine: str) -> RetrieverKind:
    """The kind of an engine over an index of our own."""
    return RetrieverKind(
        help=ENGINES[engine].help,
        open=lambda index, options: _open_local(engine, index, options),
        check=lambda index, options: _check_local([engine], index, options),
        options=ENGINES[engine].options,
        encodes=ENGINES[engine].encodes,
        own_index=True,
    )


def _open_local(engine: str, index: Index, options: Options) -> Retriever:
    if index is None:
        from agentgym_envs.search.corpus.embedded import NEWEST, embedded_index

        version, built_with = options.get("version"), {key: options[key] for key in options if key != "version"}
        index = embedded_index(engine, NEWEST if version is None else version, built_with)
    return open_index(index, engine)


def _check_local(engines: list[str], index: Index, options: Options | None = None) -> None:
    for engine in engines:
        for import_package in ENGINES[engine].packages:
            import_package()
    if options:
        read_ranking(options)
    if index is None:
        return
    built = check_built_for(Path(index), engines)["engines"]
    if options and (found := built[engines[0]]["options"]) != options:
        raise UsageError(
            f"{engines[0]} in {index} was built with {found}, not with {dict(options)}: the ranking is chosen when an "
            f"index is built; `agentgym search index {index} --engine {engines[0]} -o KEY=VALUE --overwrite` changes it"
        )


def _hybrid_engines(index: Index) -> list[str]:
    """Engines that a hybrid combines. The lexical one is the fast one if the index was built for it."""
    built = [] if index is None else read_manifest(Path(index))["engines"]
    return ["bm25s" if "bm25s" in built else "tantivy", "dense"]


def _open_hybrid(index: Index, options: Options) -> Retriever:
    return _hybrid(*(_open_local(engine, index, options) for engine in _hybrid_engines(index)))


@lru_cache(maxsize=16)
def _hybrid(*retrievers: Retriever) -> Retriever:
    return HybridRetriever(retrievers)


def _find_faiss(index: Index, options: Options) -> faiss_engine.FaissFiles:
    import_faiss()
    if index is None:
        raise UsageError(
            'the retriever "faiss" needs `index`: the folder with the index and its corpus, such as e5_Flat.index and '
            "wiki-18.jsonl"
        )
    return faiss_engine.find_files(os.fspath(index), options.get("corpus"))


def _of_the_web(name: str) -> RetrieverKind:
    """The kind of a web search engine."""
    return RetrieverKind(
        help=WEB_ENGINES[name].help,
        open=lambda index, options: open_web(name, options),
        check=lambda index, options: check_web(name, options),
        options=OPTIONS,
        remote=True,
    )


RETRIEVERS: dict[str, RetrieverKind] = {
    **{name: _over_index(name) for name in ENGINES},
    "hybrid": RetrieverKind(
        help="words and meaning",
        open=_open_hybrid,
        check=lambda index, options: _check_local(_hybrid_engines(index), index),
        encodes=True,
        own_index=True,
    ),
    "faiss": RetrieverKind(
        help="Search-R1's prebuilt index",
        open=lambda index, options: faiss_engine.open_faiss(str(_find_faiss(index, options).vectors), options),
        check=_find_faiss,
        options=("corpus", "encoder", "query_prompt", "device"),
        encodes=True,
    ),
    **{name: _of_the_web(name) for name in WEB_ENGINES},
}
"""Kinds of retrievers by name; the first one is the default."""
