import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.evaluators.base import Evaluator, FinishedEpisode, Verdict, score_all
from agentgym_envs.webarena.evaluators.state import (
    Added,
    OnlyChanged,
    QueryReturns,
    Removed,
    Updated,
    differences,
    match_pairs,
)
from tests.webarena.test_evaluators_answers import no_pages

SCHEMA = """
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INTEGER, views INTEGER);
CREATE TABLE lines (cart INTEGER, product INTEGER, quantity INTEGER, PRIMARY KEY (cart, product)) WITHOUT ROWID;
CREATE TABLE log (text TEXT);
CREATE VIRTUAL TABLE found USING fts5(name);
INSERT INTO products VALUES (1, 'Lamp', 12.5, 3, 0), (2, 'Desk', 99, 1, 0), (3, 'Rug', 40, 0, 0);
INSERT INTO lines VALUES (1, 1, 2), (1, 2, 1);
INSERT INTO log VALUES ('begun');
INSERT INTO found VALUES ('Lamp');
"""


@pytest.fixture
def before() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    yield connection
    connection.close()


@pytest.fixture
def after(before: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(before.serialize())
    connection.row_factory = sqlite3.Row  # as the sites use it
    yield connection
    connection.close()


@pytest.fixture
def verdict(before: sqlite3.Connection, after: sqlite3.Connection) -> Callable[[Evaluator], Verdict]:
    async def ask(evaluator: Evaluator) -> Verdict:
        return await evaluator(FinishedEpisode("", "", "", no_pages, database=after, before=before))

    return lambda evaluator: asyncio.run(ask(evaluator))


def test_query_results_are_compared(verdict: Callable[[Evaluator], Verdict]) -> None:
    query = "SELECT name, price FROM products WHERE price > ? ORDER BY price"
    rows = [("Rug", 40), ("Desk", 99.0)]
    assert verdict(QueryReturns(query, rows, [20], ordered=True)) == Verdict(1.0)
    assert verdict(QueryReturns(query, rows[::-1], [20])) == Verdict(1.0)
    assert verdict(QueryReturns(query, rows[::-1], [20], ordered=True)).score == 0.0
    assert verdict(QueryReturns(query, rows[:1], [20])).score == 0.0
    assert verdict(QueryReturns(query, [*rows, rows[0]], [20])).score == 0.0
    assert verdict(QueryReturns(query, [], [200])) == Verdict(1.0)
    assert verdict(QueryReturns("SELECT name FROM products WHERE id = 1", [("Lamb",)])) == Verdict(
        0.0, "SELECT name FROM products WHERE id = 1 gives ('Lamp'), not ('Lamb')"
    )


def test_expected_values_may_be_patterns_sets_or_approximate(
    verdict: Callable[[Evaluator], Verdict], after: sqlite3.Connection
) -> None:
    after.execute("UPDATE products SET name = ' Big \n lamp ', price = 0.1 + 0.2 WHERE id = 1")
    query = "SELECT name, price FROM products WHERE id = 1"
    assert verdict(QueryReturns(query, [("Big lamp", 0.3)])) == Verdict(1.0)
    assert verdict(QueryReturns(query, [(re.compile(r"(?i)big\s+LAMP"), {0.3, 0.4})])) == Verdict(1.0)
    assert verdict(QueryReturns(query, [(re.compile("lamp"), 0.3)])).score == 0.0
    assert verdict(QueryReturns("SELECT 1700000001", [(1700000000,)])).score == 0.0
    assert verdict(QueryReturns("SELECT '5'", [(5,)])).score == 0.0


def test_other_changes_of_a_database_score_0(
    verdict: Callable[[Evaluator], Verdict], after: sqlite3.Connection
) -> None:
    assert verdict(OnlyChanged()) == Verdict(1.0)
    after.execute("UPDATE products SET views = 1 WHERE id = 2")
    assert verdict(OnlyChanged()) == Verdict(0.0, "not asked for: products 2 changed views from 0 to 1")
    assert verdict(OnlyChanged(free=["products.views"])) == Verdict(1.0)
    after.execute("INSERT INTO log VALUES ('looked')")
    assert verdict(OnlyChanged(free=["products.views"])).reason == "not asked for: log got a row with text = 'looked'"
    assert verdict(OnlyChanged(free=["products.views", "log"])) == Verdict(1.0)


CHANGES: list[tuple[str, Added | Updated | Removed]] = [
    ("INSERT INTO lines VALUES (2, 3, 1)", Added("lines", {"cart": 2, "product": 3})),
    ("UPDATE products SET stock = 9 WHERE id = 1", Updated("products", {"id": 1}, {"stock": 9})),
    ("DELETE FROM lines WHERE product = 1", Removed("lines", {"product": 1})),
]


@pytest.mark.parametrize(("sql", "change"), CHANGES)
def test_expected_changes_score_1(
    sql: str, change: Any, verdict: Callable[[Evaluator], Verdict], after: sqlite3.Connection
) -> None:
    assert verdict(OnlyChanged([change])).reason.startswith("missing: ")
    after.execute(sql)
    assert verdict(OnlyChanged([change])) == Verdict(1.0)
    assert verdict(OnlyChanged()).reason.startswith("not asked for: ")
    after.execute("UPDATE products SET price = 0 WHERE id = 2")
    assert verdict(OnlyChanged([change])).reason == "not asked for: products 2 changed price from 99.0 to 0.0"


def test_an_update_of_other_columns_scores_0(
    verdict: Callable[[Evaluator], Verdict], after: sqlite3.Connection
) -> None:
    after.execute("UPDATE products SET stock = 9, price = 1 WHERE id = 1")
    assert verdict(OnlyChanged([CHANGES[1][1]])) == Verdict(
        0.0,
        "missing: stock = 9 in the row of products that had id = 1; "
        "not asked for: products 1 changed price from 12.5 to 1.0, stock from 3 to 9",
    )
    assert verdict(OnlyChanged([CHANGES[1][1]], free=["products.price"])) == Verdict(1.0)
    of_another = Updated("products", {"id": 2}, {"stock": 9})
    assert verdict(OnlyChanged([of_another], free=["products.price"])).score == 0.0


def test_changes_are_counted(verdict: Callable[[Evaluator], Verdict], after: sqlite3.Connection) -> None:
    twice = OnlyChanged([Added("log", {"text": "hello"}, count=2)])
    after.execute("INSERT INTO log VALUES ('hello')")
    assert verdict(twice).reason == "missing: a new row of log with text = 'hello'"
    after.execute("INSERT INTO log VALUES ('hello')")
    assert verdict(twice) == Verdict(1.0)
    after.execute("INSERT INTO log VALUES ('hello')")
    assert verdict(twice).reason == "not asked for: log got a row with text = 'hello'"


def test_a_general_expectation_does_not_block_a_specific_one(
    verdict: Callable[[Evaluator], Verdict], after: sqlite3.Connection
) -> None:
    after.execute("INSERT INTO log VALUES ('a'), ('b')")
    for expected in ([Added("log", {}), Added("log", {"text": "a"})], [Added("log", {"text": "b"}), Added("log", {})]):
        assert verdict(OnlyChanged(expected)) == Verdict(1.0)
    assert verdict(OnlyChanged([Added("log", {"text": "a"}), Added("log", {"text": "a"})])).score == 0.0


def test_full_text_indices_are_ignored(
    before: sqlite3.Connection, after: sqlite3.Connection, verdict: Callable[[Evaluator], Verdict]
) -> None:
    after.execute("INSERT INTO found VALUES ('Rug')")
    assert differences(before, after) == []
    after.execute("CREATE TABLE found_words (word TEXT)")  # an ordinary table, despite its name
    after.execute("INSERT INTO found_words VALUES ('Rug')")
    assert verdict(OnlyChanged()).reason == "not asked for: found_words got a row with word = 'Rug'"


def test_a_dropped_table_is_reported_by_its_lost_rows(
    after: sqlite3.Connection, verdict: Callable[[Evaluator], Verdict]
) -> None:
    after.execute("DROP TABLE log")
    assert verdict(OnlyChanged()).reason == "not asked for: log lost the row with text = 'begun'"


@pytest.mark.parametrize(
    "evaluator",
    [
        OnlyChanged([Added("product", {})]),
        OnlyChanged([Added("products", {"cost": 1})]),
        OnlyChanged([Updated("products", {"nr": 1}, {"stock": 1})]),
        OnlyChanged(free=["views"]),
        OnlyChanged(free=["products.seen"]),
        QueryReturns("SELECT nr FROM products", []),
    ],
)
def test_misspelt_names_are_usage_errors(evaluator: Evaluator, verdict: Callable[[Evaluator], Verdict]) -> None:
    with pytest.raises(UsageError, match=r"has no|failed: no such column"):
        verdict(evaluator)


def test_a_missing_database_is_a_usage_error() -> None:
    for evaluator in (QueryReturns("SELECT 1", [(1,)]), OnlyChanged()):
        with pytest.raises(UsageError, match="database, which the episode does not have"):
            asyncio.run(score_all([evaluator], FinishedEpisode("", "", "", no_pages)))


@given(st.lists(st.sets(st.integers(0, 5)), max_size=6), st.permutations(range(6)))
def test_match_pairs_finds_a_maximum_matching(fitting: list[set[int]], others: list[int]) -> None:
    pairs = match_pairs(fitting, others, lambda one, other: other in one)
    assert len(set(pairs.values())) == len(pairs)
    assert all(others[other] in fitting[one] for one, other in pairs.items())
    assert len(pairs) == _most(fitting, frozenset())


def _most(fitting: list[set[int]], used: frozenset[int]) -> int:
    if not fitting:
        return 0
    without = _most(fitting[1:], used)
    return max([without, *(1 + _most(fitting[1:], used | {other}) for other in fitting[0] - used)])


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 3)), st.dictionaries(st.integers(0, 9), st.integers(0, 3)))
def test_differences_turn_the_old_state_into_the_new_one(old: dict[int, int], new: dict[int, int]) -> None:
    with_old, with_new = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    for connection, rows in ((with_old, old), (with_new, new)):
        connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows.items())
    state = dict(old)
    for change in differences(with_old, with_new):
        state.pop(change.key, None)
        if change.after is not None:
            state[change.key] = change.after["v"]
    with_old.close()
    with_new.close()
    assert state == new
