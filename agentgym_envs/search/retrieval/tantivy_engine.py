"""The default engine: BM25 by Tantivy, over the title and the text of a passage as fields of their own.

A title of three words that is poured into a text of a hundred is lost in the text's length; as a field with its own
statistics and weight it finds the page that a question names. Source: https://github.com/quickwit-oss/tantivy-py
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from agentgym_envs.errors import RetrieverError, missing_extra
from agentgym_envs.search.retrieval.base import Hit, Passage, Retriever, check_queries
from agentgym_envs.search.retrieval.passages import PassageStore
from agentgym_envs.search.retrieval.words import MAX_QUERY_WORDS, STOP_WORDS

TITLE_WEIGHT = 1.5
FOLDER = "tantivy"
_ANALYZER = "agentgym"
_NUMBER, _TITLE, _TEXT = "number", "title", "text"
_MORE = 8
"""How many hits are asked for beyond `k`, so that ties at the end of the list can be broken."""
_LONGEST_WORD = 64


def import_tantivy() -> ModuleType:
    """The package. Raises MissingExtra."""
    try:
        import tantivy
    except ModuleNotFoundError:
        raise missing_extra("this search engine", "tantivy", "search") from None
    module: ModuleType = tantivy
    return module


class TantivyRetriever(Retriever):
    """Searches an index that `TantivyWriter` wrote. Threads may share it; it releases the GIL while it searches."""

    def __init__(self, folder: Path, passages: PassageStore) -> None:
        """`folder` is that of the index, `passages` those that it is of. Raises MissingExtra and RetrieverError."""
        tantivy = import_tantivy()
        try:
            self._index = tantivy.Index.open(str(folder / FOLDER))
            self._searcher = self._index.searcher()
        except ValueError as error:
            raise RetrieverError(f"the Tantivy index in {folder} cannot be opened: {error}") from None
        self._tantivy, self._schema, self._analyzer = tantivy, self._index.schema, _analyzer(tantivy)
        self._passages = passages

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        return [self._best(query, k) for query in check_queries(queries, k)]

    def describe(self) -> dict[str, Any]:
        """See `Retriever.describe`."""
        return {"engine": "tantivy", "passages": len(self._passages)}

    def _best(self, query: str, k: int) -> list[Hit]:
        words = list(dict.fromkeys(self._analyzer.analyze(query)))[:MAX_QUERY_WORDS]
        if k <= 0 or not words:
            return []
        try:
            ranked = self._rank(self._query(words), k)
        except ValueError as error:
            raise RetrieverError(f"Tantivy failed: {error}") from error
        return [Hit(self._passages[number], -score) for score, number in ranked]

    def _rank(self, query: Any, k: int) -> list[tuple[float, int]]:
        """The `k` best as (score below 0, number), sorted; of equal scores the least numbers."""
        limit = k + _MORE
        while True:
            hits = self._searcher.search(query, limit, count=False).hits
            numbers = self._searcher.fast_field_values(_NUMBER, [address for _, address in hits])
            ranked = sorted((-score, number) for (score, _), number in zip(hits, numbers, strict=True))
            if len(hits) < limit or ranked[k - 1][0] < ranked[-1][0]:
                return ranked[:k]
            limit *= 4

    def _query(self, words: Sequence[str]) -> Any:
        make, should = self._tantivy.Query, self._tantivy.Occur.Should
        parts = []
        for word in words:
            title = make.term_query(self._schema, _TITLE, word, "freq")
            parts.append((should, make.boost_query(title, TITLE_WEIGHT)))
            parts.append((should, make.term_query(self._schema, _TEXT, word, "freq")))
        return make.boolean_query(parts)


class TantivyWriter:
    """Writes an index, passage by passage; what was committed stays, whatever happens afterwards.

    One thread writes, so that equal corpora give equal indexes.
    """

    def __init__(self, folder: Path, *, begin_at: int = 0, heap_mb: int = 128) -> None:
        """Goes on after the passage `begin_at` - 1, of an index in `folder` if it is not 0. Raises MissingExtra."""
        tantivy = import_tantivy()
        path = folder / FOLDER
        if begin_at == 0:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
        schema = tantivy.SchemaBuilder().add_integer_field(_NUMBER, indexed=True, fast=True)
        for field in (_TITLE, _TEXT):
            schema = schema.add_text_field(field, tokenizer_name=_ANALYZER, index_option="freq")
        self._index = tantivy.Index(schema.build(), path=str(path))
        self._index.register_tokenizer(_ANALYZER, _analyzer(tantivy))
        self._writer: Any = self._index.writer(heap_size=heap_mb * 1_000_000, num_threads=1)
        self._document, self._next = tantivy.Document, begin_at
        if begin_at:
            self._forget(tantivy, begin_at)

    def add(self, passages: Iterable[Passage]) -> None:
        """Index passages; their numbers go on from the last one's."""
        for passage in passages:
            self._writer.add_document(self._document(number=self._next, title=passage.title, text=passage.text))
            self._next += 1

    def commit(self) -> None:
        """Make sure of what was added so far."""
        self._writer.commit()

    def close(self) -> None:
        """Commit, and wait until the index is at rest."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.commit()
            writer.wait_merging_threads()

    def __enter__(self) -> TantivyWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        self._writer = None  # frees the lock

    def _forget(self, tantivy: ModuleType, begin_at: int) -> None:
        """Drop passages that were committed after the place from which the writing goes on."""
        late = tantivy.Query.range_query(
            self._index.schema, _NUMBER, tantivy.FieldType.Integer, lower_bound=begin_at, upper_bound=2**62
        )
        self._writer.delete_documents_by_query(late)
        self._writer.commit()


def _analyzer(tantivy: ModuleType) -> Any:
    """Words of letters and digits in lower case, without accents, without stop words, as Snowball stems."""
    keep = tantivy.Filter
    steps = (
        keep.remove_long(_LONGEST_WORD),
        keep.lowercase(),
        keep.ascii_fold(),
        keep.custom_stopword(list(STOP_WORDS)),
        keep.stemmer("english"),
    )
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in steps:
        builder = builder.filter(step)
    return builder.build()


def build(folder: Path, passages: PassageStore) -> None:
    """Make the engine's part of an index from its passages."""
    with TantivyWriter(folder) as writer:
        writer.add(passages)
