"""The facts of version 2: valid by pattern and range, without known errors, and version 1 as it was."""

import hashlib
import re
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.core import text_env
from agentgym_envs.corpus.corrections import KEYS, corrections
from agentgym_envs.corpus.facts import page_facts, world_facts
from agentgym_envs.corpus.validation import VALIDATORS, find_validators, is_cas_number, is_date
from agentgym_envs.errors import UsageError
from agentgym_envs.search.corpus.pages import embedded_passages
from agentgym_envs.search.questions.embedded import EmbeddedQuestions, table_of
from agentgym_envs.search.questions.fact_arrays import graph
from agentgym_envs.search.questions.question_types import AIRPORT, ELEMENT


def invalid_answers(version: int) -> list[tuple[str, Any]]:
    """Return the attribute and the value of every answer that breaks a rule."""
    facts = world_facts(version)
    asked: list[tuple[str, str, Any]] = []
    for index, names in enumerate(facts.countries["ask"]):
        asked += [("countries", name, facts.countries[name][index]) for name in names]
    for index, bits in enumerate(facts.airports["ask"]):
        usable = facts.airports["use"][index]
        asked += [("airports", n, facts.airports[n][index]) for i, n in enumerate(AIRPORT) if usable and bits >> i & 1]
    for name in ELEMENT:
        asked += [("elements", name, value) for value in facts.elements.get(name, ())]
    asked += [
        ("cities", "population", n)
        for n, use in zip(facts.cities["population"], facts.cities["use"], strict=True)
        if use
    ]
    rules = {(table, name): find_validators(table, name) for table, name, _ in asked}
    assert all(rules.values()), rules
    return [(name, value) for table, name, value in asked if not all(r.valid(value) for r in rules[table, name])]


def test_no_question_has_an_invalid_answer() -> None:
    assert invalid_answers(2) == []


def test_the_rules_find_the_false_codes_of_version_1() -> None:
    found = invalid_answers(1)
    assert sum(name == "icao" for name, _ in found) > 100 and {name for name, _ in found} >= {"icao"}


def test_every_statement_of_a_page_is_valid() -> None:
    facts, pages = world_facts()._asdict(), page_facts()
    for table, field, rule, valid in VALIDATORS:
        columns = {**facts[table], **pages.get(table, {})}
        zones = columns["zones"] if (table, field) == ("cities", "zone") else None
        for value in columns[field]:
            known = zones[value] if zones and value >= 0 else None if zones else value
            assert known in (None, "") or valid(known), (table, field, rule, known)


def test_corrections_change_only_the_named_values() -> None:
    before, after = world_facts(1)._asdict(), world_facts(2)._asdict()
    derived = {"use", "ask", "shown", "capital_city"}
    named = {(row.table, row.key, row.field) for row in corrections().rows}
    assert len(named) == len(corrections().rows)
    assert {row.rule for row in corrections().rows} == set(corrections().rules)
    for table, key in KEYS.items():
        for field, column in before[table].items():
            pairs = zip(before[table][key], column, after[table][field], strict=False) if field != "zones" else ()
            assert {(table, name, field) for name, old, new in pairs if old != new and field not in derived} <= named
    assert all(row.key in before[row.table][KEYS[row.table]] for row in corrections().rows)


def test_known_errors_are_gone() -> None:
    facts, pages = world_facts(), page_facts()
    symbols, elements = facts.elements["symbol"], pages["elements"]
    assert elements["discoverers"][symbols.index("Fr")] == "Marguerite Perey"
    assert "252 years" not in elements["description"][symbols.index("Pm")]
    assert "1.6" not in elements["description"][symbols.index("Db")]
    assert not any(re.search(r"[Ff]redrich|Priestly|platinumpy", text) for column in elements.values() for text in
                   column if isinstance(text, str))  # fmt: skip
    shown = dict(zip(facts.countries["iso"], facts.countries["shown"], strict=True))
    assert [iso for iso, page in shown.items() if not page] == ["AN", "CS"]
    assert all(re.fullmatch("[A-Z]{4}|", code) for code in facts.airports["icao"])


@pytest.mark.parametrize(("value", "right"), [("7440-48-4", True), ("7440-48-5", False), ("744048-4", False)])
def test_cas_numbers_have_a_check_digit(value: str, right: bool) -> None:
    assert is_cas_number(value) == right


@pytest.mark.parametrize(("value", "right"), [([29, 2, 2000], True), ([29, 2, 1900], False), ([31, 4, "Day"], False)])
def test_dates_are_those_of_the_calendar(value: list[Any], right: bool) -> None:
    assert is_date(value) == right


@pytest.mark.slow
def test_version_1_is_as_it_was() -> None:
    passages = hashlib.sha256(repr(list(embedded_passages(1))).encode()).hexdigest()
    assert passages == "d32acc3ed06122a5784395f1f46bd6e5accace1582512511489145b38ccf06fc"
    assert EmbeddedQuestions(version=1).digest == "8f83deb4bce28fb76eb6ffd77cef2d8af2610bc9fc96a8fdee6ff7bd566dfebd"


def test_an_environment_takes_a_version_of_the_table() -> None:
    envs = [text_env(gym.make("AgentGym/Search-v0", table_version=version)) for version in (1, None)]
    assert [env.tasks.version for env in envs] == [1, 3]
    assert len(table_of("1hop-airport", 1).split) > len(table_of("1hop-airport", 2).split)
    assert graph(1).airports.usable.size > graph(2).airports.usable.size
    for options in ({"table_version": 9}, {"table_version": "1"}, {"table_version": 1, "questions": "x.jsonl"}):
        with pytest.raises(UsageError, match="version"):
            gym.make("AgentGym/Search-v0", **options)
