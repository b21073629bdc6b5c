"""The tasks of a server that knows them by number only."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from agentgym_envs.babyai.levels import AGENTGYM_LEVELS
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.http.dialects.agentgym import ids
from agentgym_envs.task import SPLITS, Split, Task, TaskSet, canonical_hash, check_selection

BABYAI_SEEDS = 1_000
"""How many seeds of each level are listed as tasks; the server knows more."""


class Row(NamedTuple):
    """Indices of one group and split."""

    group: str
    split: Split
    indices: range


class IndexTasks(TaskSet):
    """Tasks `<name>/<index>`. Which task an index is, the server knows."""

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.name, self.version, self.rows = name, 1, tuple(rows)

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask."""
        prefix, _, number = task_id.rpartition("/") if isinstance(task_id, str) else ("", "", "")
        if prefix == self.name and number.isascii() and number.isdigit() and len(number) <= 9:
            for row in self.rows:
                if int(number) in row.indices and str(int(number)) == number:
                    return self._task(row, int(number))
        raise UnknownTask(
            f"there is no task {task_id!r:.120} in {self.name!r}; ids are '{self.name}/<index>' with an index below "
            f"{max(row.indices[-1] for row in self.rows) + 1}"
        )

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The task at place `key` modulo the number of tasks of that split and those groups."""
        rows = self._select(split, groups)
        return self._at(rows, key % _count(rows))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` distinct tasks, chosen by `seed`; all of them if `count` is None."""
        rows = self._select(split, groups)
        total = _count(rows)
        if count is None:
            return [self._task(row, index) for row in rows for index in row.indices]
        if not 0 <= count <= total:
            raise UsageError(f"{count} tasks were asked for, but {self.name!r} has only {total} of that kind")
        return [self._at(rows, place) for place in sorted(random.Random(seed).sample(range(total), count))]

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups in the order of the rows."""
        return tuple(dict.fromkeys(row.group for row in self.rows))

    def counts(self) -> dict[str, dict[Split, int]]:
        """See `TaskSet.counts`; what is listed here is counted."""
        found: dict[str, dict[Split, int]] = {group: dict.fromkeys(SPLITS, 0) for group in self.groups}
        for row in self.rows:
            found[row.group][row.split] += len(row.indices)
        return found

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the names and the numbering; what the server makes of an index is not in it."""
        rows = [[r.group, r.split, r.indices.start, r.indices.stop, r.indices.step] for r in self.rows]
        return canonical_hash([self.name, self.version, rows])

    def _select(self, split: str | None, groups: Sequence[str] | None) -> list[Row]:
        check_selection(self, split, groups)
        rows = [row for row in self.rows if split in (None, row.split) and (groups is None or row.group in groups)]
        if not rows:
            raise UnknownTask(f"{self.name!r} has no task of split {split!r} in groups {groups!r}")
        return rows

    def _at(self, rows: Sequence[Row], place: int) -> Task:
        for row in rows:
            if place < len(row.indices):
                return self._task(row, row.indices[place])
            place -= len(row.indices)
        raise AssertionError("a place beyond the rows")

    def _task(self, row: Row, index: int) -> Task:
        return Task(f"{self.name}/{index}", row.split, row.group, f"task {index} of the server", {"index": index})


def rows_of(scenario: str) -> tuple[Row, ...]:
    """The numbering of a scenario of AgentGym."""
    if scenario == "babyai":
        levels, size = AGENTGYM_LEVELS, len(AGENTGYM_LEVELS) * BABYAI_SEEDS
        return tuple(Row(level, "test", range(n, size, len(levels))) for n, level in enumerate(levels))
    if scenario in ("sciworld", "searchqa"):
        parts = ids.sciworld_parts("agentgym") if scenario == "sciworld" else ids.SEARCH
        return tuple(Row(part.name, part.split, range(part.first, part.first + part.length)) for part in parts)
    size = {"textcraft": ids.TEXTCRAFT_GOALS, "webarena": ids.WEBARENA_TASKS}[scenario]
    return (Row(scenario, "test", range(size)),)


def _count(rows: Sequence[Row]) -> int:
    return sum(len(row.indices) for row in rows)
