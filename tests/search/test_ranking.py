"""The options of an index: two engines follow the same formula, and an index keeps the options it was built with."""

import json
import math
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from agentgym_envs.search.questions.fact_arrays import VALIDATION, graph
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.factory import check_retriever, open_retriever
from agentgym_envs.search.retrieval.index import build_index, open_index
from agentgym_envs.search.retrieval.manifest import read_manifest
from agentgym_envs.search.retrieval.ranking import COMMON_SHARE, RANKINGS, RankingOptions, read_ranking
from agentgym_envs.search.retrieval.tantivy_engine import analyzer, import_tantivy
from tests.search.test_engines import PASSAGES, QUERIES

NATURAL = {"ranking": "natural"}
CORPUS = [
    Passage("austria", '"Austria"\nAustria lies in Europe. Climate: cold. Calling code: +43. Area: 83,871 sq km.'),
    Passage(
        "chile", '"Chile"\nChile is long. Climate: dry. It has 43 volcanoes, 83 parks and 871 rivers. Chile, Chile.'
    ),
    Passage("climate", '"Weather"\nThe climate of Chile, Austria and others is a climate like any climate.'),
    *(Passage(f"n{i}", f'"Town {i}"\nThis town is one of many.') for i in range(12)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranking") / "index"
    for engine in ("tantivy", "bm25s"):
        build_index(CORPUS, path, corpus="small", engine=engine, options=NATURAL)
    return path


@pytest.fixture(params=["tantivy", "bm25s"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def found(folder: Path, engine: str, query: str) -> list[str]:
    return [hit.passage.id for hit in open_index(folder, engine).search([query], 3)[0]]


def scores(passages: list[Passage], options: RankingOptions, words: list[str]) -> dict[str, float]:
    """The scores of the passages, computed from the description of the options alone."""
    analyze = analyzer(import_tantivy()).analyze
    count, total = len(passages), defaultdict[str, float](float)
    titles = [[w[: options.title_letters] for w in analyze(options.prepare(p.title))] for p in passages]
    texts = [set(analyze(options.prepare(p.text))) for p in passages]
    labels = [set(analyze(options.labels(p))) for p in passages]
    mean = sum(map(len, titles)) / count

    def rarity(holders: int) -> float:
        return math.log(1 + (count - holders + 0.5) / (holders + 0.5))

    rare = [word for word in words if sum(word in text for text in texts) <= COMMON_SHARE * count] or words
    for word, passage, index in ((w, p, i) for w in rare for i, p in enumerate(passages)):
        short = word[: options.title_letters]
        often = titles[index].count(short)
        bm25 = often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(titles[index]) / mean))
        total[passage.id] += options.title_weight * bm25 * rarity(sum(short in title for title in titles))
        for field, weight in ((texts, 1.0), (labels, options.label_weight)):
            if word in field[index]:
                total[passage.id] += weight * rarity(sum(word in words for words in field))
    return {id: score for id, score in total.items() if score}


@pytest.mark.parametrize("query", ["climate of the Austrian Alps", "town 7", "many towns", "+43", "83,871"])
def test_both_engines_follow_the_formula(folder: Path, query: str) -> None:
    options = RANKINGS["natural"]
    words = list(dict.fromkeys(analyzer(import_tantivy()).analyze(options.prepare(query))))
    expected = scores(CORPUS, options, options.of_query(words))
    for name in ("tantivy", "bm25s"):
        hits = open_index(folder, name).search([query], len(CORPUS))[0]
        assert {hit.passage.id: hit.score for hit in hits} == pytest.approx(expected, rel=1e-4)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_each_option_changes_the_ranking(folder: Path, engine: str) -> None:
    assert found(folder, engine, "What's the climate like in Austria?")[0] == "austria"  # a label, counted once
    assert found(folder, engine, "Austrian climate")[0] == "austria"  # the first letters of a title
    assert found(folder, engine, "calling code +43")[0] == "austria"
    assert found(folder, engine, "+43") == ["austria", "chile"]
    assert found(folder, engine, "83871") == ["austria"]
    assert found(folder, engine, "871") == ["chile"]


def test_the_classic_ranking_is_that_of_an_index_without_options(tmp_path: Path, engine: str) -> None:
    for name, options in (("plain", None), ("classic", {"ranking": "classic", "title_weight": 3.0})):
        build_index(PASSAGES, tmp_path / name, corpus="test", engine=engine, options=options)
    plain, classic = (open_index(tmp_path / name, engine).search(QUERIES, 50) for name in ("plain", "classic"))
    assert plain == classic


def test_an_index_keeps_its_options(folder: Path, tmp_path: Path, engine: str) -> None:
    assert read_manifest(folder)["engines"][engine]["options"] == NATURAL
    assert open_retriever({"engine": engine, **NATURAL}, folder) is open_retriever(engine, folder)
    build_index(CORPUS, folder, corpus="small", engine=engine)
    with pytest.raises(UsageError, match="overwrite"):
        build_index(CORPUS, folder, corpus="small", engine=engine, options={"title_weight": 2})
    with pytest.raises(UsageError, match="chosen when an index is built"):
        check_retriever({"engine": engine, "title_weight": 2}, folder)


@pytest.mark.parametrize(
    "options",
    [
        {"ranking": "best"}, {"title_weight": -1}, {"title_weight": True}, {"label_weight": "1"}, {"presence": 1},
        {"title_letters": 2.5}, {"k1": 1.2},
    ],
)  # fmt: skip
def test_wrong_options_are_errors(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        read_ranking(options)
    with pytest.raises(UsageError):
        check_retriever({"engine": "tantivy", **options})
    with pytest.raises(UsageError):
        build_index(CORPUS, tmp_path / "index", corpus="small", options=options)


def test_labels_are_the_words_before_a_colon_in_a_sentence() -> None:
    passage = Passage(
        "x", '"Mali: Economy"\nMali: Economy (2015). GDP (PPP): 3. Industries: food. At 10:30: rest; note: x'
    )
    assert RANKINGS["natural"].labels(passage) == "GDP (PPP) Industries"
    assert RankingOptions().labels(passage) == ""


# --- the natural questions on which the ranking was chosen

QUESTIONS = Path(__file__).parents[2] / "benchmarks" / "data" / "natural-questions.jsonl"
ROWS = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]


def test_the_halves_share_no_entity_and_are_of_the_validation_split() -> None:
    facts = graph().facts
    splits = {
        name: split
        for table in (facts.countries, facts.elements)
        for name, split in zip(table["name"], table["split"], strict=True)
    }
    assert len(ROWS) >= 600 and {splits[row["subject"]] for row in ROWS} == {VALIDATION}
    halves = {(row["subject"], row["half"]) for row in ROWS}
    assert len(halves) == len({subject for subject, _ in halves}) and len({row["question"] for row in ROWS}) == len(
        ROWS
    )


@pytest.mark.rotating
@pytest.mark.slow
def test_the_natural_ranking_finds_answers_of_the_other_half(engine: str) -> None:
    rows = [row for row in ROWS if row["half"] == "report"]
    hits = open_retriever({"engine": engine, **NATURAL}).search([row["question"] for row in rows], 3)
    gold = [[hit.passage.id in row["passages"] for hit in three] for row, three in zip(rows, hits, strict=True)]
    assert sum(any(found) for found in gold) >= 0.9 * len(rows)
    assert sum(found[:1] == [True] for found in gold) >= 0.75 * len(rows)


@pytest.mark.rotating
@pytest.mark.slow
def test_the_script_makes_the_questions_of_the_file() -> None:
    script = Path(__file__).parents[2] / "scripts" / "make_natural_questions.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, capture_output=True)
