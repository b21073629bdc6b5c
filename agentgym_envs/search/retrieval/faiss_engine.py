"""Search-R1's dense retriever: a prebuilt faiss index (`e5_Flat.index`, `e5_HNSW64.index`) over wiki-18.

A folder holds the index and its corpus in Search-R1's layout; the number of a vector is the line of its passage. The
vectors are memory-mapped where faiss can, so that processes share them, and copied to the GPUs if there are any. The
corpus is read by byte offset (see `jsonl_store`).

Sources: https://github.com/PeterGriffinJin/Search-R1 (search_r1/search/index_builder.py, retrieval_server.py),
https://github.com/facebookresearch/faiss
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval.base import Hit, Retriever, check_queries
from agentgym_envs.search.retrieval.encoders import Encoder, load_encoder
from agentgym_envs.search.retrieval.jsonl_store import JsonlStore, decompressed
from agentgym_envs.search.retrieval.vector_search import VectorSearch, import_faiss

ENGINE = "faiss"
DEVICES = ("auto", "cpu", "cuda")


class IndexEncoder(NamedTuple):
    """The encoder of an index whose name begins with a known word, and the prompt of its queries."""

    encoder: str
    query_prompt: str


INDEX_ENCODERS = {"e5": IndexEncoder("intfloat/e5-base-v2", "query: ")}
"""Encoders by the first part of the index's name, which Search-R1's builder takes from its `--retrieval_method`."""


class FaissFiles(NamedTuple):
    """The files of a prebuilt index: its vectors and the corpus."""

    vectors: Path
    corpus: Path


class FaissRetriever(Retriever):
    """Searches a prebuilt index. Threads may share it; its pickle holds the arguments of `open_faiss`."""

    def __init__(
        self,
        files: FaissFiles,
        *,
        encoder: str | None = None,
        query_prompt: str | None = None,
        device: str = "auto",
    ) -> None:
        """Open the index, its corpus and the encoder.

        Args:
            files: the index and its corpus.
            encoder: the encoder of queries, as for `load_encoder`; by default that of the index's `IndexEncoder`.
            query_prompt: put before a query; by default that of this encoder.
            device: "cuda" for encoder and vectors on GPUs, "cpu", or "auto" for what is there.

        Raises:
            UsageError: the encoder is unknown or cannot be loaded, or `device` is not available.
            RetrieverError: the index is damaged, or does not belong to the corpus or the encoder.
            MissingExtra: a package is not installed.
        """
        if device not in DEVICES:
            raise UsageError(f"there is no device {device!r}; choose one of {', '.join(DEVICES)}")
        faiss, self._files = import_faiss(), files
        index = _read_index(faiss, files.vectors)
        packed = files.corpus.suffix == ".gz"
        self._passages = JsonlStore(decompressed(files.corpus) if packed else files.corpus, _cache())
        if index.ntotal != len(self._passages):
            counts = f"{index.ntotal:,} vectors, and {files.corpus.name} has {len(self._passages):,} passages"
            raise RetrieverError(f"{files.vectors.name} is not the index of this corpus: it has {counts}")
        model = _load_encoder(files.vectors, index.d, encoder, query_prompt, device)
        if model.dimensions != index.d:
            sizes = f"of {index.d} dimensions, and the encoder makes vectors of {model.dimensions}"
            raise RetrieverError(f"{files.vectors.name} was not made by this encoder: it has vectors {sizes}")
        self._about = model.describe()
        placed = index if device == "cpu" else _on_gpus(faiss, index, device)
        self._vectors = VectorSearch(placed, model, one_at_a_time=placed is not index)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the nearest passages for each query; nothing for a query without a letter or digit."""
        rankings = self._vectors.rankings(check_queries(queries, k), k)
        return [[Hit(self._passages[number], -score) for score, number in ranking] for ranking in rankings]

    def describe(self) -> dict[str, Any]:
        """Describe the index, its corpus and the encoder."""
        return {
            **self._about,
            "engine": ENGINE,
            "corpus": self._files.corpus.name.removesuffix(".gz").removesuffix(".jsonl"),
            "passages": len(self._passages),
            "index": self._files.vectors.name,
        }


class _SharedFaiss(FaissRetriever):
    """A retriever that `open_faiss` made, shared by all callers in a process, also after unpickling."""

    def __init__(self, place: str, options: Mapping[str, Any]) -> None:
        self._arguments = place, dict(options)
        rest = {name: value for name, value in options.items() if name != "corpus"}
        super().__init__(find_files(place, options.get("corpus")), **rest)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_faiss, self._arguments

    def __deepcopy__(self, memo: dict[int, Any]) -> FaissRetriever:
        return self


def open_faiss(place: str, options: Mapping[str, Any]) -> FaissRetriever:
    """Open a prebuilt index, once per process. `options` are `corpus` and those of `FaissRetriever`."""
    return _open(place, json.dumps(options, sort_keys=True))


@lru_cache(maxsize=4)
def _open(place: str, options: str) -> FaissRetriever:
    return _SharedFaiss(place, json.loads(options))


def find_files(place: str | Path, corpus: str | None = None) -> FaissFiles:
    """Find the index and its corpus.

    Args:
        place: the index file, or a folder with one.
        corpus: the corpus; by default the JSONL file (or .jsonl.gz) in the same folder.

    Raises:
        UsageError: there is none, or more than one to choose from; the message says what to pass.
    """
    path = Path(place).resolve()
    folder = path if path.is_dir() else path.parent
    index = _only(folder, "*.index", "the index file itself as `index`") if path.is_dir() else path
    if not index.is_file():
        raise UsageError(f"there is no index {index}")
    if corpus is not None:
        found = Path(corpus).resolve()
    else:
        plain = list(folder.glob("*.jsonl"))
        found = _only(folder, "*.jsonl" if plain else "*.jsonl.gz", "the file as `corpus`")
    if not found.is_file():
        raise UsageError(f"there is no corpus {found}")
    return FaissFiles(index, found)


def _only(folder: Path, pattern: str, otherwise: str) -> Path:
    found = sorted(folder.glob(pattern)) if folder.is_dir() else []
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{folder} holds {', '.join(path.name for path in found)}: pass {otherwise}")
    hint = ""
    if pattern == "*.index" and list(folder.glob("part_a*")):
        hint = f"; put the parts together: cat {folder}/part_* > {folder}/e5_Flat.index"
    raise UsageError(f"{folder} holds no {pattern}{hint}")


def _read_index(faiss: ModuleType, path: Path) -> Any:
    """Read an index; its vectors are memory-mapped if this version of faiss can."""
    flags = getattr(faiss, "IO_FLAG_MMAP_IFC", 0)
    try:
        index = faiss.read_index(str(path), flags)
    except RuntimeError as error:
        raise RetrieverError(f"the index {path.name} is damaged: {str(error).splitlines()[-1][:200]}") from None
    if index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise UsageError(f"{path.name} does not compare by inner products, as Search-R1's indexes do")
    return index


def _on_gpus(faiss: ModuleType, index: Any, device: str) -> Any:
    """Copy a flat index to all GPUs, in half precision and split among them, as Search-R1 does.

    A graph stays in memory, since faiss has no graph search on GPUs. Raises UsageError if "cuda" is not available.
    """
    if not isinstance(index, faiss.IndexFlat):
        return index
    if not hasattr(faiss, "GpuMultipleClonerOptions") or not faiss.get_num_gpus():
        if device == "cuda":
            raise UsageError('device="cuda" needs a GPU and a build of faiss for it (faiss-gpu); or use device="auto"')
        return index
    options = faiss.GpuMultipleClonerOptions()
    options.useFloat16 = options.shard = True
    return faiss.index_cpu_to_all_gpus(index, co=options)


def _load_encoder(index: Path, dimensions: int, encoder: str | None, query_prompt: str | None, device: str) -> Encoder:
    known = INDEX_ENCODERS.get(re.split(r"[^a-z0-9]", index.name.lower())[0])
    if encoder is None and known is None:
        raise UsageError(f"pass `encoder`: {index.name} does not say which one it was made with")
    if encoder == "hashing":
        return load_encoder(encoder, dimensions=dimensions)
    prompt = known.query_prompt if query_prompt is None and known else query_prompt
    name = encoder or (known.encoder if known else "")
    return load_encoder(name, query_prompt=prompt, device=None if device == "auto" else device)


def _cache() -> Path:
    from agentgym_envs.search.corpus.embedded import cache_folder

    return cache_folder()
