import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.search.corpus.embedded import embedded_index, embedded_passages
from agentgym_envs.search.corpus.pages import country_id
from agentgym_envs.search.questions.deep_questions import DEEP_KINDS
from agentgym_envs.search.questions.embedded import KINDS, EmbeddedQuestions, table_of
from agentgym_envs.search.questions.fact_arrays import graph
from agentgym_envs.search.retrieval.base import Retriever
from agentgym_envs.search.retrieval.index import open_index
from agentgym_envs.search.scoring import normalise
from agentgym_envs.task import SPLITS, Task
from tests.trying import examples

QUESTIONS = EmbeddedQuestions()
ON_A_PAGE = [kind for kind in KINDS if kind not in ("count", "sum", "difference", "ambiguous")]
kinds, splits = st.sampled_from(list(KINDS)), st.sampled_from(SPLITS)


@pytest.fixture(scope="session")
def retriever() -> Iterator[Retriever]:
    found = open_index(embedded_index())
    yield found
    found.close()


def some(count: int, **selection: str) -> list[Task]:
    """Return some tasks of each kind and split."""
    return [
        task
        for kind, split in product(KINDS, SPLITS)
        for task in QUESTIONS.sample(min(count, QUESTIONS.counts()[kind][split]), split=split, groups=[kind], seed=1)
    ]


def test_every_kind_has_questions_in_every_split() -> None:
    counts = QUESTIONS.counts()
    assert tuple(counts) == QUESTIONS.groups == tuple(KINDS)
    assert all(number >= 45 for of_kind in counts.values() for number in of_kind.values())
    assert sum(sum(of_kind.values()) for of_kind in counts.values()) > 450_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in ON_A_PAGE if kind not in ("1hop-airport", "1hop-element")])
def test_no_country_has_a_large_share(kind: str) -> None:
    for split in SPLITS:
        size = min(3_000, QUESTIONS.counts()[kind][split])
        tasks = QUESTIONS.sample(size, split=split, groups=[kind], seed=9)
        last = Counter(task.data["passages"][-1] for task in tasks) if kind != "compare" else Counter()
        most = 0.11 if kind not in DEEP_KINDS else 0.25  # long routes end in few countries
        assert max(last.values(), default=0) <= most * size, (split, last.most_common(3))


def test_counts_are_hard_to_guess() -> None:
    tasks = QUESTIONS.sample(1_500, groups=["count"], seed=9)
    answers = Counter(task.data["answers"][0] for task in tasks)
    assert len(answers) > 10 and max(answers.values()) <= 0.2 * len(tasks)


def test_questions_are_complete_sentences_with_answers() -> None:
    for task in some(25):
        assert task.goal[0].isupper() or not task.goal[0].isascii(), task.goal
        assert task.goal[-1] in "?." and "{" not in task.goal and "  " not in task.goal
        assert (
            ".." not in task.goal and " the the " not in task.goal and task.goal.lower().count("airport airport") == 0
        )
        answers = task.data["answers"]
        assert answers and len(set(answers)) == len(answers) and all(normalise(answer) for answer in answers)
        assert len(task.data["passages"]) == len(task.data["queries"]) == len(set(task.data["passages"]))
        json.dumps(task.data)


def test_tasks_can_be_looked_up_by_their_ids() -> None:
    for task in some(3):
        assert QUESTIONS.get(task.id) == task
    first = QUESTIONS.get("search/1hop-country/0")
    assert first.data["passages"] == ["country/andorra"] and first.split == "train"


@pytest.mark.parametrize(
    "id",
    ["search/1hop-country/007", "search/1hop-country/+7", "search/1hop-country/-1", "search/1hop-country/9999999",
     "search/none/1", "search/1hop-country", "searchqa/1", "search/1hop-country/7/", "", None, 7],
)  # fmt: skip
def test_other_ids_are_unknown(id: str) -> None:
    with pytest.raises(UnknownTask):
        QUESTIONS.get(id)


@given(key=st.integers(0, 2**70), split=st.none() | splits, kind=st.none() | kinds)
@examples(200)
def test_draw_respects_its_selection(key: int, split: str | None, kind: str | None) -> None:
    groups = None if kind is None else [kind]
    task = QUESTIONS.draw(key, split=split, groups=groups)
    assert task == QUESTIONS.draw(key, split=split, groups=groups) == QUESTIONS.get(task.id)
    assert split in (None, task.split) and kind in (None, task.group)


def test_draw_is_uniform_over_kinds() -> None:
    drawn = [QUESTIONS.draw(key, split="train").group for key in range(3_600)]
    assert all(140 <= drawn.count(kind) <= 260 for kind in KINDS)


def test_sample_is_even_distinct_and_in_order() -> None:
    tasks = QUESTIONS.sample(180, split="test", seed=3)
    assert [task.id for task in tasks] != [task.id for task in QUESTIONS.sample(180, split="test", seed=4)]
    assert len({task.id for task in tasks}) == 180
    assert all(sum(task.group == kind for task in tasks) == 10 for kind in KINDS)
    order = [(list(KINDS).index(task.group), int(task.id.rpartition("/")[2])) for task in tasks]
    assert order == sorted(order)
    elements = QUESTIONS.sample(None, groups=["1hop-element"])
    assert [task.id for task in elements] == [f"search/1hop-element/{number}" for number in range(len(elements))]
    with pytest.raises(UsageError, match="only"):
        QUESTIONS.sample(1_000, split="test", groups=["1hop-element"])
    with pytest.raises(UsageError):
        QUESTIONS.sample(-1)
    assert QUESTIONS.sample(0) == []


@pytest.mark.slow
def test_the_questions_are_those_of_version_3() -> None:
    assert QUESTIONS.digest == "7dadec7906ccc843f3d5be296d25b848bcf1b77e47a176636b8ed30fd8e5351b", "raise VERSION"


@pytest.mark.slow
def test_version_2_is_version_3_without_the_kinds_of_several_hops() -> None:
    old = EmbeddedQuestions(version=2)
    assert old.digest == "1012713979558f687816efd1909a10243d5f4ca5720d5a4281d6455b04c23463"
    assert set(old.groups) == set(KINDS) - set(DEEP_KINDS)
    for task in old.sample(140, seed=1):
        assert QUESTIONS.get(task.id) == task
    with pytest.raises(UnknownTask):
        old.get("search/4hop/0")


@pytest.mark.slow
def test_the_digest_depends_on_the_kinds_and_not_on_the_process() -> None:
    code = (
        "from agentgym_envs.search.questions.embedded import EmbeddedQuestions as Q\n"
        "q = Q(); print(q.digest, [q.draw(t) for t in range(30)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1 and QUESTIONS.digest.encode() in outputs.pop()
    assert EmbeddedQuestions(["2hop-city"]).digest != QUESTIONS.digest


def splits_of(kind: str) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the split of each question, and the splits of its countries where they are known."""
    table = table_of(kind)
    walk = graph()
    for number in range(0, len(table.split), max(1, len(table.split) // 2_000)):
        task = QUESTIONS.get(f"search/{kind}/{number}")
        pages = [page for page in task.data["passages"] if page.startswith("country/")]
        yield int(table.split[number]), tuple(walk.split[COUNTRY_OF[page]] for page in pages)


COUNTRY_OF = {
    "country/" + "-".join("".join(c if c.isalnum() or c == "_" else " " for c in name.lower()).split()): index
    for index, name in enumerate(graph().facts.countries["name"])
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in ON_A_PAGE if kind not in ("1hop-airport", "1hop-element")])
def test_train_questions_use_train_entities_only(kind: str) -> None:
    for split, others in splits_of(kind):
        if split == 0:
            assert set(others) == {0}
        elif split == 1:
            assert 1 in others and 2 not in others
        else:
            assert 2 in others
        if kind not in ("compare",):
            assert others[-1] == split


@pytest.mark.rotating
@pytest.mark.slow
def test_no_test_answer_is_a_train_answer() -> None:
    """A test question never asks for the same attribute of the same entity as a train question."""
    questions: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for kind, split in product(ON_A_PAGE, SPLITS):
        size = min(3_000, QUESTIONS.counts()[kind][split])
        for task in QUESTIONS.sample(size, split=split, groups=[kind], seed=2):
            page = task.data["passages"][-1] if kind != "compare" else "compare"
            _, _, attribute = table_of(kind).at(int(task.id.rpartition("/")[2]))
            if kind not in ("1hop-airport", "1hop-element"):
                questions[task.split].add((f"{attribute}", task.data["answers"][0]))
            else:
                questions[task.split].add((f"{kind}{attribute}{page}", task.data["answers"][0]))
    assert not questions["test"] & questions["train"] and not questions["validation"] & questions["train"]


@pytest.mark.slow
def test_the_last_passage_contains_the_answer() -> None:
    contents = {passage.id: passage.contents for passage in embedded_passages()}
    for kind in ON_A_PAGE:
        size = sum(QUESTIONS.counts()[kind].values())
        for task in QUESTIONS.sample(min(size, 600), groups=[kind], seed=5):
            pages = task.data["passages"] if kind == "compare" else task.data["passages"][-1:]
            assert any(task.data["answers"][0] in contents[page] for page in pages), task


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize("kind", KINDS)
def test_the_oracles_queries_find_every_gold_passage(kind: str, retriever: Retriever) -> None:
    size = sum(QUESTIONS.counts()[kind].values())
    tasks = QUESTIONS.sample(size if size < 3_000 else 800, groups=[kind], seed=6)
    queries = [query for task in tasks for query in task.data["queries"]]
    gold = [page for task in tasks for page in task.data["passages"]]
    for query, page, hits in zip(queries, gold, retriever.search(queries, 3), strict=True):
        assert page in [hit.passage.id for hit in hits], query


NATURAL = {
    "capital": ["capital of {}"],
    "anthem": ["{} national anthem", "what is the national anthem of {}"],
    "independence": ["{} independence date", "when did {} become independent, date of independence"],
    "holiday": ["{} national day", "{} national holiday date"],
    "population": ["{} population 2015", "population of {}"],
    "area": ["{} total area", "{} area square kilometres"],
    "currency": ["{} currency"],
    "peak": ["highest point of {}"],
    "tld": ["{} top-level domain"],
    "phone": ["{} calling code"],
    "life": ["{} life expectancy"],
    "coast": ["{} coastline length"],
    "border": ["{} land boundaries", "length of the land borders of {}"],
    "roads": ["length of roads in {}"],
    "rail": ["{} railways km"],
}
"""Queries that people would write, by the attribute they look for."""


@pytest.mark.slow
@pytest.mark.parametrize("wanted", NATURAL)
def test_natural_queries_find_the_page(wanted: str, retriever: Retriever) -> None:
    facts = graph().facts
    known = [index for index, value in enumerate(facts.countries[wanted]) if value]
    for form in NATURAL[wanted]:
        found = retriever.search([form.format(facts.countries["name"][index]) for index in known], 3)
        hits = [country_id(facts, index) in [h.passage.id for h in s] for index, s in zip(known, found, strict=True)]
        assert sum(hits) >= 0.9 * len(hits), (form, sum(hits), len(hits))


@pytest.mark.slow
def test_every_name_in_questions_is_found(retriever: Retriever) -> None:
    walk = graph()
    pages = [walk.city_page(int(index)) for index in walk.cities.limited()[::4]]
    pages += [walk.airport_page(int(index)) for index in walk.airports.limited()[::4]]
    for (page, query), hits in zip(pages, retriever.search([query for _, query in pages], 3), strict=True):
        assert page in [hit.passage.id for hit in hits], query


def skeleton(goal: str, names: set[str]) -> str:
    """Return the question with names replaced by X."""
    return " ".join("X" if word.strip('?.,:"') in names or not word.islower() else word for word in goal.split())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_many_wordings(kind: str) -> None:
    tasks = QUESTIONS.sample(min(600, sum(QUESTIONS.counts()[kind].values())), groups=[kind], seed=8)
    words = {word for task in tasks for word in task.goal.split()}
    shapes = {skeleton(task.goal, {word for word in words if not word.islower()}) for task in tasks}
    assert len(shapes) >= 40
