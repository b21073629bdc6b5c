"""The dense engine: passages and queries as vectors of an encoder, the nearest found by faiss.

Vectors are kept whole in memory and in the file, 4 bytes a dimension. Source: https://github.com/facebookresearch/faiss
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from agentgym_envs.errors import RetrieverError, UsageError, missing_extra
from agentgym_envs.search.retrieval.base import Hit, check_queries
from agentgym_envs.search.retrieval.encoders import Encoder, Vectors, load_encoder, reload_encoder
from agentgym_envs.search.retrieval.local_base import MORE, LocalRetriever, Ranking, damaged, rank
from agentgym_envs.search.retrieval.passages import PassageStore

FOLDER = "dense"
_VECTORS, _ENCODER, _RAW = "vectors.faiss", "encoder.json", "vectors.raw"
_AT_ONCE = 256
_NEIGHBOURS, _BUILD_EFFORT, _SEARCH_EFFORT = 32, 100, 64
_DECIMALS = 5
"""Of a score: what lies below differs with the size of the batch, and must not decide on the order of equals."""


def import_faiss() -> ModuleType:
    """The package. Raises MissingExtra."""
    try:
        import faiss
    except ModuleNotFoundError:
        raise missing_extra("this search engine", "faiss-cpu", "search-dense") from None
    module: ModuleType = faiss
    return module


class DenseRetriever(LocalRetriever):
    """Searches an index that `build` made, with the encoder that made it. Threads may share it."""

    engine = "dense"

    def __init__(self, folder: Path, passages: PassageStore) -> None:
        """Loads the vectors and the encoder. Raises MissingExtra, RetrieverError, and UsageError for the encoder."""
        super().__init__(folder, passages)
        self._faiss = import_faiss()
        try:
            self._index = self._faiss.read_index(str(folder / FOLDER / _VECTORS))
            self._about = json.loads((folder / FOLDER / _ENCODER).read_text(encoding="utf-8"))
            self._encoder = reload_encoder(self._about)
        except (OSError, RuntimeError, KeyError, json.JSONDecodeError) as error:
            raise damaged("the dense index", folder, error) from None
        if self._index.d != self._encoder.dimensions or self._index.ntotal != len(passages):
            raise RetrieverError(f"the dense index in {folder} does not fit its passages or its encoder")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        asked = check_queries(queries, k)
        results: list[list[Hit]] = [[] for _ in asked]
        places = [place for place, query in enumerate(asked) if k > 0 and any(map(str.isalnum, query))]
        if places:
            vectors = self._encoder.encode([asked[place] for place in places], "query")
            for place, vector, first in zip(places, vectors, self._nearest(vectors, k + MORE), strict=True):
                results[place] = self._hits(self._best(vector[np.newaxis], k, first))
        return results

    def describe(self) -> dict[str, Any]:
        """See `Retriever.describe`."""
        return {**super().describe(), **self._about}

    def _best(self, vector: Vectors, k: int, first: Ranking) -> Ranking:
        if not vector.any():
            return []
        return rank(lambda limit: self._nearest(vector, limit)[0], k, len(self._passages), first)

    def _nearest(self, vectors: Vectors, limit: int) -> list[Ranking]:
        limit = min(limit, len(self._passages))
        effort = None
        if isinstance(self._index, self._faiss.IndexHNSW):
            effort = self._faiss.SearchParametersHNSW(efSearch=max(_SEARCH_EFFORT, 2 * limit))
        scores, numbers = self._index.search(vectors, limit, params=effort)
        rows = zip((-scores).round(_DECIMALS).tolist(), numbers.tolist(), strict=True)
        # faiss fills up with the number -1 where it found too few
        return [[(score, number) for score, number in zip(*row, strict=True) if number >= 0] for row in rows]


def build(
    folder: Path,
    passages: PassageStore,
    *,
    encoder: str = "hashing",
    kind: Literal["flat", "hnsw"] = "flat",
    **options: Any,
) -> None:
    """Make the engine's part of an index from its passages, going on after those that are encoded already.

    `encoder` and `options` are those of `load_encoder`. "flat" compares a query with every passage; "hnsw" with a few
    hundred of a graph and misses some, for corpora of more than some 100,000 passages. Raises UsageError and
    MissingExtra.
    """
    faiss = import_faiss()
    model = load_encoder(encoder, **options)
    index = _empty(faiss, kind, model.dimensions)
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    raw = folder / FOLDER / _RAW
    _encode(model, passages, raw, folder / FOLDER / _ENCODER)
    vectors = np.memmap(raw, np.float32, mode="r").reshape(len(passages), model.dimensions)
    for begin in range(0, len(passages), _AT_ONCE):
        index.add(np.asarray(vectors[begin : begin + _AT_ONCE]))
    faiss.write_index(index, str(folder / FOLDER / _VECTORS))
    raw.unlink()


def _encode(model: Encoder, passages: PassageStore, raw: Path, about: Path) -> None:
    """Write the vectors of all passages to a file, keeping those that the same encoder wrote before."""
    description = json.dumps(model.describe())
    if not about.is_file() or about.read_text(encoding="utf-8") != description:
        raw.unlink(missing_ok=True)
        about.write_text(description, encoding="utf-8")
    with open(raw, "ab") as file:
        done = file.tell() // (4 * model.dimensions)
        file.truncate(done * 4 * model.dimensions)
        rest = passages.after(done)
        while some := list(islice(rest, _AT_ONCE)):
            texts = [f"{passage.title}\n{passage.text}".strip() for passage in some]
            file.write(model.encode(texts, "passage").tobytes())
            file.flush()


def _empty(faiss: ModuleType, kind: str, dimensions: int) -> Any:
    if kind == "flat":
        return faiss.IndexFlatIP(dimensions)
    if kind != "hnsw":
        raise UsageError(f'the kind of a dense index is "flat" or "hnsw", not {kind!r}')
    index = faiss.IndexHNSWFlat(dimensions, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _BUILD_EFFORT
    return index
