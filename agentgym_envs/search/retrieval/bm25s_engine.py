"""The fast engine: BM25 by bm25s, over the title and the text of a passage.

It ranks like the default engine: the same tokens, and the same fields, each with its own weight and statistics. But
bm25s computes all scores when it builds the index, and the scores of the fields are added there. A search then only
sums a few columns of a sparse matrix, in a loop compiled by numba. The loop of bm25s itself takes seconds to compile in
every process and breaks ties at random. This one is compiled once, and is faster because it does less.
Building takes about 100 bytes of memory for each distinct word of each passage.
Source: https://github.com/xhluca/bm25s
"""

from __future__ import annotations

import json
import logging
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from agentgym_envs.errors import missing_extra
from agentgym_envs.search.retrieval.base import Hit, check_queries
from agentgym_envs.search.retrieval.local_base import LocalRetriever, Ranking
from agentgym_envs.search.retrieval.manifest import damaged, options_of
from agentgym_envs.search.retrieval.passages import PassageStore
from agentgym_envs.search.retrieval.ranking import RankingOptions, rarest, read_ranking
from agentgym_envs.search.retrieval.tantivy_engine import analyzer, import_tantivy, inverse_frequency, query_words

FOLDER = "bm25s"
_COUNTS = "counts.json"
_IN_TITLE = "title:"
"""Marks columns of titles, if those compare only some letters of a word."""
K1, B = 1.2, 0.75
"""The BM25 constants of Tantivy."""
_log = logging.getLogger(__name__)


def import_bm25s() -> ModuleType:
    """Import bm25s, and check that numba is installed. Raises MissingExtra."""
    try:
        import bm25s
        import numba  # noqa: F401
    except ModuleNotFoundError as error:
        raise missing_extra("this search engine", error.name or "bm25s", "search-fast") from None
    module: ModuleType = bm25s
    return module


class Bm25sRetriever(LocalRetriever):
    """Searches an index that `build` wrote. Threads may share it; it releases the GIL while it searches."""

    engine = "bm25s"

    def __init__(self, folder: Path, passages: PassageStore) -> None:
        """Open the index, and compile the search if no process has done so before, which takes some seconds.

        Raises MissingExtra and RetrieverError.
        """
        super().__init__(folder, passages)
        bm25s = import_bm25s()
        self._analyzer = analyzer(import_tantivy())
        try:
            model = bm25s.BM25.load(str(folder / FOLDER), mmap=True)
            # plain arrays, which numba accepts faster than memmaps; unsigned indices are faster too
            indptr, numbers, scores = (np.asarray(model.scores[name]) for name in ("indptr", "indices", "data"))
            self._columns = indptr, numbers.view(np.uint32), scores
            if model.scores["num_docs"] != len(passages):
                raise ValueError("it was built from other passages")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise damaged("the bm25s index", folder, error) from None
        self._vocabulary: dict[str, int] = model.vocab_dict
        self._ranking = read_ranking(options_of(folder, self.engine))
        self._counts = _read_counts(folder) if self._ranking.presence else {}
        self._search, self._local = _compiled(), threading.local()
        began = time.perf_counter()
        self._best([[]], 1)
        _log.info("the bm25s search was compiled or loaded in %.1f s", time.perf_counter() - began)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the best passages for each query."""
        words = [self._words(query) for query in check_queries(queries, k)]
        return [self._hits(ranking) for ranking in self._best(words, min(k, len(self._passages)))]

    def _words(self, query: str) -> list[int]:
        """Columns of the words of a query."""
        known, ranking = self._vocabulary, self._ranking
        words: Sequence[str] = query_words(self._analyzer, query, ranking)
        if ranking.presence:
            words = rarest(words, [self._counts.get(word, 0) for word in words], len(self._passages))
        columns = [known[word] for word in words if word in known]
        if ranking.title_letters:  # titles have columns of their own
            columns += [known[title] for word in ranking.of_title(words) if (title := _IN_TITLE + word) in known]
        return columns

    def _best(self, queries: list[list[int]], k: int) -> list[Ranking]:
        if k <= 0:
            return [[] for _ in queries]
        ends = np.cumsum([0, *map(len, queries)])
        words = np.fromiter(chain.from_iterable(queries), np.int64, int(ends[-1]))
        if not hasattr(self._local, "sums"):
            self._local.sums = np.zeros(len(self._passages), np.float32)
        numbers, scores, counts = self._search(words, ends, *self._columns, self._local.sums, k)
        rows = zip(numbers.tolist(), (-scores).tolist(), counts.tolist(), strict=True)
        return [list(zip(score[:count], number[:count], strict=True)) for number, score, count in rows]


@cache
def _compiled() -> Callable[..., tuple[Any, Any, Any]]:
    import numba

    try:
        function: Callable[..., tuple[Any, Any, Any]] = numba.njit(nogil=True, cache=True)(_search)
    except RuntimeError:  # no cache folder is writable
        function = numba.njit(nogil=True)(_search)
    return function


def _search(words: Any, ends: Any, indptr: Any, indices: Any, data: Any, sums: Any, k: int) -> tuple[Any, Any, Any]:
    """Return the best passages for each query: numbers and scores (queries, k), and their count (queries,).

    `words` holds the columns of all queries, concatenated; those of query i begin at `ends[i]`. `sums` is a buffer with
    a 0 for each passage, before and after the call.
    """
    queries = len(ends) - 1
    numbers, scores = np.zeros((queries, k), np.int64), np.zeros((queries, k), np.float32)
    counts = np.zeros(queries, np.int64)
    for query in range(queries):
        for word in words[ends[query] : ends[query + 1]]:
            for entry in range(indptr[word], indptr[word + 1]):
                sums[indices[entry]] += data[entry]
        count, least = 0, np.float32(0)
        for begin in range(0, len(sums), 64):
            block = sums[begin : begin + 64]
            better = 0  # counted without a branch, so that the loop is vectorized: most blocks have none
            for offset in range(len(block)):
                better += 1 if block[offset] > least else 0
            if better == 0:
                continue
            for offset in range(len(block)):
                score = block[offset]
                if score > least:  # a tie with the last hit of a full list loses: its passage number is higher
                    rank = min(count, k - 1)
                    while rank > 0 and scores[query, rank - 1] < score:
                        scores[query, rank] = scores[query, rank - 1]
                        numbers[query, rank] = numbers[query, rank - 1]
                        rank -= 1
                    scores[query, rank], numbers[query, rank] = score, begin + offset
                    count = min(count + 1, k)
                    if count == k:
                        least = scores[query, k - 1]
        counts[query] = count
        sums[:] = 0
    return numbers, scores, counts


def build(folder: Path, passages: PassageStore, **options: Any) -> None:
    """Build the engine's part of an index from its passages; `options` are those of `read_ranking`.

    Raises UsageError for a wrong option, and MissingExtra.
    """
    bm25s, ranking = import_bm25s(), read_ranking(options)
    vocabulary: dict[str, int] = {}
    titles, texts, labels = _read(passages, vocabulary, ranking)
    model = bm25s.BM25(k1=K1, b=B, method="lucene")
    score = _count_presence if ranking.presence else partial(_score, model)
    scores = _merge(_score(model, titles, vocabulary, ranking.title_weight), score(texts, vocabulary, 1.0))
    if ranking.label_weight:
        scores = _merge(scores, score(labels, vocabulary, ranking.label_weight))
    model.scores = scores
    model.vocab_dict, model.nonoccurrence_array = vocabulary, None
    model.save(str(folder / FOLDER), show_progress=False)
    if ranking.presence:
        counts = np.bincount(_pairs(texts)[0], minlength=len(vocabulary)).tolist()
        known = {word: counts[number] for word, number in vocabulary.items() if counts[number]}
        (folder / FOLDER / _COUNTS).write_text(json.dumps(known), encoding="utf-8")


def _read_counts(folder: Path) -> dict[str, int]:
    """The number of passages with each word in their texts."""
    try:
        counts: dict[str, int] = json.loads((folder / FOLDER / _COUNTS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged("the bm25s index", folder, error) from None
    return counts


Field = list["array[int]"]
"""The words of each passage, as numbers."""


def _read(passages: PassageStore, vocabulary: dict[str, int], ranking: RankingOptions) -> tuple[Field, Field, Field]:
    """Return the words of titles, texts and labels as numbers, and add new words to the vocabulary."""
    analyze = analyzer(import_tantivy()).analyze

    def numbers(words: Sequence[str]) -> array[int]:
        return array("i", [vocabulary.setdefault(word, len(vocabulary)) for word in words])

    fields: tuple[Field, Field, Field] = ([], [], [])
    mark = _IN_TITLE if ranking.title_letters else ""
    for passage in passages:
        title, text = ranking.prepare(passage.title), ranking.prepare(passage.text)
        fields[0].append(numbers([f"{mark}{word}" for word in ranking.of_title(analyze(title))]))
        fields[1].append(numbers(analyze(text)))
        fields[2].append(numbers(analyze(ranking.labels(passage))))
    return fields


def _pairs(field: Field) -> tuple[Any, Any]:
    """Return the distinct pairs of a word and a passage that has it, ordered by word."""
    passages = np.repeat(np.arange(len(field), dtype=np.int64), [len(words) for words in field])
    words = np.concatenate([np.frombuffer(words, np.int32) for words in field if words] or [np.zeros(0, np.int32)])
    return np.divmod(np.unique(words.astype(np.int64) * len(field) + passages), len(field))


def _count_presence(field: Field, vocabulary: dict[str, int], weight: float) -> dict[str, Any]:
    """Scores of all words in a field, each counted once in a passage, as the columns of a sparse matrix."""
    words, passages = _pairs(field)
    counts = np.bincount(words, minlength=len(vocabulary))
    weights = np.array([weight * inverse_frequency(int(count), len(field)) for count in counts], np.float32)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return {"data": weights[words], "indices": passages.astype(np.int32), "indptr": indptr, "num_docs": len(field)}


def _score(model: Any, field: Field, vocabulary: dict[str, int], weight: float) -> dict[str, Any]:
    """Scores of all words in a field, as the columns of a sparse matrix."""
    if not any(field):  # the mean length would be 0
        nothing = {"data": np.zeros(0, np.float32), "indices": np.zeros(0, np.int32)}
        return {**nothing, "indptr": np.zeros(len(vocabulary) + 1, np.int64), "num_docs": len(field)}
    scores: dict[str, Any] = model.build_index_from_ids(list(vocabulary.values()), field, show_progress=False)
    scores["data"] *= weight * (K1 + 1)  # bm25s leaves out this constant factor, Tantivy does not
    return scores


def _merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The sum of two matrices."""
    passages, words = one["num_docs"], len(one["indptr"]) - 1
    columns = [np.repeat(np.arange(words, dtype=np.int64), np.diff(part["indptr"])) for part in (one, other)]
    entries = np.concatenate(columns) * passages + np.concatenate([one["indices"], other["indices"]])
    order = np.argsort(entries, kind="stable")
    entries = entries[order]
    begins = np.flatnonzero(np.diff(entries, prepend=-1))
    data = np.concatenate([one["data"], other["data"]])[order]
    entries = entries[begins]
    return {
        "data": np.add.reduceat(data, begins) if len(begins) else data,
        "indices": (entries % passages).astype(np.int32),
        "indptr": np.searchsorted(entries, np.arange(words + 1, dtype=np.int64) * passages),
        "num_docs": passages,
    }
