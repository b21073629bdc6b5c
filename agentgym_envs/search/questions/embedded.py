"""`EmbeddedQuestions`: the questions over the embedded corpus, made one by one as they are asked for."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.errors import UnknownTask
from agentgym_envs.search.corpus.facts import data_digest
from agentgym_envs.search.questions import aggregate_questions, question_types
from agentgym_envs.search.questions.fact_arrays import graph
from agentgym_envs.search.questions.question_types import Form, Rows, Wording
from agentgym_envs.task import (
    SPLITS,
    Split,
    Task,
    TaskSet,
    canonical_hash,
    check_count,
    check_selection,
    in_order,
    plain_number,
    scramble,
)

KINDS: dict[str, tuple[Form, ...]] = {
    "1hop-country": (Form(question_types.countries_alone, question_types.ask_country),),
    "1hop-airport": (Form(question_types.airports_alone, question_types.ask_airport),),
    "1hop-element": (Form(question_types.elements_alone, question_types.ask_element),),
    "2hop-border": (Form(question_types.neighbours, question_types.ask_neighbour),),
    "2hop-airport": (
        Form(question_types.from_places(lambda graph: graph.airports, 1, 99), question_types.ask_from_airport),
    ),
    "2hop-city": (Form(question_types.from_places(lambda graph: graph.cities, 1, 99), question_types.ask_from_city),),
    "3hop-airport": (
        Form(question_types.from_places(lambda graph: graph.airports, 2, 6), question_types.ask_beyond_airport),
    ),
    "3hop-city": (Form(question_types.from_places(lambda graph: graph.cities, 2, 2), question_types.ask_beyond_city),),
    "compare": (
        Form(question_types.compared_countries, question_types.ask_compared_countries),
        Form(question_types.compared_by_city, question_types.ask_compared_by_city),
        Form(question_types.compared_airports, question_types.ask_compared_airports),
    ),
    "order": (
        Form(question_types.ordered_cities, question_types.ask_ordered_cities),
        Form(question_types.ordered_airports, question_types.ask_ordered_airports),
    ),
    "count": (
        Form(aggregate_questions.neighbour_counts, aggregate_questions.ask_neighbour_count),
        Form(aggregate_questions.city_counts, aggregate_questions.ask_city_count),
        Form(aggregate_questions.airport_counts, aggregate_questions.ask_airport_count),
        Form(aggregate_questions.airports_above, aggregate_questions.ask_airports_above),
    ),
    "sum": (
        Form(aggregate_questions.city_sums, aggregate_questions.ask_city_sum),
        Form(aggregate_questions.country_sums, aggregate_questions.ask_country_sum),
    ),
    "difference": (
        Form(aggregate_questions.airport_gaps, aggregate_questions.ask_airport_gap),
        Form(aggregate_questions.city_gaps, aggregate_questions.ask_city_gap),
        Form(aggregate_questions.country_gaps, aggregate_questions.ask_country_gap),
    ),
    "ambiguous": (
        Form(aggregate_questions.twins, aggregate_questions.ask_twin),
        Form(aggregate_questions.twins_apart, aggregate_questions.ask_twins_apart),
    ),
}
"""The kinds of questions, which are the groups, each of one or several forms."""
VERSION = 1
_SAMPLE = 40
"""How many questions of a kind its digest looks at as a whole."""


class EmbeddedQuestions(TaskSet):
    """The tasks `search/<kind>/<number>`; a number counts the questions of a kind, whatever their split.

    Splits go by entity: every country has one, and what lies in it follows it. A question of train is about entities of
    train alone; the answer of one of test belongs to an entity of test (where it is made of several, one of them is),
    though others on the way may be of train; the same holds for validation, without entities of test. `data` holds
    `answers` (the canonical one first), `passages` (ids, in order of the hops) and `queries` (one for each of them).
    """

    name, version = "search", VERSION

    def __init__(self, chosen: Sequence[str] = tuple(KINDS)) -> None:
        """`chosen`: the kinds that are drawn from and taken."""
        self._kinds = tuple(kind for kind in KINDS if kind in chosen)

    def __reduce__(self) -> tuple[Any, ...]:
        return EmbeddedQuestions, (self._kinds,)

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask, also for a number written another way."""
        parts = task_id.split("/") if isinstance(task_id, str) else []
        if len(parts) != 3 or parts[0] != self.name or parts[1] not in KINDS:
            raise UnknownTask(
                f"there is no task {task_id!r:.120}; ids are '{self.name}/<kind>/<number>', for example "
                f"'{self.name}/{self._kinds[0]}/0', with the kinds {', '.join(KINDS)}"
            )
        number, count = plain_number(parts[2]), len(table_of(parts[1]).split)
        if not 0 <= number < count:
            raise UnknownTask(f"there is no task {task_id!r:.120}; {parts[1]} has the numbers 0 to {count - 1}")
        return _task(parts[1], number)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """A kind by one part of a hash of `key`, a question by the other."""
        chosen = self._chosen(split, groups)
        rest, place = divmod(scramble(key), len(chosen))
        numbers = _numbers(chosen[place], split)
        return _task(chosen[place], int(numbers[rest % len(numbers)]))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` questions, as evenly from the kinds as their numbers allow, in table order."""
        chosen = self._chosen(split, groups)
        sizes = [len(_numbers(kind, split)) for kind in chosen]
        shares = _share(check_count(self.name, count, sum(sizes)), sizes)
        rng = random.Random(seed)
        return [
            _task(kind, int(_numbers(kind, split)[place]))
            for kind, size, share in zip(chosen, sizes, shares, strict=True)
            for place in sorted(rng.sample(range(size), share))
        ]

    @property
    def groups(self) -> tuple[str, ...]:
        """The kinds."""
        return self._kinds

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the facts, of what every question of the kinds is about, and of some questions as a whole."""
        rows = [[kind, table_of(kind).digest(), *_some(kind)] for kind in self._kinds]
        return canonical_hash([self.name, self.version, data_digest("world.json.xz"), rows])

    def counts(self) -> dict[str, dict[Split, int]]:
        """How many questions there are of each kind in each split."""
        return {kind: {split: len(_numbers(kind, split)) for split in SPLITS} for kind in self._kinds}

    def _chosen(self, split: str | None, groups: Sequence[str] | None) -> tuple[str, ...]:
        check_selection(self, split, groups)
        return in_order(self, groups) or self._kinds


class Questions:
    """All questions of a kind, as columns over its forms."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self._rows: list[Rows] = [form.rows(graph()) for form in forms]
        self.split = np.concatenate([rows.split for rows in self._rows])
        self._ends = np.cumsum([len(rows.split) for rows in self._rows])

    def at(self, number: int) -> tuple[Form, list[int], int]:
        """The form, subjects and attribute of a question."""
        place = int(np.searchsorted(self._ends, number, side="right"))
        rows = self._rows[place]
        local = number - (int(self._ends[place - 1]) if place else 0)
        return self._forms[place], [int(subject) for subject in rows.subjects[local]], int(rows.attribute[local])

    def digest(self) -> str:
        """SHA-256 of who and what all questions are about."""
        columns = [column for rows in self._rows for column in (rows.subjects, rows.attribute)]
        return hashlib.sha256(b"".join(column.astype("<i8").tobytes() for column in (*columns, self.split))).hexdigest()


@lru_cache(maxsize=len(KINDS))
def table_of(kind: str) -> Questions:
    """The questions of a kind, made once a process."""
    return Questions(KINDS[kind])


@lru_cache(maxsize=4 * len(KINDS))
def _numbers(kind: str, split: str | None) -> NDArray[np.int64]:
    """The questions of a kind in a split."""
    splits = table_of(kind).split
    return np.arange(len(splits)) if split is None else np.flatnonzero(splits == SPLITS.index(cast(Split, split)))


def _task(kind: str, number: int) -> Task:
    table = table_of(kind)
    form, subjects, attribute = table.at(number)
    task_id = f"{EmbeddedQuestions.name}/{kind}/{number}"
    wording = Wording(int.from_bytes(hashlib.sha256(task_id.encode()).digest()[:12], "big"))
    asked = form.ask(graph(), subjects, attribute, wording)
    passages, queries = zip(*asked.pages, strict=True)
    data = {"answers": asked.answers, "passages": list(passages), "queries": list(queries)}
    return Task(task_id, SPLITS[table.split[number]], kind, asked.goal.replace("..", "."), data)  # "Washington, D.C."


def _share(count: int, sizes: Sequence[int]) -> list[int]:
    """How many of each to take, so that they are `count` and as even as can be."""
    shares = [0] * len(sizes)
    for done, place in enumerate(sorted(range(len(sizes)), key=lambda place: sizes[place])):
        shares[place] = min(sizes[place], (count - sum(shares)) // (len(sizes) - done))
    return shares


def _some(kind: str) -> list[Any]:
    """Questions from all over a kind."""
    size = len(table_of(kind).split)
    return [asdict(_task(kind, number)) for number in range(0, size, -(-size // _SAMPLE))]
