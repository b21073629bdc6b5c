"""Test that the embedded questions need searching, and that searching suffices.

    python -m benchmarks.search_need [--count 300] [--out benchmarks/results/search-need.json]

For test questions of each kind, with the default engine and the three best passages:
- the question itself as the only query: is the first gold passage found, are all of them;
- "one search": the answer of a perfect reader after that one query. It is right if all gold passages are found;
  otherwise the reader takes the value from the best page that has one;
- "oracle": one query per hop: are all gold passages found, and does the environment reward its answer;
- "guess": the most frequent answer among the train questions about the same attribute;
- "test guess": the same with the answers of the test questions.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table

import agentgym_envs
from agentgym_envs.search.corpus.embedded import embedded_index
from agentgym_envs.search.corpus.pages import airport_id, city_id, country_id, element_id
from agentgym_envs.search.corpus.values import accepted
from agentgym_envs.search.questions.aggregate_questions import ask_namesake
from agentgym_envs.search.questions.embedded import EmbeddedQuestions, table_of
from agentgym_envs.search.questions.fact_arrays import ATTRIBUTES, graph
from agentgym_envs.search.questions.question_types import AIRPORT, ELEMENT
from agentgym_envs.search.retrieval.base import Hit
from agentgym_envs.search.retrieval.index import open_index
from agentgym_envs.search.scoring import em
from agentgym_envs.task import Split, Task
from benchmarks.common import machine

TOP = 3
TRAIN = 4_000
ON_NO_PAGE = ("count", "sum", "difference")


class Reader:
    """Reads any attribute off any page, as the facts have it."""

    def __init__(self) -> None:
        facts = graph().facts
        self.countries = {country_id(facts, i): i for i in range(len(facts.countries["iso"]))}
        self.cities = {city_id(facts, i): i for i in range(len(facts.cities["id"]))}
        self.airports = {airport_id(facts, i): i for i in range(len(facts.airports["iata"]))}
        self.elements = {element_id(facts, i): i for i in range(len(facts.elements["name"]))}
        self.facts = facts

    def answer(self, task: Task, hits: Sequence[Hit]) -> str:
        """The answer after one search for the question."""
        found = [hit.passage.id for hit in hits]
        if set(task.data["passages"]) <= set(found):
            return str(task.data["answers"][0])
        return next((value for id in found if (value := self.read(task, id))), "")

    def read(self, task: Task, id: str) -> str:
        """The value on a page that the question asks for, if any."""
        form, _, attribute = table_of(task.group).at(int(task.id.rpartition("/")[2]))
        if task.group in ON_NO_PAGE:
            return ""
        if task.group == "ambiguous":
            return self.value(self.facts.cities, "population", self.cities.get(id)) if form.ask is ask_namesake else ""
        if task.group == "1hop-airport":
            return self.value(self.facts.airports, AIRPORT[attribute], self.airports.get(id))
        if task.group == "1hop-element":
            index = self.elements.get(id)
            name = ELEMENT[attribute]
            return str((index or 0) + 1) if name == "number" else self.value(self.facts.elements, name, index)
        return self.value(self.facts.countries, ATTRIBUTES[attribute], self.countries.get(id))

    def value(self, columns: Any, name: str, index: int | None) -> str:
        if index is None or not columns[name][index]:
            return ""
        return accepted(name, columns[name][index])[0]


def guesses(questions: EmbeddedQuestions, kind: str, split: Split) -> dict[Any, str]:
    """For each attribute of a kind its most frequent answer in a split."""
    size = questions.counts()[kind][split]
    found: defaultdict[Any, Counter[str]] = defaultdict(Counter)
    for task in questions.sample(min(size, TRAIN), split=split, groups=[kind]):
        found[asked_for(task)][task.data["answers"][0]] += 1
    return {key: counts.most_common(1)[0][0] for key, counts in found.items()}


def asked_for(task: Task) -> Any:
    form, _, attribute = table_of(task.group).at(int(task.id.rpartition("/")[2]))
    return form.ask, attribute if task.group not in ("count", "ambiguous") else 0  # there no attribute is asked for


def measure_kind(questions: EmbeddedQuestions, kind: str, count: int, reader: Reader, env: Any) -> dict[str, Any]:
    retriever = open_index(embedded_index())
    tasks = questions.sample(min(count, questions.counts()[kind]["test"]), split="test", groups=[kind])
    known, leaked = guesses(questions, kind, "train"), guesses(questions, kind, "test")
    sums: Counter[str] = Counter()
    for task, hits in zip(tasks, retriever.search([task.goal for task in tasks], TOP), strict=True):
        gold, found = task.data["passages"], [hit.passage.id for hit in hits]
        sums["first"] += gold[0] in found
        sums["all"] += set(gold) <= set(found)
        sums["one_search"] += em(reader.answer(task, hits), task.data["answers"])
        hops = retriever.search(task.data["queries"], TOP)
        sums["oracle_all"] += all(id in {h.passage.id for h in hop} for id, hop in zip(gold, hops, strict=True))
        sums["oracle"] += play(env, task)
        sums["guess"] += em(known.get(asked_for(task), ""), task.data["answers"])
        sums["test_guess"] += em(leaked.get(asked_for(task), ""), task.data["answers"])
    names = ("first", "all", "one_search", "oracle_all", "oracle", "guess", "test_guess")
    return {"kind": kind, "tasks": len(tasks), **{name: sums[name] / len(tasks) for name in names}}


def play(env: Any, task: Task) -> bool:
    """True if the oracle's commands solve a task."""
    env.reset(options={"task": task.id})
    info: dict[str, Any] = {"success": False}
    for command in env.unwrapped.oracle():
        *_, info = env.step(command)
    return bool(info["success"])


def measure(count: int) -> list[dict[str, Any]]:
    questions, reader = EmbeddedQuestions(), Reader()
    env = gym.make("AgentGym/Search-v0", split=None)
    assert isinstance(env.unwrapped, agentgym_envs.TextEnv)
    return [measure_kind(questions, kind, count, reader, env) for kind in questions.groups]


def show(rows: list[dict[str, Any]]) -> None:
    shown = Table(title=f"Test questions, the {TOP} best passages, shares in %")
    for column in (
        "kind",
        "tasks",
        "first gold",
        "all gold",
        "one search",
        "oracle: all gold",
        "oracle",
        "guess",
        "test guess",
    ):
        shown.add_column(column, justify="left" if column == "kind" else "right")
    for row in rows:
        values = [f"{100 * value:.1f}" for name, value in row.items() if name not in ("kind", "tasks")]
        shown.add_row(row["kind"], str(row["tasks"]), *values)
    Console(width=120).print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="questions of a kind (default: 300)")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.count)
    show(rows)
    if arguments.out:
        result = {"machine": machine(), "top": TOP, "rows": rows}
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
