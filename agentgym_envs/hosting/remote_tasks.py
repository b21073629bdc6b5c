"""`RemoteTaskSet`: the task set of a remote environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentgym_envs.errors import UnknownTask
from agentgym_envs.task import Difficulty, Split, Task, TaskSet

_CACHED_TASKS = 10_000


class RemoteTaskSet(TaskSet):
    """The task set of a remote environment, with a cache of known tasks."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any], description: Mapping[str, Any]) -> None:
        """`call` calls a remote method; `description` is the field `tasks` of `describe_env`."""
        self._call = call
        self.name, self.version = str(description["name"]), int(description["version"])
        self._groups, self._digest = tuple(description["groups"]), str(description["digest"])
        self._counts = description.get("counts")  # missing in the reply of an earlier server version
        self._cache: dict[str, Task] = {}

    def get(self, task_id: str) -> Task:
        """The task with this id. Raises UnknownTask."""
        if not isinstance(task_id, str):
            raise UnknownTask(f"there is no task {task_id!r} in {self.name!r}; a task id is a string")
        known = self._cache.get(task_id)
        return known or self.remember(Task(**self._call("task", {"id": task_id})))

    def difficulty(self, task: Task) -> Difficulty | None:
        """The difficulty of a task; None if the set has no measure of it."""
        found = self._call("difficulty", {"id": task.id})
        return None if found is None else Difficulty(**found)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The task that a number draws."""
        return self.remember(Task(**self._call("draw", {"key": key, "split": split, "groups": _as_list(groups)})))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """Distinct tasks, chosen by `seed`."""
        arguments = {"count": count, "split": split, "groups": _as_list(groups), "seed": seed}
        return [self.remember(Task(**row)) for row in self._call("sample", arguments)]

    def remember(self, task: Task) -> Task:
        """Cache a task and return it. The cache keeps the newest thousands, since some sets are unlimited."""
        if len(self._cache) >= _CACHED_TASKS:
            self._cache.pop(next(iter(self._cache)))
        self._cache[task.id] = task
        return task

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self._groups

    def counts(self) -> dict[str, dict[Split, int]] | None:
        """The number of tasks by group and split; None if the set is unlimited or the server does not report it."""
        return None if self._counts is None else {group: dict(splits) for group, splits in self._counts.items()}

    def __len__(self) -> int:
        if self._counts is None:
            raise TypeError(f"the number of tasks of {self.name!r} is unknown; most likely the set is unlimited")
        return sum(sum(splits.values()) for splits in self._counts.values())

    def __bool__(self) -> bool:
        return True  # not by the length, which an unlimited set lacks

    def __iter__(self) -> Iterator[Task]:
        return iter(self.sample())

    @property
    def digest(self) -> str:
        """SHA-256 over everything that determines the tasks."""
        return self._digest


def _as_list(groups: Sequence[str] | None) -> list[str] | None:
    return None if groups is None else list(groups)
