"""Questions of several hops and chains of comparisons: every hop is needed, and the oracles find all pages."""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from agentgym_envs.search.corpus.values import accepted
from agentgym_envs.search.env import SearchEnv
from agentgym_envs.search.oracle import holds_answer
from agentgym_envs.search.pages_env import SearchPagesEnv
from agentgym_envs.search.questions.deep_questions import DEEP_KINDS, LARGER, LONGEST, SECOND, ask_chain
from agentgym_envs.search.questions.embedded import EmbeddedQuestions, table_of
from agentgym_envs.search.questions.fact_arrays import ATTRIBUTES, graph
from agentgym_envs.search.questions.question_types import COMPARED
from agentgym_envs.search.scoring import em
from agentgym_envs.task import SPLITS, Task

QUESTIONS = EmbeddedQuestions()
FACTS = graph().facts.countries
HOPS = {"4hop": {4}, "5hop": {5}, "6hop": {6}, "chain": {5, 7}}


def some(kind: str, count: int) -> Iterator[Task]:
    for split in SPLITS:
        yield from QUESTIONS.sample(count, split=split, groups=[kind], seed=4)


def neighbour(country: int | None, rank: int) -> int | None:
    """The neighbour by the length of the border, straight from the facts; None if there is none."""
    if country is None:
        return None
    ordered = sorted(FACTS["borders"][country], key=lambda pair: (-pair[1], pair[0]))
    return ordered[rank][0] if len(ordered) > rank else None


def ends(country: int | None, steps: Sequence[int], *, wrong: int | None = None) -> int | None:
    """The end of a route; the comparison number `wrong` is answered wrongly."""
    for number, step in enumerate(steps):
        if step in (LONGEST, SECOND):
            country = neighbour(country, step)
            continue
        one, other = neighbour(country, 0), neighbour(country, 1)
        if one is None or other is None:
            return None
        values = [FACTS[COMPARED[step - LARGER]][c] or 0 for c in (one, other)]
        country = one if (values[0] > values[1]) != (number == wrong) else other
    return country


def answers(country: int | None, attribute: int) -> list[str]:
    value = None if country is None else FACTS[ATTRIBUTES[attribute]][country]
    return accepted(ATTRIBUTES[attribute], value) if value else []


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", ["4hop", "5hop", "6hop"])
def test_no_shortcut_of_a_route_has_its_answer(kind: str) -> None:
    walk = graph()
    for task in some(kind, 25):
        _, (start, *steps), attribute = table_of(kind).at(int(task.id.rpartition("/")[2]))
        locations = walk.cities if task.data["passages"][0].startswith("city/") else walk.airports
        country = int(locations.country[start])
        assert answers(ends(country, steps), attribute) == task.data["answers"]
        others = [ends(country, steps[:n] + steps[n + 1 :]) for n in range(len(steps))]
        others += [ends(country, steps, wrong=n) for n, step in enumerate(steps) if step >= LARGER]
        others += [ends(country, steps[:n]) for n in range(len(steps))]
        for other in others:
            assert not any(em(answer, task.data["answers"]) for answer in answers(other, attribute)), task.id


def test_no_shortcut_of_a_chain_has_its_answer() -> None:
    walk = graph()
    for task in some("chain", 30):
        _, subjects, attribute = table_of("chain").at(int(task.id.rpartition("/")[2]))
        width = (len(subjects) + 1) // 2
        countries = [int(walk.cities.country[city]) for city in subjects[:width]]
        left = countries[0]
        for other, by in zip(countries[1:], subjects[width:], strict=True):
            left = max(left, other, key=lambda c: FACTS[COMPARED[by]][c])
        assert answers(neighbour(left, 0), attribute) == task.data["answers"]
        others = [*countries, *(neighbour(country, 0) for country in countries if country != left)]
        for one in others:
            assert not any(em(answer, task.data["answers"]) for answer in answers(one, attribute)), task.id


@pytest.mark.parametrize("kind", DEEP_KINDS)
def test_questions_name_no_answer_and_need_a_page_for_each_hop(kind: str) -> None:
    for task in some(kind, 60):
        known = [answer for answer in task.data["answers"] if len(answer) > 3]  # "at" is a word, and a domain
        assert not holds_answer(task.goal, known), task
        assert len(set(task.data["passages"])) == len(task.data["queries"]) in HOPS[kind]
        assert QUESTIONS.difficulty(task).turns == len(task.data["queries"]) + 1
        assert "{" not in task.goal and "  " not in task.goal


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "env"), product(DEEP_KINDS, (SearchEnv, SearchPagesEnv)))
def test_the_oracles_open_every_gold_page_and_solve(kind: str, env: type[SearchEnv]) -> None:
    with env(split=None) as made:
        for task in some(kind, 1):
            made.reset(options={"task": task.id})
            for action in made.oracle():
                *_, info = made.step(action)
            assert info["success"] and info["recall"] == 1.0, task.id


def test_a_chain_is_worded_with_all_of_its_cities() -> None:
    walk = graph()
    for task in some("chain", 30):
        question_type, subjects, _ = table_of("chain").at(int(task.id.rpartition("/")[2]))
        width = (len(subjects) + 1) // 2
        assert all(walk.facts.cities["name"][city] in task.goal for city in subjects[:width])
        assert question_type.ask.__qualname__ == ask_chain(width).__qualname__
