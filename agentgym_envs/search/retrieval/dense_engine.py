"""The dense engine: nearest-neighbour search by faiss over vectors of an encoder.

Vectors are stored uncompressed in memory and in the file, at 4 bytes a dimension.
Source: https://github.com/facebookresearch/faiss
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval.base import Hit, check_queries
from agentgym_envs.search.retrieval.encoders import Encoder, load_encoder, reload_encoder
from agentgym_envs.search.retrieval.local_base import LocalRetriever
from agentgym_envs.search.retrieval.manifest import damaged
from agentgym_envs.search.retrieval.passages import PassageStore
from agentgym_envs.search.retrieval.vector_search import VectorSearch, import_faiss

FOLDER = "dense"
_VECTORS, _ENCODER, _RAW = "vectors.faiss", "encoder.json", "vectors.raw"
_BATCH = 256
_NEIGHBOURS, _BUILD_EFFORT = 32, 100


class DenseRetriever(LocalRetriever):
    """Searches an index that `build` wrote, with the encoder that it was built with. Threads may share it."""

    engine = "dense"

    def __init__(self, folder: Path, passages: PassageStore) -> None:
        """Load the vectors and the encoder.

        Raises MissingExtra, RetrieverError for a damaged index, and UsageError if the encoder cannot be loaded.
        """
        super().__init__(folder, passages)
        faiss = import_faiss()
        try:
            index = faiss.read_index(str(folder / FOLDER / _VECTORS))
            self._about = json.loads((folder / FOLDER / _ENCODER).read_text(encoding="utf-8"))
            encoder = reload_encoder(self._about)
        except (OSError, RuntimeError, KeyError, json.JSONDecodeError) as error:
            raise damaged("the dense index", folder, error) from None
        if index.d != encoder.dimensions or index.ntotal != len(passages):
            raise RetrieverError(f"the dense index in {folder} does not fit its passages or its encoder")
        self._vectors = VectorSearch(index, encoder)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the nearest passages for each query; nothing for a query without a letter or digit."""
        return [self._hits(ranking) for ranking in self._vectors.rankings(check_queries(queries, k), k)]

    def describe(self) -> dict[str, Any]:
        """Describe the engine and its encoder."""
        return {**super().describe(), **self._about}


def build(
    folder: Path,
    passages: PassageStore,
    *,
    encoder: str = "hashing",
    kind: Literal["flat", "hnsw"] = "flat",
    **options: Any,
) -> None:
    """Build the engine's part of an index from its passages. Resumes after passages that are already encoded.

    Args:
        folder: where the part is written.
        passages: the passages of the index.
        encoder: the name for `load_encoder`.
        kind: "flat" compares a query with every passage. "hnsw" compares it with a few hundred passages of a graph and
            misses some; use it for corpora of more than about 100,000 passages.
        options: further arguments of `load_encoder`.

    Raises:
        UsageError: the encoder or the kind does not exist.
        MissingExtra: a package is not installed.
    """
    faiss = import_faiss()
    model = load_encoder(encoder, **options)
    index = _empty_index(faiss, kind, model.dimensions)
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    raw = folder / FOLDER / _RAW
    _encode(model, passages, raw, folder / FOLDER / _ENCODER)
    vectors = np.memmap(raw, np.float32, mode="r").reshape(len(passages), model.dimensions)
    for begin in range(0, len(passages), _BATCH):
        index.add(np.asarray(vectors[begin : begin + _BATCH]))
    faiss.write_index(index, str(folder / FOLDER / _VECTORS))
    raw.unlink()


def _encode(model: Encoder, passages: PassageStore, raw: Path, about: Path) -> None:
    """Write the vectors of all passages to a file, and keep those that the same encoder has already written."""
    description = json.dumps(model.describe())
    if not about.is_file() or about.read_text(encoding="utf-8") != description:
        raw.unlink(missing_ok=True)
        about.write_text(description, encoding="utf-8")
    with open(raw, "ab") as file:
        done = file.tell() // (4 * model.dimensions)
        file.truncate(done * 4 * model.dimensions)
        rest = passages.after(done)
        while batch := list(islice(rest, _BATCH)):
            texts = [f"{passage.title}\n{passage.text}".strip() for passage in batch]
            file.write(model.encode(texts, "passage").tobytes())
            file.flush()


def _empty_index(faiss: ModuleType, kind: str, dimensions: int) -> Any:
    if kind == "flat":
        return faiss.IndexFlatIP(dimensions)
    if kind != "hnsw":
        raise UsageError(f'the kind of a dense index must be "flat" or "hnsw", not {kind!r}')
    index = faiss.IndexHNSWFlat(dimensions, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _BUILD_EFFORT
    return index
