"""The default engine: BM25 by Tantivy, over the title and the text of a passage as separate fields.

In a single field, a title of three words would have little weight next to a text of a hundred. As a field with its own
statistics and weight, it finds the page that a question names. `ranking` has the options.
Source: https://github.com/quickwit-oss/tantivy-py
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from agentgym_envs.errors import AgentGymError, RetrieverError, missing_extra
from agentgym_envs.search.retrieval.base import Hit, Passage, check_queries
from agentgym_envs.search.retrieval.local_base import MORE, LocalRetriever, Ranking, rank
from agentgym_envs.search.retrieval.manifest import damaged, options_of
from agentgym_envs.search.retrieval.passages import PassageStore
from agentgym_envs.search.retrieval.ranking import (
    CLASSIC,
    RankingOptions,
    joined,
    rarest,
    read_ranking,
)
from agentgym_envs.search.retrieval.words import MAX_QUERY_WORDS, STOP_WORDS

FOLDER = "tantivy"
COMMIT_EVERY = 100_000
"""A build commits after this many passages."""
_ANALYZER, _ANALYZED = "agentgym", "analyzed"
_NUMBER, _TITLE, _TEXT, _LABEL = "number", "title", "text", "label"
_LONGEST_WORD = 64
_MOST_COUNTS = 100_000
"""The most words whose frequencies are kept in memory."""


def import_tantivy() -> ModuleType:
    """Import tantivy. Raises MissingExtra."""
    try:
        import tantivy
    except ModuleNotFoundError:
        raise missing_extra("this search engine", "tantivy", "search") from None
    module: ModuleType = tantivy
    return module


class TantivyRetriever(LocalRetriever):
    """Searches an index that `TantivyWriter` wrote. Threads may share it; it releases the GIL while it searches."""

    engine = "tantivy"

    def __init__(self, folder: Path, passages: PassageStore) -> None:
        """Open the index in `folder`. Raises MissingExtra and RetrieverError."""
        super().__init__(folder, passages)
        tantivy = import_tantivy()
        try:
            self._index = tantivy.Index.open(str(folder / FOLDER))
            self._searcher = self._index.searcher()
        except ValueError as error:
            raise damaged("the Tantivy index", folder, error) from None
        self._tantivy, self._schema, self._analyzer = tantivy, self._index.schema, analyzer(tantivy)
        self._ranking = read_ranking(options_of(folder, self.engine))
        self._more = 120 if self._ranking.presence else MORE  # passages tie more often if words are not counted
        self._counts: dict[tuple[str, str], int] = {}

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the best passages for each query."""
        return [self._best(query, k) for query in check_queries(queries, k)]

    def _best(self, query: str, k: int) -> list[Hit]:
        words = query_words(self._analyzer, query, self._ranking) if k > 0 else []
        if not words:
            return []
        parsed = self._query(words)
        try:
            return self._hits(rank(lambda limit: self._found(parsed, limit), k, len(self._passages), more=self._more))
        except ValueError as error:
            raise RetrieverError(f"Tantivy failed: {error}") from error

    def _found(self, query: Any, limit: int) -> Ranking:
        hits = self._searcher.search(query, limit, count=False).hits
        numbers = self._searcher.fast_field_values(_NUMBER, [address for _, address in hits])
        return [(-score, number) for (score, _), number in zip(hits, numbers, strict=True)]

    def _query(self, words: Sequence[str]) -> Any:
        make, ranking = self._tantivy.Query, self._ranking
        if ranking.presence:
            words = rarest(words, [self._count(_TEXT, word) for word in words], len(self._passages))
        parts = []
        for word, in_title in zip(words, ranking.of_title(words), strict=True):
            title = make.term_query(self._schema, _TITLE, in_title, "freq")
            parts.append(make.boost_query(title, ranking.title_weight))
            parts.append(self._in_text(_TEXT, word, 1.0))
            if ranking.label_weight:
                parts.append(self._in_text(_LABEL, word, ranking.label_weight))
        return make.boolean_query([(self._tantivy.Occur.Should, part) for part in parts if part is not None])

    def _in_text(self, field: str, word: str, weight: float) -> Any:
        """A query for a word; None if no passage has it there."""
        make = self._tantivy.Query
        if not self._ranking.presence:
            query = make.term_query(self._schema, field, word, "freq")
            return query if weight == 1.0 else make.boost_query(query, weight)
        if not (count := self._count(field, word)):
            return None
        score = weight * inverse_frequency(count, len(self._passages))
        return make.const_score_query(make.term_query(self._schema, field, word, "basic"), score)

    def _count(self, field: str, word: str) -> int:
        """The number of passages with a word in a field."""
        if (count := self._counts.get((field, word))) is None:
            if len(self._counts) >= _MOST_COUNTS:
                self._counts.clear()
            count = self._counts[field, word] = int(self._searcher.doc_freq(field, word))
        return count


def inverse_frequency(count: int, passages: int) -> float:
    """BM25's weight of a word that `count` of the passages have."""
    return math.log(1 + (passages - count + 0.5) / (count + 0.5))


class TantivyWriter:
    """Writes an index, passage by passage. Committed passages survive a crash.

    It uses one thread, so that equal corpora give equal indexes.
    """

    def __init__(
        self, folder: Path, ranking: RankingOptions = CLASSIC, *, begin_at: int = 0, heap_mb: int = 128
    ) -> None:
        """Resume after the `begin_at` passages that `committed` counts in the folder. Raises MissingExtra."""
        tantivy = import_tantivy()
        path = folder / FOLDER
        if begin_at == 0:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
        schema = tantivy.SchemaBuilder().add_integer_field(_NUMBER, indexed=True, fast=True)
        fields = (_TITLE, _TEXT, _LABEL) if ranking.label_weight else (_TITLE, _TEXT)
        for field in fields:
            option = "basic" if ranking.presence and field != _TITLE else "freq"
            name = _ANALYZED if ranking.title_letters and field == _TITLE else _ANALYZER
            schema = schema.add_text_field(field, tokenizer_name=name, index_option=option)
        self._index = tantivy.Index(schema.build(), path=str(path))
        self._ranking, self._analyzer = ranking, analyzer(tantivy)
        self._index.register_tokenizer(_ANALYZER, self._analyzer)
        self._index.register_tokenizer(_ANALYZED, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        self._writer: Any = self._index.writer(heap_size=heap_mb * 1_000_000, num_threads=1)
        self._document, self._next = tantivy.Document, begin_at

    def add(self, passages: Iterable[Passage]) -> None:
        """Index passages; they are numbered consecutively."""
        for passage in passages:
            self._writer.add_document(self._document(number=self._next, **self._fields(passage)))
            self._next += 1

    def _fields(self, passage: Passage) -> dict[str, str]:
        ranking = self._ranking
        title, labels = ranking.prepare(passage.title), ranking.labels(passage)
        if ranking.title_letters:
            title = joined(ranking.of_title(self._analyzer.analyze(title)))
        fields = {_TITLE: title, _TEXT: ranking.prepare(passage.text)}
        return fields if not labels else {**fields, _LABEL: labels}

    def commit(self) -> None:
        """Commit the passages added so far."""
        self._writer.commit()

    def close(self) -> None:
        """Commit, and wait until background merging has ended."""
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
        self._writer = None  # releases Tantivy's lock


def analyzer(tantivy: ModuleType) -> Any:
    """Create the tokenizer: words of letters and digits, lower case, without accents or stop words, Snowball stems."""
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


def query_words(analyzer: Any, query: str, ranking: RankingOptions = CLASSIC) -> list[str]:
    """Return the distinct words of a query. Invalid Unicode (a lone surrogate) separates words."""
    try:
        words = analyzer.analyze(ranking.prepare(query))
    except UnicodeEncodeError:
        words = analyzer.analyze(ranking.prepare(query.encode(errors="replace").decode()))
    return ranking.of_query(list(dict.fromkeys(words)))[:MAX_QUERY_WORDS]


def build(folder: Path, passages: PassageStore, **options: Any) -> None:
    """Build the engine's part of an index from its passages. Resumes after the passages that are already committed.

    `options` are those of `read_ranking`. Raises UsageError for a wrong option, MissingExtra, OSError if the disk is
    full, and RetrieverError if Tantivy fails.
    """
    begin, ranking = committed(folder), read_ranking(options)
    with _failures(), TantivyWriter(folder, ranking, begin_at=begin) as writer:
        rest = passages.after(begin)
        for _ in range(begin, len(passages), COMMIT_EVERY):
            writer.add(islice(rest, COMMIT_EVERY))
            writer.commit()


@contextlib.contextmanager
def streaming_build(folder: Path, **options: Any) -> Iterator[Callable[[Iterable[Passage]], None]]:
    """Index passages while they are being written, from the first on; `build` then finds them committed.

    Tantivy indexes in a thread, so this saves time. Raises the same errors as `build`.
    """
    ranking = read_ranking(options)
    with _failures(), TantivyWriter(folder, ranking) as writer:
        yield writer.add


def committed(folder: Path) -> int:
    """Return the number of committed passages in an index that is being built. Raises MissingExtra."""
    tantivy = import_tantivy()
    try:
        return int(tantivy.Index.open(str(folder / FOLDER)).searcher().num_docs)
    except ValueError:  # there is no index yet
        return 0


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Convert Tantivy's errors: those of the operating system to OSError, others to RetrieverError."""
    try:
        yield
    except AgentGymError:  # some are ValueErrors too
        raise
    except ValueError as error:
        if found := re.search(r"os error (\d+)", str(error)):
            raise OSError(int(found[1]), os.strerror(int(found[1]))) from error
        raise RetrieverError(f"Tantivy failed: {error}") from error
