"""`IndexTasks`: the tasks of a server that identifies them only by index."""

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
"""The number of seeds of each level that are listed as tasks; the server has more."""


class IndexGroup(NamedTuple):
    """The indices of one group and split."""

    group: str
    split: Split
    indices: range


class IndexTasks(TaskSet):
    """Tasks `<name>/<index>`. Only the server knows the task of an index."""

    def __init__(self, name: str, index_groups: Sequence[IndexGroup]) -> None:
        self.name, self.version, self.index_groups = name, 1, tuple(index_groups)

    def get(self, task_id: str) -> Task:
        """The task with this id. Raises UnknownTask."""
        prefix, _, number = task_id.rpartition("/") if isinstance(task_id, str) else ("", "", "")
        if prefix == self.name and number.isascii() and number.isdigit() and len(number) <= 9:
            for each in self.index_groups:
                if int(number) in each.indices and str(int(number)) == number:
                    return self._task(each, int(number))
        raise UnknownTask(
            f"there is no task {task_id!r:.120} in {self.name!r}; ids are '{self.name}/<index>' with an index below "
            f"{max(each.indices[-1] for each in self.index_groups) + 1}"
        )

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The task at position `key` modulo the number of tasks of that split and those groups."""
        chosen = self._matching(split, groups)
        return self._at(chosen, key % _count(chosen))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` distinct tasks, chosen by `seed`; `count=None` means all."""
        chosen = self._matching(split, groups)
        total = _count(chosen)
        if count is None:
            return [self._task(each, index) for each in chosen for index in each.indices]
        if not 0 <= count <= total:
            raise UsageError(f"{count} tasks were asked for, but {self.name!r} has only {total} of that kind")
        return [self._at(chosen, position) for position in sorted(random.Random(seed).sample(range(total), count))]

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups in order of first appearance."""
        return tuple(dict.fromkeys(each.group for each in self.index_groups))

    def counts(self) -> dict[str, dict[Split, int]]:
        """The number of listed tasks by group and split."""
        counts: dict[str, dict[Split, int]] = {group: dict.fromkeys(SPLITS, 0) for group in self.groups}
        for each in self.index_groups:
            counts[each.group][each.split] += len(each.indices)
        return counts

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the names and the numbering, but not of the server's tasks."""
        rows = [[r.group, r.split, r.indices.start, r.indices.stop, r.indices.step] for r in self.index_groups]
        return canonical_hash([self.name, self.version, rows])

    def _matching(self, split: str | None, groups: Sequence[str] | None) -> list[IndexGroup]:
        check_selection(self, split, groups)
        chosen = [
            each
            for each in self.index_groups
            if split in (None, each.split) and (groups is None or each.group in groups)
        ]
        if not chosen:
            raise UnknownTask(f"{self.name!r} has no task of split {split!r} in groups {groups!r}")
        return chosen

    def _at(self, index_groups: Sequence[IndexGroup], position: int) -> Task:
        for each in index_groups:
            if position < len(each.indices):
                return self._task(each, each.indices[position])
            position -= len(each.indices)
        raise AssertionError("a position beyond the tasks")

    def _task(self, group: IndexGroup, index: int) -> Task:
        return Task(f"{self.name}/{index}", group.split, group.group, f"task {index} of the server", {"index": index})


def index_groups(scenario: str) -> tuple[IndexGroup, ...]:
    """The indices of a scenario of AgentGym."""
    if scenario == "babyai":
        levels, size = AGENTGYM_LEVELS, len(AGENTGYM_LEVELS) * BABYAI_SEEDS
        return tuple(IndexGroup(level, "test", range(n, size, len(levels))) for n, level in enumerate(levels))
    if scenario in ("sciworld", "searchqa"):
        ranges = ids.sciworld_ranges("agentgym") if scenario == "sciworld" else ids.SEARCH
        return tuple(IndexGroup(each.name, each.split, range(each.first, each.first + each.length)) for each in ranges)
    size = {"textcraft": ids.TEXTCRAFT_GOALS, "webarena": ids.WEBARENA_TASKS}[scenario]
    return (IndexGroup(scenario, "test", range(size)),)


def _count(index_groups: Sequence[IndexGroup]) -> int:
    return sum(len(each.indices) for each in index_groups)
