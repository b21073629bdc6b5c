"""Templates as values: functions that receive parameters by name, instances from queries, and steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.webarena.evaluators.state import Added, OnlyChanged
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import UNSCORED_TABLES, World, connect
from agentgym_envs.webarena.tasks.instances import choose, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.parameters import call_by_name
from agentgym_envs.webarena.tasks.steps import Solution, answer, click, do, expand, given, not_offered, play, type_text
from agentgym_envs.webarena.tasks.template import Template, starting_on

TREE = """\
[1] RootWebArea 'Forum'
	[2] link 'Boards'
	[3] searchbox 'Search' value: ''
	[4] DisclosureTriangle 'Menu' expanded: True
	[5] link 'tea'
	[6] button 'Upvote'
	[7] button 'Downvote'"""
PARAMS = {"title": "tea", "vote": "Upvote", "count": 3}
TASK: Callable[..., Template] = partial(
    Template,
    "code-and-forum",
    ("forum",),
    "forum-test",
    "change",
    "easy",
    intents=("{vote} {title} {count}",),
    instances=lambda: [PARAMS],
    expected=lambda: Added("votes", {}),
    solution=[click("link", "{title}"), click("button", "{vote}")],
)


@pytest.fixture
def page() -> PageReader:
    reader = PageReader()
    reader.look(TREE, "http://forum.test/")
    return reader


@pytest.fixture
def world() -> World:
    database = connect()
    database.execute(
        'CREATE TABLE boards AS SELECT value AS name, value < \'c\' AS open FROM json_each(\'["a","b","c"]\')'
    )
    return World(0, b"", database)


def played(solution: Solution, page: PageReader) -> list[str]:
    return list(play(solution, page, PARAMS))


def test_functions_receive_the_values_that_their_parameters_name() -> None:
    assert call_by_name(lambda count, title: (title, count), PARAMS) == ("tea", 3)
    assert call_by_name(lambda: 1, PARAMS) == 1
    with pytest.raises(TypeError, match="author"):
        call_by_name(lambda author: author, PARAMS)


def test_rows_are_instances_with_random_choices(world: World) -> None:
    query = "SELECT name AS board FROM boards WHERE open >= ?"
    assert list(rows(query, 1)(world, Random(1))) == [{"board": "a"}, {"board": "b"}]
    assert list(rows(query, lambda world: 1, text=["x"])(world, Random(1)))[1] == {"board": "b", "text": "x"}
    assert len(list(rows(query, 0, sample=2)(world, Random(1)))) == 2
    assert len(list(rows(query, 0, sample=9)(world, Random(1)))) == 3


def test_choose_repeats_and_draws_in_the_order_of_the_rows(world: World) -> None:
    boards = rows("SELECT name AS board FROM boards")
    drawn = Random(5)
    expected = [{"board": board, "n": drawn.choice(range(9))} for board in "aabbcc"]
    assert list(choose(boards, times=2, n=range(9))(world, Random(5))) == expected
    assert [row["board"] for row in choose(boards, rounds=2)(world, Random(5))] == list("abcabc")
    assert {"board": 0} in choose(boards, board=lambda world: [world.seed])(world, Random(5))
    assert list(choose(boards, text=())(world, Random(5))) == []


def test_steps_fill_in_the_parameters_and_the_last_one_stops(page: PageReader) -> None:
    opposite = {"Upvote": "Downvote"}
    steps = [type_text("Search", "{title}"), expand("Menu"), click("button", given(lambda vote: opposite[vote]))]
    assert played(steps, page) == ["type [3] [tea] [0]", "click [7]", "stop []"]
    assert played([answer("{vote}d {count}")], page) == ["stop [Upvoted 3]"]
    assert played([answer(lambda page, count: f"{page.url} {count}")], page) == ["stop [http://forum.test/ 3]"]


def test_a_step_takes_functions_mappings_and_the_result_before(page: PageReader) -> None:
    def read(page: PageReader, values: dict[str, str], number: int) -> Steps[list[str]]:
        yield page.click("link", "Boards")
        return [*values.values(), str(number)]

    steps: Solution = [do(read, {"Title": "{title}"}, 7), answer(lambda found, vote: [*found, vote])]
    assert played(steps, page) == ["click [2]", "stop [['tea', '7', 'Upvote']]"]


def test_a_solution_may_be_a_function_that_returns_the_answer(page: PageReader) -> None:
    def solve(page: PageReader, title: str, count: int) -> Steps[int]:
        yield page.click("link", title)
        return count + 1

    assert played(solve, page) == ["click [5]", "stop [4]"]


def test_not_offered_answers_only_if_the_page_lacks_the_element(page: PageReader) -> None:
    assert played([not_offered("link", "{vote}")], page) == ["stop [N/A]"]
    with pytest.raises(NoOracle, match="link"):
        played([not_offered("link", "{title}")], page)


def test_a_single_step_as_the_mistake_replaces_the_last_one(page: PageReader) -> None:
    def wrong(**more: Any) -> list[str] | None:
        commands = TASK(**more).wrong(page, PARAMS)
        return None if commands is None else list(commands)

    assert wrong() is None
    assert wrong(mistake=click("button", "Downvote")) == ["click [5]", "click [7]", "stop []"]
    assert wrong(mistake=[answer("Done")]) == ["stop [Done]"]
    with pytest.raises(UsageError, match="forum-test"):
        wrong(solution=lambda page: iter(()), mistake=answer("Done"))


def test_expected_changes_and_evaluators_become_evaluators(world: World) -> None:
    def evaluators(expected: Any, **more: Any) -> Any:
        return TASK(expected=expected, **more).evaluators(world, PARAMS)

    vote, ends = Added("votes", {"title": "tea"}), EndsOn("http://forum.test/3")
    assert evaluators(lambda world, title: Added("votes", {"title": title})) == [OnlyChanged((vote,), UNSCORED_TABLES)]
    changed = OnlyChanged((vote,), (*UNSCORED_TABLES, "log"))
    assert evaluators(lambda params: iter([ends, vote]), free=("log",)) == [changed, ends]
    assert evaluators(lambda count: EndsOn(f"http://forum.test/{count}")) == [ends]


def test_start_pages_are_the_front_page_one_or_several(world: World) -> None:
    assert TASK().start_urls(world, PARAMS) == ["http://forum.test/"]
    assert TASK(start=lambda title: f"http://forum.test/{title}").start_urls(world, PARAMS) == ["http://forum.test/tea"]
    assert TASK(start=lambda world, count: [str(count), str(world.seed)]).start_urls(world, PARAMS) == ["3", "0"]


def test_solutions_do_not_get_the_parameters_of_the_start_page(page: PageReader) -> None:
    hidden = TASK(start=lambda title: title, intents=("{vote} this",), solution=[answer(lambda params: [*params])])
    assert list(hidden.oracle(page, PARAMS)) == ["stop [['vote']]"]
    with pytest.raises(KeyError, match="title"):
        list(TASK(start=lambda title: title, intents=("{vote} this",)).oracle(page, PARAMS))


def test_a_variant_starts_where_the_first_steps_of_a_template_lead(page: PageReader) -> None:
    def variant(template: Template, **more: Any) -> Template:
        return starting_on(lambda title: title, template, "{vote} this {count}", **more)

    base = TASK(mistake=[click("link", "{title}"), click("button", "Downvote")])
    made = variant(base)
    assert (made.name, made.since, made.instances) == ("forum-test-here", 2, base.instances)
    assert list(made.oracle(page, PARAMS)) == ["click [6]", "stop []"]
    assert list(made.wrong(page, PARAMS) or ()) == ["click [7]", "stop []"]
    led = variant(base, lead=[click("link", "Boards")])
    assert list(led.wrong(page, PARAMS) or ()) == ["click [2]", "click [7]", "stop []"]
    other = variant(base, solution=[answer("{count}")], name="forum-other", difficulty="hard")
    assert (other.name, other.difficulty, list(other.oracle(page, PARAMS))) == ("forum-other", "hard", ["stop [3]"])
    with pytest.raises(UsageError, match="forum-test"):
        variant(TASK(solution=lambda page: iter(())))
