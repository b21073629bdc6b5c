"""TextCraft's tasks: the frozen table of 544 goals, and the same goals in fictional worlds without end."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.task import (
    SPLITS,
    Split,
    Task,
    TaskSet,
    TaskTable,
    canonical_hash,
    check_selection,
    in_order,
    plain_number,
    scramble,
)
from agentgym_envs.textcraft.names import Names, Worlds, make_names, real_names
from agentgym_envs.textcraft.oracle import make_plan
from agentgym_envs.textcraft.recipes import RecipeBook

FROZEN = Path(__file__).with_name("data") / "tasks.jsonl"
WORLDS_PER_SPLIT = 1_000_000
"""Worlds 0 to 999,999 are for training, the next million for validation, the third for test."""
FICTIONAL_VERSION = 1


class GoalTasks(TaskTable):
    """One task a goal of a recipe book, in the book's order, by real names.

    Of the goals of one depth, sorted by the SHA-256 of their names, the first fifth is `test`, the next tenth is
    `validation` (both rounded), and the rest is `train`.
    """

    def __init__(self, book: RecipeBook) -> None:
        """The built-in book's tasks are read from the frozen file, any other book's are worked out."""
        name = _table_name(book)
        frozen = book.path is None
        tasks = TaskTable.from_jsonl(FROZEN).tasks if frozen else derive_tasks(book)
        super().__init__(name, book.version, tasks)
        self.book = book
        self.number = {task.id: number for number, task in enumerate(self.tasks)}

    def __reduce__(self) -> tuple[Any, ...]:
        return goal_tasks, (self.book,)

    def names(self, task: Task) -> Names:
        """The real names."""
        return real_names(self.book)

    def with_goal(self, task: Task, number: int) -> Task:
        """The task of the goal at place `number`."""
        return self.tasks[number]


class FictionalTasks(TaskSet):
    """The goals of a book in worlds where everything has another name; ids are `textcraft-fictional/<world>/<goal>`.

    The world decides the split, so no world is in two; `goal` is the place of the goal in the book's order. There are
    a million worlds a split, each with every goal.
    """

    def __init__(self, base: GoalTasks, worlds: Worlds) -> None:
        """`worlds` says how things are named: "fictional" or "invented"."""
        self.base, self.book, self.worlds = base, base.book, worlds
        self.name, self.version = f"{base.name}-{worlds}", FICTIONAL_VERSION
        self._places: dict[tuple[str, ...] | None, list[int]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return fictional_tasks, (self.book, self.worlds)

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask, also for a world out of range or a number written another way."""
        prefix, _, rest = task_id.partition("/") if isinstance(task_id, str) else ("", "", "")
        world, goal = (plain_number(word) for word in (rest.split("/") if rest.count("/") == 1 else ("", "")))
        if prefix != self.name or not 0 <= world < 3 * WORLDS_PER_SPLIT or not 0 <= goal < len(self.base):
            raise UnknownTask(
                f"there is no task {task_id!r:.120}; ids are '{self.name}/<world>/<goal>' with a world below "
                f"{3 * WORLDS_PER_SPLIT} and a goal below {len(self.base)}, for example '{self.name}/0/0'"
            )
        return self._task(world, goal)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The world and goal that a hash of `key` picks; without a split, from all worlds."""
        goals = self._goals(split, groups)
        first, count = _world_range(split)
        world, place = divmod(scramble(key), len(goals))
        return self._task(first + world % count, goals[place])

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` tasks in as many different worlds, with every goal used before one is used again."""
        goals = self._goals(split, groups)
        first, worlds = _world_range(split)
        if count is None or not 0 <= count <= worlds:
            asked = "all" if count is None else count
            raise UsageError(f"{asked} tasks were asked for; {self.name!r} gives a count of at most {worlds} at once")
        rng = random.Random(seed)
        chosen: list[int] = []
        while len(chosen) < count:
            chosen += rng.sample(goals, len(goals))
        return [
            self._task(first + world, goal)
            for world, goal in zip(rng.sample(range(worlds), count), chosen, strict=False)
        ]

    @property
    def groups(self) -> tuple[str, ...]:
        """As in the real world."""
        return self.base.groups

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the real tasks and of what decides the worlds, the names in some of them included."""
        sample = [make_names(self.book, self.worlds, world) for world in (0, WORLDS_PER_SPLIT, 2 * WORLDS_PER_SPLIT)]
        spoken = [[names.say(ref) for ref in range(len(self.book.ways))] for names in sample]
        drawn = [self.draw(key, split=split).id for key in range(8) for split in SPLITS]
        return canonical_hash([self.name, self.version, self.base.digest, WORLDS_PER_SPLIT, spoken, drawn])

    def names(self, task: Task) -> Names:
        """The names in the task's world."""
        return make_names(self.book, self.worlds, task.data["world"])

    def with_goal(self, task: Task, number: int) -> Task:
        """The goal at place `number` in the same world."""
        return self._task(task.data["world"], number)

    def _task(self, world: int, goal: int) -> Task:
        real = self.base.tasks[goal]
        spoken = make_names(self.book, self.worlds, world).say(self.book.goals[goal])
        data = {**real.data, "item": spoken.replace(" ", "_"), "world": world}
        split = SPLITS[world // WORLDS_PER_SPLIT]
        return Task(f"{self.name}/{world}/{goal}", split, real.group, f"craft {spoken}", data)

    def _goals(self, split: str | None, groups: Sequence[str] | None) -> list[int]:
        check_selection(self, split, groups)
        key = in_order(self, groups)
        if key not in self._places:
            self._places[key] = [n for n, task in enumerate(self.base) if key is None or task.group in key]
        return self._places[key]


CraftTasks = GoalTasks | FictionalTasks


def derive_tasks(book: RecipeBook) -> list[Task]:
    """The tasks of a book, worked out from it: what the frozen file was written from."""
    splits, name = _split(book), _table_name(book)
    return [_derive_task(book, f"{name}/{number}", goal, splits[goal]) for number, goal in enumerate(book.goals)]


def make_tasks(book: RecipeBook, worlds: Worlds) -> CraftTasks:
    """The tasks of a book in those worlds; made once."""
    return goal_tasks(book) if worlds == "real" else fictional_tasks(book, worlds)


@lru_cache(maxsize=8)
def goal_tasks(book: RecipeBook) -> GoalTasks:
    """The tasks by real names; made once."""
    return GoalTasks(book)


@lru_cache(maxsize=8)
def fictional_tasks(book: RecipeBook, worlds: Worlds) -> FictionalTasks:
    """The tasks in fictional or invented worlds; made once."""
    return FictionalTasks(goal_tasks(book), worlds)


def _derive_task(book: RecipeBook, task_id: str, goal: int, split: Split) -> Task:
    depth, item = book.depth[goal], book.items[goal]
    data = {"item": item, "depth": depth, "plan_length": len(make_plan(book, goal, {}))}
    return Task(task_id, split, f"depth-{depth}", f"craft {item.replace('_', ' ')}", data)


def _split(book: RecipeBook) -> Mapping[int, Split]:
    by_depth: dict[int, list[int]] = {}
    for goal in book.goals:
        by_depth.setdefault(book.depth[goal], []).append(goal)
    splits: dict[int, Split] = {}
    for goals in by_depth.values():
        goals.sort(key=lambda goal: hashlib.sha256(book.items[goal].encode()).digest())
        test, validation = round(len(goals) / 5), round(len(goals) / 10)
        for place, goal in enumerate(goals):
            splits[goal] = "test" if place < test else "validation" if place < test + validation else "train"
    return splits


def _table_name(book: RecipeBook) -> str:
    """Tasks of a user's table say which one they are of, so that they are never taken for the built-in ones."""
    return "textcraft" if book.path is None else f"textcraft-{book.digest[:8]}"


def _world_range(split: str | None) -> tuple[int, int]:
    if split is None:
        return 0, 3 * WORLDS_PER_SPLIT
    return SPLITS.index(split) * WORLDS_PER_SPLIT, WORLDS_PER_SPLIT
