"""The dial of difficulty: the tasks of a set whose oracle needs a number of turns within a range."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable
from itertools import count as counting
from itertools import islice
from typing import Any, NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.task import Difficulty, Split, Task, TaskSet, TaskTable, canonical_hash, check_count, scramble

_MOST_DRAWS = 500
"""Candidates after which a range of an unlimited set counts as empty."""


class TurnRange(NamedTuple):
    """A range of turns, both ends included."""

    low: int
    high: int

    def __contains__(self, turns: object) -> bool:
        return isinstance(turns, int) and self.low <= turns <= self.high


def read_range(difficulty: Any) -> TurnRange:
    """Check the argument `difficulty` of an environment: two whole numbers. Raises UsageError."""
    pair = list(difficulty) if isinstance(difficulty, list | tuple) else []
    if len(pair) != 2 or not all(type(end) is int for end in pair) or not 1 <= pair[0] <= pair[1]:
        raise UsageError(
            f"difficulty is a range of the oracle's turns, as in difficulty=(3, 8), from 1 on; got {difficulty!r:.80}"
        )
    return TurnRange(*pair)


def dial(
    tasks: TaskSet, difficulty: Sequence[int] | None, *, split: str | None = None, groups: Sequence[str] | None = None
) -> TaskSet:
    """The tasks of a set that lie in the range `difficulty`; all of them if it is None.

    Raises:
        UsageError: the range is malformed; or no task of that split and these groups lies in it.
    """
    if difficulty is None:
        return tasks
    found = DialedTasks(tasks, read_range(difficulty))
    found.draw(0, split=split, groups=groups)
    return found


class DialedTasks(TaskSet):
    """The tasks of another set whose oracle needs a number of turns within a range.

    Only draws are restricted: every task of the other set can be looked up by its id, and ids are the same. So is
    whatever else a scenario's own set has.
    """

    def __init__(self, base: TaskSet, turns: TurnRange) -> None:
        """Restrict the draws of `base`."""
        self.base, self.turns = base, turns
        self.name, self.version = base.name, base.version
        self._tables: dict[Any, TaskTable] = {}

    def get(self, task_id: str) -> Task:
        """The task of that id, in the range or not. Raises UnknownTask."""
        return self.base.get(task_id)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The first task in the range that the other set draws by hashes of `key`.

        Raises:
            UsageError: there is none.
        """
        if isinstance(self.base, TaskTable):
            return self._table(split, groups).draw(key)
        start = scramble(key)
        return next(self._fitting((scramble(start + step) for step in counting()), split, groups))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` distinct tasks in the range, chosen by `seed`; all tasks of a table without a `count`."""
        if isinstance(self.base, TaskTable):
            return self._table(split, groups).sample(count, seed=seed)
        if count is None:
            raise UsageError(f"say how many tasks of {self.name!r} you want: a range of an unlimited set has no end")
        rng = random.Random(seed)
        found: dict[str, Task] = {}
        for task in islice(self._fitting((rng.getrandbits(63) for _ in counting()), split, groups), 20 * count + 100):
            if len(found) == count:
                break
            found[task.id] = task
        check_count(self.name, count, len(found))
        return list(found.values())

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the other set."""
        return self.base.groups

    def counts(self) -> Mapping[str, Mapping[Split, int]] | None:
        """The number of tasks in the range; None for an unlimited set."""
        if not isinstance(self.base, TaskTable):
            return None
        fitting = [task for task in self.base.tasks if self._fits(task)]
        return TaskTable(self.name, self.version, fitting).counts()

    @property
    def digest(self) -> str:
        """SHA-256 over the other set and the range."""
        return canonical_hash([self.base.digest, "difficulty", *self.turns])

    def difficulty(self, task: Task) -> Difficulty | None:
        """The difficulty of a task."""
        return self.base.difficulty(task)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    def _fits(self, task: Task) -> bool:
        found = self.base.difficulty(task)
        return found is not None and found.turns in self.turns

    def _table(self, split: str | None, groups: Sequence[str] | None) -> TaskTable:
        key = split, None if groups is None else tuple(groups)
        if key not in self._tables:
            candidates = self.base.sample(split=split, groups=groups)
            fitting = [task for task in candidates if self._fits(task)]
            if not fitting:
                raise self._empty(candidates, split, groups)
            self._tables[key] = TaskTable(self.name, self.version, fitting)
        return self._tables[key]

    def _fitting(self, keys: Iterator[int], split: str | None, groups: Sequence[str] | None) -> Iterator[Task]:
        """The tasks in the range that `keys` draw. Raises UsageError after too many outside of it in a row."""
        others: list[Task] = []
        for key in keys:
            task = self.base.draw(key, split=split, groups=groups)
            if self._fits(task):
                others.clear()
                yield task
            elif len(others) >= _MOST_DRAWS:
                raise self._empty(others, split, groups)
            else:
                others.append(task)

    def _empty(self, tasks: Sequence[Task], split: str | None, groups: Sequence[str] | None) -> UsageError:
        turns = [found.turns for task in tasks if (found := self.base.difficulty(task)) is not None]
        where = "".join([f" of split {split}" if split else "", f" in {', '.join(groups)}" if groups else ""])
        low, high = self.turns
        if not turns:
            return UsageError(f"the tasks of {self.name!r} have no known difficulty; leave difficulty= out")
        return UsageError(
            f"difficulty=({low}, {high}): no task of {self.name!r}{where} needs {low} to {high} turns; the oracle "
            f"needs {min(turns)} to {max(turns)} there"
        )


def read_frozen(file: Traversable) -> Mapping[str, Difficulty]:
    """Read the difficulties that `scripts/measure_difficulty.py` wrote, by kind of task."""
    kinds = json.loads(file.read_text(encoding="utf-8"))["kinds"]
    return {kind: Difficulty(turns, float(choices), None, chars) for kind, (turns, choices, chars) in kinds.items()}
