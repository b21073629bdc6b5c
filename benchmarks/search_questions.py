"""Which share of natural questions do engines answer, and how fast: ours with both rankings, and the peers' best.

    python -m benchmarks.search_questions [--out benchmarks/results/search-questions.json] [--repeats 5]

The questions are those of benchmarks/data/natural-questions.jsonl (see scripts/make_natural_questions.py), and the
corpus is the embedded one. A setting is chosen on the half "choose", by the share of questions with a gold passage
among the first three and then by that with one at the top; the half "report" gives the figures, with Wilson's 95 %
interval. Peers have their own grids: plain bm25s over k1 and b, with and without a Snowball stemmer, by its numba
backend; and plain Tantivy, a schema with title and body and its own query parser, over the weight of the title, with
and without stems. Each peer reads title and text.

Speed is queries per second of CPU on one core, one query per call, over the natural questions and over 1,100 test
questions of the task table, which are longer. The sides take turns; the figure is the median over the repeats, and
a ratio is that of paired repeats, as median and range.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from agentgym_envs.search.corpus.embedded import embedded_passages
from agentgym_envs.search.questions.sets import open_questions
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.factory import open_retriever
from agentgym_envs.search.retrieval.ranking import RANKINGS
from benchmarks.common import machine, run

DATA = Path(__file__).parent / "data" / "natural-questions.jsonl"
TOP, TABLE_QUESTIONS = 3, 1_100
OURS = {
    f"{engine}, {ranking}": {"engine": engine, "ranking": ranking}
    for engine, ranking in product(("tantivy", "bm25s"), RANKINGS)
}
GRID_BM25S = list(product((0.1, 0.3, 0.9, 1.2, 1.5), (0.0, 0.2, 0.4, 0.75), (False, True)))
GRID_TANTIVY = list(product((0.5, 1.0, 1.5, 2.0, 3.0), (False, True)))
PAIRS = (
    ("tantivy, natural", "plain Tantivy"),
    ("bm25s, natural", "plain bm25s (numba)"),
    ("tantivy, natural", "tantivy, classic"),
    ("bm25s, natural", "bm25s, classic"),
)
Search = Callable[[Sequence[str]], list[list[str]]]
Row = dict[str, Any]


def measure(repeats: int) -> dict[str, Any]:
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    halves = {half: [row for row in rows if row["half"] == half] for half in ("choose", "report")}
    passages = list(embedded_passages())
    sides: dict[str, Search] = {name: ours(spec) for name, spec in OURS.items()}
    chosen: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, peers in (
            ("plain bm25s (numba)", plain_bm25s(passages)),
            ("plain Tantivy", plain_tantivy(passages, Path(folder))),
        ):
            scored = {setting: shares(search, halves["choose"]) for setting, search in peers.items()}
            best = max(scored, key=lambda setting: (scored[setting]["top 3"], scored[setting]["top 1"]))
            chosen[name] = {"setting": best, "choose": scored[best], "grid": scored}
            sides[name] = peers[best]
        quality = {
            name: {half: shares(search, some) for half, some in halves.items()} for name, search in sides.items()
        }
        return {
            "machine": machine(),
            "repeats": repeats,
            "questions": {half: len(some) for half, some in halves.items()},
            "quality": quality,
            "kinds": {name: by_kind(search, halves["report"]) for name, search in sides.items()},
            "chosen": chosen,
            "speed": speeds(sides, [row["question"] for row in rows], repeats),
        }


def ours(spec: dict[str, str]) -> Search:
    retriever = open_retriever(spec)
    return lambda queries: [[hit.passage.id for hit in hits] for hits in retriever.search(queries, TOP)]


def plain_bm25s(passages: Sequence[Passage]) -> dict[str, Search]:
    """Plain bm25s for each setting; building it takes some seconds, so a setting is built when it is first used."""
    import bm25s

    ids = [passage.id for passage in passages]
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]

    @cache
    def tokens(stems: bool) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stem if stems else None, show_progress=False)

    def make(k1: float, b: float, stems: bool) -> Search:
        @cache
        def engine() -> Any:
            built = bm25s.BM25(method="lucene", k1=k1, b=b, backend="numba")
            built.index(tokens(stems), show_progress=False)
            built.activate_numba_scorer()
            return built

        def search(queries: Sequence[str]) -> list[list[str]]:
            words = bm25s.tokenize(list(queries), stopwords="en", stemmer=stem if stems else None, show_progress=False)
            found = engine().retrieve(words, k=TOP, show_progress=False, backend_selection="numba")
            return [[ids[number] for number in row] for row in found.documents]

        return search

    return {f"k1={k1} b={b}{' stems' if stems else ''}": make(k1, b, stems) for k1, b, stems in GRID_BM25S}


def stem(words: list[str]) -> list[str]:
    return [stem_word(word) for word in words]


@cache
def stem_word(word: str) -> str:
    return " ".join(snowball().analyze(word)) or word


@cache
def snowball() -> Any:
    import tantivy

    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer("english")).build()


def plain_tantivy(passages: Sequence[Passage], folder: Path) -> dict[str, Search]:
    """Plain Tantivy for each setting: one index without stems and one with them, and the query parser with weights."""
    import tantivy

    ids = [passage.id for passage in passages]
    found: dict[str, Search] = {}
    for stems in (False, True):
        schema = tantivy.SchemaBuilder().add_integer_field("number", indexed=True, fast=True)
        for field in ("title", "body"):
            schema = schema.add_text_field(field, tokenizer_name="en_stem" if stems else "default")
        (folder / str(stems)).mkdir()
        index = tantivy.Index(schema.build(), path=str(folder / str(stems)))
        writer = index.writer(heap_size=128_000_000, num_threads=1)
        for number, passage in enumerate(passages):
            writer.add_document(tantivy.Document(number=number, title=passage.title, body=passage.text))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        for weight, _ in [setting for setting in GRID_TANTIVY if setting[1] == stems]:
            found[f"title {weight}{' stems' if stems else ''}"] = parse_and_search(index, ids, weight)
    return found


def parse_and_search(index: Any, ids: Sequence[str], weight: float) -> Search:
    searcher = index.searcher()

    def one(query: str) -> list[str]:
        parsed, _ = index.parse_query_lenient(query, ["title", "body"], field_boosts={"title": weight})
        hits = searcher.search(parsed, TOP, count=False).hits
        return [ids[number] for number in searcher.fast_field_values("number", [address for _, address in hits])]

    return lambda queries: [one(query) for query in queries]


def shares(search: Search, rows: Sequence[Row]) -> dict[str, Any]:
    """The shares of questions with a gold passage at the top and among the first three."""
    found = search([row["question"] for row in rows])
    top1 = sum(bool(set(ids[:1]) & set(row["passages"])) for row, ids in zip(rows, found, strict=True))
    top3 = sum(bool(set(ids[:TOP]) & set(row["passages"])) for row, ids in zip(rows, found, strict=True))
    count = len(rows)
    return {
        "top 1": top1 / count,
        "top 3": top3 / count,
        "top 1 interval": wilson(top1, count),
        "top 3 interval": wilson(top3, count),
    }


def by_kind(search: Search, rows: Sequence[Row]) -> dict[str, Any]:
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return {kind: shares(search, [row for row in rows if row["kind"] == kind]) for kind in kinds}


def wilson(hits: int, count: int, z: float = 1.96) -> list[float]:
    rate, spread = hits / count, z * z / count
    half = z * math.sqrt(rate * (1 - rate) / count + spread / (4 * count))
    return [round((rate + spread / 2 - half) / (1 + spread), 4), round((rate + spread / 2 + half) / (1 + spread), 4)]


def speeds(sides: dict[str, Search], natural: Sequence[str], repeats: int) -> dict[str, Any]:
    table = [task.goal for task in open_questions("embedded").sample(TABLE_QUESTIONS, split="test", seed=3)]
    found: dict[str, Any] = {}
    for queries_name, queries in (("natural", natural), ("table", table)):
        samples: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(repeats):
            for name, search in sides.items():
                samples[name].append(per_second(search, queries))
        ratios = {f"{a} / {b}": spread(np.divide(samples[a], samples[b]).tolist()) for a, b in PAIRS}
        medians = {name: statistics.median(values) for name, values in samples.items()}
        found[queries_name] = {"median": medians, "samples": samples, "ratios": ratios}
    return found


def per_second(search: Search, queries: Sequence[str]) -> float:
    search(queries[:1])
    begun = time.process_time()
    for query in queries:
        search([query])
    return len(queries) / (time.process_time() - begun)


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def show(result: dict[str, Any]) -> None:
    count = result["questions"]["report"]
    table = Table(title=f"Natural questions: {count} of the half 'report'; queries per second of CPU on one core")
    columns = ("engine", "top 1", "95 %", "top 3", "95 %", "queries/s, natural", "queries/s, task table")
    for column in columns:
        table.add_column(column, justify="left" if column == "engine" else "right")
    for name, halves in result["quality"].items():
        half = halves["report"]
        cells = [text for top in ("top 1", "top 3") for text in (percent(half[top]), between(half[f"{top} interval"]))]
        cells += [rates(result["speed"][queries]["samples"][name]) for queries in ("natural", "table")]
        setting = result["chosen"].get(name, {}).get("setting")
        table.add_row(f"{name} ({setting})" if setting else name, *cells)
    Console(width=150).print(table)
    for queries in ("natural", "table"):
        for name, ratio in result["speed"][queries]["ratios"].items():
            Console().print(f"{queries}: {name}: {ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f})")


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def between(interval: Sequence[float]) -> str:
    return f"{100 * interval[0]:.0f}-{100 * interval[1]:.0f}"


def rates(values: Sequence[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=5)
