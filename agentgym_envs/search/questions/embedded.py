"""`EmbeddedQuestions`: the questions about the embedded corpus, generated one by one on demand."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.corpus.facts import CORRECTIONS, data_digest
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.search.questions.aggregate_questions import AGGREGATE_KINDS
from agentgym_envs.search.questions.deep_questions import DEEP_KINDS
from agentgym_envs.search.questions.fact_arrays import graph
from agentgym_envs.search.questions.question_types import FACT_KINDS, QuestionRows, QuestionType, Wording
from agentgym_envs.task import (
    SPLITS,
    Difficulty,
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

KINDS = FACT_KINDS | AGGREGATE_KINDS | DEEP_KINDS
"""The kinds of questions, which are the task groups, each with its types."""
FACTS_OF = {1: 1, 2: 2, 3: 2}
"""The version of the facts for each version of the table. Versions 2 and 3 have the same questions under the same ids;
version 3 adds the kinds of several hops.
"""
VERSION = max(FACTS_OF)
"""The default version of the table; older ones remain available."""
_SAMPLE = 40
"""The number of questions of each kind whose whole text is part of the digest."""


class EmbeddedQuestions(TaskSet):
    """The tasks `search/<kind>/<number>`. The number counts all questions of a kind, across splits.

    Splits go by entity: every country is in one split, together with everything that lies in it. A train question uses
    train entities only. The answer of a test question belongs to a test entity; if it is computed from several
    entities, at least one is a test entity. Other entities on the way may be train entities. Validation questions
    follow the same rule and use no test entities. `data` holds `answers` (the canonical one first), `passages` (ids, in
    the order of the hops) and `queries` (one for each passage).
    """

    name = "search"

    def __init__(self, chosen: Sequence[str] = tuple(KINDS), version: int = VERSION) -> None:
        """Select the kinds that tasks are drawn from, and a version. Raises UsageError."""
        self.version = check_version(version)
        self._kinds = tuple(kind for kind in kinds_of(version) if kind in chosen)

    def __reduce__(self) -> tuple[Any, ...]:
        return EmbeddedQuestions, (self._kinds, self.version)

    def get(self, task_id: str) -> Task:
        """Return the task of that id. Raises UnknownTask, also for a number in non-canonical form."""
        parts = task_id.split("/") if isinstance(task_id, str) else []
        if len(parts) != 3 or parts[0] != self.name or parts[1] not in kinds_of(self.version):
            raise UnknownTask(
                f"there is no task {task_id!r:.120}; ids are '{self.name}/<kind>/<number>', for example "
                f"'{self.name}/{self._kinds[0]}/0', with the kinds {', '.join(kinds_of(self.version))}"
            )
        number, count = plain_number(parts[2]), len(table_of(parts[1], self.version).split)
        if not 0 <= number < count:
            raise UnknownTask(f"there is no task {task_id!r:.120}; {parts[1]} has the numbers 0 to {count - 1}")
        return _task(parts[1], number, self.version)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """Draw a kind by one part of a hash of `key`, and a question by the other."""
        chosen = self._chosen(split, groups)
        rest, index = divmod(scramble(key), len(chosen))
        numbers = _numbers(chosen[index], split, self.version)
        return _task(chosen[index], int(numbers[rest % len(numbers)]), self.version)

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """Return `count` questions in table order, spread over the kinds as evenly as their sizes allow."""
        chosen = self._chosen(split, groups)
        sizes = [len(_numbers(kind, split, self.version)) for kind in chosen]
        shares = _share(check_count(self.name, count, sum(sizes)), sizes)
        rng = random.Random(seed)
        return [
            _task(kind, int(_numbers(kind, split, self.version)[index]), self.version)
            for kind, size, share in zip(chosen, sizes, shares, strict=True)
            for index in sorted(rng.sample(range(size), share))
        ]

    @property
    def groups(self) -> tuple[str, ...]:
        """The selected kinds."""
        return self._kinds

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the facts, of the entities and attributes of every question, and of the text of some questions."""
        rows = [[kind, table_of(kind, self.version).digest(), *_some(kind, self.version)] for kind in self._kinds]
        files = ("world.json.xz",) if self.version == 1 else ("world.json.xz", CORRECTIONS)
        return canonical_hash([self.name, self.version, data_digest(*files), rows])

    def difficulty(self, task: Task) -> Difficulty:
        """Return the difficulty of a question: the oracle searches once for each passage, and then answers."""
        return Difficulty(len(task.data["queries"]) + 1, observation_chars=len(f"Question: {task.goal}"))

    def counts(self) -> dict[str, dict[Split, int]]:
        """Return the number of questions of each kind in each split."""
        return {kind: {split: len(_numbers(kind, split, self.version)) for split in SPLITS} for kind in self._kinds}

    def _chosen(self, split: str | None, groups: Sequence[str] | None) -> tuple[str, ...]:
        check_selection(self, split, groups)
        return in_order(self, groups) or self._kinds


class QuestionTable:
    """All questions of a kind, as columns over its types."""

    def __init__(self, types: Sequence[QuestionType], version: int) -> None:
        self._types = types
        self._rows: list[QuestionRows] = [question_type.rows(graph(FACTS_OF[version])) for question_type in types]
        self.split = np.concatenate([rows.split for rows in self._rows])
        self._ends = np.cumsum([len(rows.split) for rows in self._rows])

    def at(self, number: int) -> tuple[QuestionType, list[int], int]:
        """Return the type, subjects and attribute of a question."""
        index = int(np.searchsorted(self._ends, number, side="right"))
        rows = self._rows[index]
        row = number - (int(self._ends[index - 1]) if index else 0)
        return self._types[index], [int(subject) for subject in rows.subjects[row]], int(rows.attribute[row])

    def digest(self) -> str:
        """SHA-256 of the subjects and attributes of all questions."""
        columns = [column for rows in self._rows for column in (rows.subjects, rows.attribute)]
        return hashlib.sha256(b"".join(column.astype("<i8").tobytes() for column in (*columns, self.split))).hexdigest()


def check_version(version: int) -> int:
    """Return the version if it exists. Raises UsageError."""
    if type(version) is not int or version not in FACTS_OF:
        raise UsageError(f"there is no version {version!r} of the table of questions; choose 1 to {VERSION}")
    return version


def kinds_of(version: int) -> tuple[str, ...]:
    """Return the kinds of a version."""
    return tuple(kind for kind in KINDS if version > 2 or kind not in DEEP_KINDS)


@lru_cache(maxsize=len(KINDS) * len(FACTS_OF))
def table_of(kind: str, version: int = VERSION) -> QuestionTable:
    """Return the questions of a kind, built once per process."""
    return QuestionTable(KINDS[kind], version)


@lru_cache(maxsize=4 * len(KINDS) * len(FACTS_OF))
def _numbers(kind: str, split: str | None, version: int) -> NDArray[np.int64]:
    """Numbers of the questions of a kind in a split."""
    splits = table_of(kind, version).split
    return np.arange(len(splits)) if split is None else np.flatnonzero(splits == SPLITS.index(cast(Split, split)))


def _task(kind: str, number: int, version: int) -> Task:
    table = table_of(kind, version)
    question_type, subjects, attribute = table.at(number)
    task_id = f"{EmbeddedQuestions.name}/{kind}/{number}"
    wording = Wording(int.from_bytes(hashlib.sha256(task_id.encode()).digest()[:12], "big"))
    question = question_type.ask(graph(FACTS_OF[version]), subjects, attribute, wording)
    passages, queries = zip(*question.pages, strict=True)
    data = {"answers": question.answers, "passages": list(passages), "queries": list(queries)}
    goal = question.goal.replace("..", ".")  # after a name like "Washington, D.C."
    return Task(task_id, SPLITS[table.split[number]], kind, goal, data)


def _share(count: int, sizes: Sequence[int]) -> list[int]:
    """Split `count` as evenly as possible, with at most `sizes[i]` for each i."""
    shares = [0] * len(sizes)
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        shares[index] = min(sizes[index], (count - sum(shares)) // (len(sizes) - done))
    return shares


def _some(kind: str, version: int) -> list[Any]:
    """Sample questions at regular intervals from a kind."""
    size = len(table_of(kind, version).split)
    return [asdict(_task(kind, number, version)) for number in range(0, size, -(-size // _SAMPLE))]
