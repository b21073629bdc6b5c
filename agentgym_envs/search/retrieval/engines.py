"""The registry of search engines over an index of our own: one row each.

The index builder, the table of retrievers, the help of `agentgym search` and its completion all read `ENGINES`. To add
an engine, write a module with a `LocalRetriever` and a build function, and add a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval import bm25s_engine, dense_engine, ranking, tantivy_engine, vector_search
from agentgym_envs.search.retrieval.base import Passage, Retriever
from agentgym_envs.search.retrieval.passages import PassageStore

IndexPassages = Callable[[Iterable[Passage]], None]
"""Adds passages to the index of an engine that is being built."""


class SearchEngine(NamedTuple):
    """A search engine over an index.

    Attributes:
        help: a few words for the command line.
        retriever: opens the engine's part of an index, from the index folder and its passages.
        build: writes the engine's part into a folder, from the passages; keyword arguments are the engine's options.
        packages: functions that import what the engine needs, or raise MissingExtra.
        distribution: the installed package whose version the manifest records.
        options: the names of the build options that a retriever of the embedded corpus can be opened with.
        stream: starts a build before all passages are known, if the engine can; `build` then finds the work done.
        encodes: true if it encodes queries with a model, which takes an encoder to build and CPU time to search.
    """

    help: str
    retriever: Callable[[Path, PassageStore], Retriever]
    build: Callable[..., None]
    packages: tuple[Callable[[], object], ...]
    distribution: str
    options: tuple[str, ...] = ()
    stream: Callable[..., AbstractContextManager[IndexPassages]] | None = None
    encodes: bool = False


ENGINES: dict[str, SearchEngine] = {
    "tantivy": SearchEngine(
        help="",
        retriever=tantivy_engine.TantivyRetriever,
        build=tantivy_engine.build,
        packages=(tantivy_engine.import_tantivy,),
        distribution="tantivy",
        options=ranking.OPTIONS,
        stream=tantivy_engine.streaming_build,
    ),
    "bm25s": SearchEngine(
        help="fast",
        retriever=bm25s_engine.Bm25sRetriever,
        build=bm25s_engine.build,
        packages=(tantivy_engine.import_tantivy, bm25s_engine.import_bm25s),
        distribution="bm25s",
        options=ranking.OPTIONS,
    ),
    "dense": SearchEngine(
        help="by meaning",
        retriever=dense_engine.DenseRetriever,
        build=dense_engine.build,
        packages=(vector_search.import_faiss,),
        distribution="faiss-cpu",
        encodes=True,
    ),
}
"""Engines by name; the first one is the default."""


def find_engine(name: str) -> SearchEngine:
    """Return the engine of that name. Raises UsageError, which lists the names, if it does not exist."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}; choose one of {', '.join(ENGINES)}")
    return ENGINES[name]


def describe_helps(helps: Mapping[str, str]) -> str:
    """Return names with their help, for the command line: "tantivy, bm25s (fast), dense (by meaning)"."""
    return ", ".join(f"{name} ({words})" if words else name for name, words in helps.items())
