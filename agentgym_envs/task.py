"""Tasks and task sets: frozen, versioned and hashed. `draw` maps a number to a task."""

from __future__ import annotations

import hashlib
import json
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from agentgym_envs.errors import TaskTableError, UnknownTask, UsageError

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
MANY_TASKS = 20_000
"""Larger sets need a count: a call without one does not list all tasks."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task to solve.

    `id` is stable forever within a version of its task table. `group` is the sub-category that evaluation reports.
    `data` (JSON) belongs to the scenario.
    """

    id: str
    split: Split
    group: str
    goal: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Measures of how difficult a task is, which follow from the task alone. None where a scenario has no such measure.

    turns: turns that the oracle needs.
    branching: choices per turn: commands, objects or elements that the scenario offers, on average.
    distractors: things that are shown or present and are not needed.
    observation_chars: length of an observation, in characters.
    """

    turns: int
    branching: float | None = None
    distractors: int | None = None
    observation_chars: int | None = None


class TaskSet(ABC):
    """The source of an environment's tasks: a frozen table, or an unlimited generator."""

    name: str
    version: int

    @abstractmethod
    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask."""

    @abstractmethod
    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """Map a number `key` (>= 0) to a task. A pure function, so that a seed always draws the same task."""

    @abstractmethod
    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` distinct tasks, chosen by `seed`; all tasks, in table order, without a `count`.

        Raises:
            UsageError: there are fewer than `count` tasks, or `count` is missing for a generator or a huge table.
        """

    @property
    @abstractmethod
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, in the order in which evaluation reports them."""

    def counts(self) -> Mapping[str, Mapping[Split, int]] | None:
        """The number of tasks of each group in each split; None for an unlimited generator."""
        return None

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 over everything that determines the tasks; equal digests mean equal tasks."""

    def difficulty(self, task: Task) -> Difficulty | None:
        """The difficulty of a task of this set; None if the set has no measure of it.

        It follows from the task, so it is as frozen as the table, and is no part of the digest.
        """
        return None


class TaskTable(TaskSet):
    """A frozen table of tasks."""

    def __init__(self, name: str, version: int, tasks: Sequence[Task]) -> None:
        """Raises TaskTableError if the table is empty or an id occurs twice."""
        self.name, self.version, self.tasks = name, version, tuple(tasks)
        self._by_id = {task.id: task for task in self.tasks}
        if not self.tasks:
            raise TaskTableError(f"task table {name!r} is empty")
        if len(self._by_id) != len(self.tasks):
            raise TaskTableError(f"task table {name!r} uses an id more than once")
        self._selections: dict[tuple[str | None, tuple[str, ...] | None], list[Task]] = {}

    @classmethod
    def from_jsonl(cls, path: str | Path, *, name: str | None = None, version: int = 1) -> TaskTable:
        """Read a file with one JSON object per line: id, split, group, goal and, optionally, data.

        Raises:
            TaskTableError: a line is malformed; the message begins with file and line number.
        """
        try:
            lines = Path(path).read_text(encoding="utf-8").split("\n")  # not splitlines, as JSON may hold U+2028
        except UnicodeDecodeError as error:
            raise TaskTableError(f"{path} is not UTF-8 text: {error}") from None
        tasks = [parse_task(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
        return cls(name or Path(path).stem, version, tasks)

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask."""
        try:
            return self._by_id[task_id]
        except (KeyError, TypeError):
            raise UnknownTask(
                f"there is no task {task_id!r} in {self.name!r} (version {self.version}, {len(self)} tasks, "
                f"for example {self.tasks[0].id!r})"
            ) from None

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The task at index `key` modulo the number of tasks of that split and those groups."""
        candidates = self._select(split, groups)
        return candidates[key % len(candidates)]

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` distinct tasks in table order, chosen by `seed`; all tasks without a `count`."""
        candidates = self._select(split, groups)
        if count is None:
            return list(candidates)
        check_count(self.name, count, len(candidates))
        indices = sorted(random.Random(seed).sample(range(len(candidates)), count))
        return [candidates[index] for index in indices]

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups in order of first appearance."""
        return tuple(dict.fromkeys(task.group for task in self.tasks))

    def counts(self) -> dict[str, dict[Split, int]]:
        """The number of tasks of each group in each split."""
        return {group: dict(splits) for group, splits in self._counts.items()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of name, version and every task."""
        rows = [asdict(task) for task in self.tasks]
        return canonical_hash([self.name, self.version, rows])

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    @cached_property
    def _counts(self) -> dict[str, dict[Split, int]]:
        found = Counter((task.group, task.split) for task in self.tasks)
        return {group: {split: found[group, split] for split in SPLITS} for group in self.groups}

    def _select(self, split: str | None, groups: Sequence[str] | None) -> list[Task]:
        check_selection(self, split, groups)
        key = split, in_order(self, groups)
        if key not in self._selections:
            self._selections[key] = self._filter(*key)
        return self._selections[key]

    def _filter(self, split: str | None, groups: tuple[str, ...] | None) -> list[Task]:
        found = [t for t in self.tasks if split in (None, t.split) and (groups is None or t.group in groups)]
        if not found:
            where = "" if groups is None else f" in the groups {', '.join(groups)}"
            raise UnknownTask(f"{self.name!r} has no task of split {split!r}{where}")
        return found


def check_selection(tasks: TaskSet, split: str | None, groups: Sequence[str] | None) -> None:
    """Raise UnknownTask, with the choices, if `split` or one of `groups` does not exist; UsageError for wrong types."""
    if split is not None and split not in SPLITS:
        raise UnknownTask(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}")
    if groups is None:
        return
    if isinstance(groups, str) or not isinstance(groups, Sequence) or not all(isinstance(g, str) for g in groups):
        raise UsageError(
            f"groups are given as a list of names, such as {list(tasks.groups[:2])}, not as {groups!r:.80}"
        )
    unknown = sorted(set(groups) - set(tasks.groups))
    if unknown or not groups:
        wrong = (
            f"{tasks.name!r} has no group {', '.join(unknown)!r}"
            if unknown
            else f"no group of {tasks.name!r} was named"
        )
        raise UnknownTask(f"{wrong}; choose from {', '.join(tasks.groups)}")


def check_count(name: str, count: int | None, size: int) -> int:
    """Return `count`, or `size` without a count.

    Raises UsageError if `count` is above `size`, or if it is missing and `size` is above `MANY_TASKS`: such tasks are
    made on demand, so listing all of them is hardly intended.
    """
    if count is None and size > MANY_TASKS:
        raise UsageError(f"{name!r} has {size:,} tasks of that kind; say how many you want")
    if count is not None and not 0 <= count <= size:
        raise UsageError(f"{count} tasks were asked for, but {name!r} has only {size} of that kind")
    return size if count is None else count


def in_order(tasks: TaskSet, groups: Sequence[str] | None) -> tuple[str, ...] | None:
    """Each of `groups` once, in the order of the set, so that equal selections compare equal."""
    chosen = None if groups is None else set(groups)
    return None if chosen is None else tuple(group for group in tasks.groups if group in chosen)


def canonical_hash(value: Any) -> str:
    """SHA-256 (hex) of a JSON value, independent of dict order and platform."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def scramble(key: int) -> int:
    """The SplitMix64 step: neighbouring keys give unrelated results.

    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
    """
    mask = 2**64 - 1
    value = (key + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def plain_number(word: str) -> int:
    """Parse a decimal number of up to nine digits without sign or leading zeros; -1 for any other text."""
    plain = word.isascii() and word.isdigit() and len(word) <= 9 and (word == "0" or word[0] != "0")
    return int(word) if plain else -1


def parse_task(line: str, where: str) -> Task:
    """Read a task from a JSON object. Raises TaskTableError, whose message begins with `where`."""
    try:
        row = json.loads(line)
        task = Task(**row)
    except (ValueError, TypeError, RecursionError) as error:
        raise TaskTableError(f"{where} is not a task (id, split, group, goal, data): {error}") from None
    texts = (task.id, task.group, task.goal)
    if task.split not in SPLITS or not all(isinstance(t, str) and t for t in texts) or not isinstance(task.data, dict):
        raise TaskTableError(f"{where}: id, group and goal must be text, data an object, split one of {SPLITS}")
    return task
