"""The local engines: their results, order, agreement, sharing and pickling."""

import asyncio
import copy
import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import bm25s_engine, dense_engine, tantivy_engine
from agentgym_envs.search.retrieval.base import Passage, Retriever
from agentgym_envs.search.retrieval.encoders import (
    HashingEncoder,
    load_encoder,
)
from agentgym_envs.search.retrieval.engines import ENGINES
from agentgym_envs.search.retrieval.index import build_index, open_index
from agentgym_envs.search.retrieval.local_base import MORE, MOST_TIES, Ranking, rank
from agentgym_envs.search.retrieval.passages import PassageStore
from agentgym_envs.search.retrieval.ranking import TITLE_WEIGHT
from agentgym_envs.search.retrieval.words import MAX_QUERY_WORDS, spaced

ROOT = Path(__file__).parents[2]
WORDS = ["river", "mountain", "harbour", "copper", "wheat", "railway", "bridge", "castle", "desert", "island", "forest"]
CITIES = ["Łódź", "Ærø", "Straßburg", "São Tomé", "東京", "Москва", "القاهرة", "Lima", "Peru", "Reykjavík"]


def make_passages() -> list[Passage]:
    """Passages with common words, and forty that differ only in their ids."""
    rng = random.Random(7)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(5, 40))) for _ in range(300)]
    passages = [Passage(f"p{i}", f'"{rng.choice(WORDS)} {i}"\n{text}.') for i, text in enumerate(texts)]
    passages += [Passage(f"c{i}", f'"{name}"\n{name} is a city of some size.') for i, name in enumerate(CITIES)]
    passages += [Passage(f"twin{i}", '"Twin"\nAll of these say one thing: zeppelin.') for i in range(40)]
    return [*passages, Passage("short", "a single line about quokkas"), Passage("blank", '""\n'), Passage("empty", "")]


PASSAGES = make_passages()
QUERIES = [
    "river", "copper mountain", "castle castle desert", "zeppelin", "the Twin of 17", "where is São Tomé?", "lodz",
    "AERO", "strassburg", "東京", "москва", "القاهرة", "quokka", "harbour 3 of 4 island forests", "x" * 100_000,
    "mountain " * 12_000, "", "   ", "the of and", "?!", "\ud800 river \udfff", "a\x00river", "👩‍👩‍👧 bridge",
    "qqqq zzzz",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "index"
    for engine in ENGINES:
        build_index(PASSAGES, path, corpus="test", engine=engine)
    return path


@pytest.fixture(params=list(ENGINES))
def retriever(request: pytest.FixtureRequest, folder: Path) -> Retriever:
    return open_index(folder, request.param)


def ids(retriever: Retriever, query: str, k: int = 3) -> list[str]:
    return [hit.passage.id for hit in retriever.search([query], k)[0]]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("k", [1, 3, 50, 1_000])
def test_hits_are_distinct_passages_sorted_by_score(retriever: Retriever, k: int) -> None:
    for hits in retriever.search(QUERIES, k):
        assert len(hits) <= k
        assert len({hit.passage.id for hit in hits}) == len(hits)
        assert all(hit.passage in PASSAGES for hit in hits)
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        keys = [(-hit.score, PASSAGES.index(hit.passage)) for hit in hits]
        assert keys == sorted(keys), "equal scores are ordered by position in the corpus"


def test_a_batch_gives_the_results_of_its_single_queries(retriever: Retriever) -> None:
    batch = retriever.search(QUERIES, 7)
    alone = [retriever.search([query], 7)[0] for query in QUERIES]
    assert [[hit.passage for hit in hits] for hits in batch] == [[hit.passage for hit in hits] for hits in alone]
    assert asyncio.run(retriever.asearch(QUERIES, 7)) == batch
    assert retriever.search([], 3) == []


def test_ties_are_broken_by_passage_number_also_at_the_end_of_the_list(retriever: Retriever) -> None:
    for k in (1, 3, 9, 32, 40):
        assert ids(retriever, "zeppelin", k) == [f"twin{i}" for i in range(k)]
    assert [len(set(scores)) for scores in [[hit.score for hit in retriever.search(["zeppelin"], 40)[0]]]] == [1]


def ties(count: int) -> tuple[Callable[[int], Ranking], list[int]]:
    """Return a search function that finds `count` tied passages, the last first, and the limits of its calls."""
    limits = list[int]()

    def found(limit: int) -> Ranking:
        limits.append(limit)
        return [(-1.0, number) for number in range(count - 1, max(count - 1 - limit, -1), -1)]

    return found, limits


def test_ties_are_broken_exactly_up_to_a_limit() -> None:
    found, _ = ties(MOST_TIES)
    assert [number for _, number in rank(found, 3, 10**6)] == [0, 1, 2]
    found, limits = ties(300_000)
    assert rank(found, 3, 300_000) == rank(found, 3, 300_000)
    assert len(rank(found, 3, 300_000)) == 3
    assert max(limits) == 3 + MORE + MOST_TIES
    found, limits = ties(50)
    rank(found, 3, 50)
    assert max(limits) == 50


@pytest.mark.parametrize("engine", ["tantivy", "bm25s"])
def test_repeated_words_count_once_and_long_queries_are_truncated(folder: Path, engine: str) -> None:
    lexical = open_index(folder, engine)
    assert lexical.search(["river castle river river"], 5) == lexical.search(["river castle"], 5)
    others = [f"word{i}" for i in range(MAX_QUERY_WORDS)]
    assert ids(lexical, " ".join([*others[1:], "zeppelin"]), 1) == ["twin0"]
    assert ids(lexical, " ".join([*others, "zeppelin"])) == []


@pytest.mark.parametrize("query", ["", "   ", "?!", "\n\t"])
def test_a_query_without_words_finds_nothing(retriever: Retriever, query: str) -> None:
    assert retriever.search([query, "river", query], 3)[::2] == [[], []]


@pytest.mark.parametrize("k", [0, -1, -1_000])
def test_no_hits_is_not_an_error(retriever: Retriever, k: int) -> None:
    assert retriever.search(["river", "x"], k) == [[], []]


def test_invalid_queries_are_refused(retriever: Retriever) -> None:
    with pytest.raises(UsageError, match="at most 1000"):
        retriever.search(["river"], 1_001)
    with pytest.raises(UsageError, match="list of strings"):
        retriever.search("river", 3)
    with pytest.raises(UsageError, match="list of strings"):
        retriever.search([None], 3)  # type: ignore[list-item]


@pytest.mark.parametrize("engine", ["tantivy", "bm25s"])
def test_words_are_found_without_accents_in_any_script_and_form(folder: Path, engine: str) -> None:
    lexical = open_index(folder, engine)
    expected = {"lodz": "c0", "AERO": "c1", "strassburg": "c2", "tome": "c3", "東京": "c4", "москва": "c5"}
    assert {query: ids(lexical, query, 1)[0] for query in expected} == expected
    assert ids(lexical, "القاهرة") == ["c6"]
    assert ids(lexical, "quokka's") == ["short"]
    assert ids(lexical, "qqqq zzzz") == ids(lexical, "the of and") == []
    assert ids(lexical, "\ud800 Lima") == ids(lexical, "Lima") == ["c7"]
    assert ids(lexical, "Lima " + "x " * 50_000, 1) == ["c7"]


@pytest.mark.parametrize("engine", ["tantivy", "bm25s"])
def test_the_title_weighs_more_than_the_text(tmp_path: Path, engine: str) -> None:
    passages = [
        Passage("text", '"Other"\nLima, and some more words about this city of ours.'),
        Passage("title", '"Lima"\nIt has some more words about this city of ours.'),
        Passage("none", '"Some"\nmore words about this city of ours.'),
    ]
    build_index(passages, tmp_path / "index", corpus="test", engine=engine)
    assert ids(open_index(tmp_path / "index", engine), "lima") == ["title", "text"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_corpus_may_lack_titles_or_words(tmp_path: Path, engine: str) -> None:
    build_index([Passage("a", "one river"), Passage("b", "two")], tmp_path / "plain", corpus="x", engine=engine)
    assert ids(open_index(tmp_path / "plain", engine), "river", 9)[0] == "a"
    build_index([Passage("a", "?"), Passage("b", '"the"\n.')], tmp_path / "bare", corpus="x", engine=engine)
    found = ids(open_index(tmp_path / "bare", engine), "river")
    assert found == (["a", "b"] if engine == "dense" else []), "the dense engine always finds something"


def agreement(one: Retriever, other: Retriever, queries: Sequence[str]) -> tuple[float, float]:
    """Return the share of equal first hits, and of equal hits among the first three."""
    pairs = list(zip(one.search(queries, 3), other.search(queries, 3), strict=True))
    firsts = sum(a[0].passage == b[0].passage for a, b in pairs if a and b)
    both = sum(len({hit.passage for hit in a} & {hit.passage for hit in b}) for a, b in pairs)
    return firsts / sum(bool(a) for a, _ in pairs), both / sum(len(a) for a, _ in pairs)


def test_bm25s_scores_equal_the_bm25_formula(folder: Path) -> None:
    """The scores are compared with a direct implementation of the formula."""
    passages, analyze = PassageStore(folder), tantivy_engine.analyzer(tantivy_engine.import_tantivy()).analyze
    fields = [[analyze(spaced(p.title)) for p in passages], [analyze(spaced(p.text)) for p in passages]]
    query = ["castl", "desert", "17"]
    totals = np.zeros(len(passages))
    for field, weight in zip(fields, (TITLE_WEIGHT, 1.0), strict=True):
        mean = sum(map(len, field)) / len(field)
        for word in query:
            holders = sum(word in words for words in field)
            rarity = np.log(1 + (len(field) - holders + 0.5) / (holders + 0.5))
            for number, words in enumerate(field):
                often = words.count(word)
                totals[number] += weight * rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(words) / mean))
    hits = open_index(folder, "bm25s").search(["castles 17 deserts"], 30)[0]
    best = np.argsort(-totals.round(5), kind="stable")[:30]
    assert [hit.score for hit in hits] == pytest.approx(totals[best], rel=1e-4)
    assert {hit.passage for hit in hits[:10]} == {passages[number] for number in best[:10].tolist()}


def test_tantivy_and_bm25s_agree(folder: Path) -> None:
    rng = random.Random(3)
    queries = [f"{rng.choice(WORDS)} {rng.randrange(300)} {rng.choice(WORDS)}?" for _ in range(200)]
    first, three = agreement(open_index(folder, "tantivy"), open_index(folder, "bm25s"), queries)
    assert first > 0.9 and three > 0.85


@pytest.mark.rotating
@pytest.mark.slow
def test_tantivy_and_bm25s_agree_on_the_embedded_corpus(tmp_path: Path) -> None:
    """Tantivy rounds the lengths of texts, so near ties may be ordered differently."""
    from agentgym_envs.search.corpus.embedded import embedded_passages

    passages = list(embedded_passages())
    for engine in ("tantivy", "bm25s"):
        build_index(passages, tmp_path / "index", corpus="embedded", engine=engine)
    rng = random.Random(5)
    chosen = [rng.choice(passages) for _ in range(1_500)]
    words = [rng.sample(passage.text.split(), min(5, len(passage.text.split()))) for passage in chosen]
    queries = [f"What is said of {p.title}: {' '.join(w)}?" for p, w in zip(chosen, words, strict=True)]
    one, other = (open_index(tmp_path / "index", engine) for engine in ("tantivy", "bm25s"))
    first, three = agreement(one, other, queries)
    assert first > 0.95 and three > 0.85


def test_pickles_refer_to_the_index_and_copies_are_the_same_object(retriever: Retriever) -> None:
    assert pickle.loads(pickle.dumps(retriever)) is retriever
    assert copy.deepcopy([retriever])[0] is retriever
    assert len(pickle.dumps(retriever)) < 1_000


@pytest.mark.slow
def test_another_process_can_unpickle_a_retriever(folder: Path, tmp_path: Path) -> None:
    retrievers = [open_index(folder, engine) for engine in ENGINES]
    (tmp_path / "pickle").write_bytes(pickle.dumps(retrievers))
    code = (
        "import pickle, sys; from pathlib import Path\n"
        "for r in pickle.loads(Path(sys.argv[1]).read_bytes()):\n"
        "    print(*[hit.passage.id for hit in r.search(['river castle'], 5)[0]])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "pickle")]
    out = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True
    )
    assert [line.split() for line in out.stdout.splitlines()] == [ids(r, "river castle", 5) for r in retrievers]


def test_threads_share_a_retriever(retriever: Retriever) -> None:
    expected = retriever.search(QUERIES[:14], 5)
    results: list[object] = []

    def ask() -> None:
        results.extend(retriever.search(QUERIES[:14], 5) == expected for _ in range(8))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 48


@pytest.mark.parametrize("engine", ["tantivy", "bm25s"])
def test_a_forked_process_can_search(folder: Path, engine: str) -> None:
    lexical = open_index(folder, engine)
    expected = ids(lexical, "river castle", 5)
    child = os.fork()
    if child == 0:
        os._exit(0 if ids(lexical, "river castle", 5) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("engine", "file", "damage"),
    [
        ("bm25s", "bm25s/params.index.json", lambda data: b"[" * len(data)),
        ("bm25s", "bm25s/data.csc.index.npy", lambda data: b"x" * len(data)),
        ("dense", "dense/vectors.faiss", lambda data: b"x" * len(data)),
        ("dense", "dense/encoder.json", lambda data: b"{" * len(data)),
        ("tantivy", "tantivy/meta.json", lambda data: b"x" * len(data)),
    ],
)
def test_a_damaged_index_is_a_retriever_error(
    folder: Path, tmp_path: Path, engine: str, file: str, damage: Callable[[bytes], bytes]
) -> None:
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / file).write_bytes(damage((broken / file).read_bytes()))
    with pytest.raises(RetrieverError, match=f"(?i)the {engine} index broken is damaged: ") as raised:
        open_index(broken, engine)
    assert str(tmp_path) not in str(raised.value)


@pytest.mark.parametrize("engine", ["bm25s", "dense"])
def test_an_index_of_other_passages_is_refused(folder: Path, tmp_path: Path, engine: str) -> None:
    build_index(PASSAGES[:5], tmp_path / "other", corpus="other")
    with pytest.raises(RetrieverError, match="passages"):
        ENGINES[engine].retriever(folder, PassageStore(tmp_path / "other"))


# Dense


def test_an_index_records_its_encoder(tmp_path: Path, folder: Path) -> None:
    dense_engine.build(tmp_path, PassageStore(folder), encoder="hashing", dimensions=64)
    opened = dense_engine.DenseRetriever(tmp_path, PassageStore(folder))
    assert opened.describe() == {"engine": "dense", "passages": len(PASSAGES), "encoder": "hashing", "dimensions": 64}
    with pytest.raises(UsageError, match="unexpected keyword"):
        load_encoder("hashing", size=3)
    with pytest.raises(UsageError, match="flat"):
        dense_engine.build(tmp_path, PassageStore(folder), kind="tree")  # type: ignore[arg-type]


def test_encoding_resumes_after_an_interruption(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_engine, "_BATCH", 50)
    encode, seen = HashingEncoder.encode, list[int]()

    def breaks(self: HashingEncoder, texts: Sequence[str], kind: str) -> np.ndarray:
        seen.append(len(texts))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return encode(self, texts, "passage")

    monkeypatch.setattr(HashingEncoder, "encode", breaks)
    with pytest.raises(KeyboardInterrupt):
        dense_engine.build(tmp_path, PassageStore(folder))
    dense_engine.build(tmp_path, PassageStore(folder))
    monkeypatch.undo()
    assert sum(seen[3:]) == len(PASSAGES) - 100
    opened = dense_engine.DenseRetriever(tmp_path, PassageStore(folder))
    assert opened.search(QUERIES, 5) == open_index(folder, "dense").search(QUERIES, 5)
    assert sorted(path.name for path in (tmp_path / "dense").iterdir()) == ["encoder.json", "vectors.faiss"]


def test_an_hnsw_index_agrees_with_a_flat_one_and_does_not_pad(tmp_path: Path, folder: Path) -> None:
    dense_engine.build(tmp_path, PassageStore(folder), kind="hnsw")
    graph, flat = dense_engine.DenseRetriever(tmp_path, PassageStore(folder)), open_index(folder, "dense")
    assert agreement(flat, graph, [p.text for p in PASSAGES[:300:5]])[1] > 0.95
    for hits in graph.search(QUERIES, 1_000):
        assert len(hits) <= len(PASSAGES)
        assert len({hit.passage for hit in hits}) == len(hits)


def test_hashing_is_deterministic_and_finds_misspelled_words(folder: Path) -> None:
    encoder = HashingEncoder()
    texts = ["Reykjavík", "reykjavik", "", "the", "東京", "a" * 100_000]
    vectors = encoder.encode(texts, "query")
    assert vectors.shape == (6, 512) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 0, 0, 1, 1])
    assert (vectors[0] == vectors[1]).all() and (encoder.encode(texts[:1], "passage")[0] == vectors[0]).all()
    assert encoder.encode([], "query").shape == (0, 512)
    assert ids(open_index(folder, "dense"), "Reykjavic", 1) == ["c9"]


def test_bm25s_is_compiled_even_without_a_writable_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    real = numba.njit

    def refuses(**options: bool) -> object:
        if options.get("cache"):
            raise RuntimeError("cannot cache function")
        return real(**options)

    bm25s_engine._compiled.cache_clear()
    monkeypatch.setattr(numba, "njit", refuses)
    compiled = bm25s_engine._compiled()
    bm25s_engine._compiled.cache_clear()
    assert callable(compiled)
