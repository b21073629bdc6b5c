"""TextCraft's tasks: the frozen table of 544 goals, and the same goals in fictional and invented worlds."""

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
    Difficulty,
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
from agentgym_envs.textcraft.difficulty import measure
from agentgym_envs.textcraft.names import ItemNames, Worlds, make_names, real_names
from agentgym_envs.textcraft.oracle import make_plan
from agentgym_envs.textcraft.recipes import RecipeBook

FROZEN = Path(__file__).with_name("data") / "tasks.jsonl"
WORLDS_PER_SPLIT = 1_000_000
"""Worlds 0 to 999,999 are for training, the next million for validation, the third for test."""
RENAMED_VERSION = 1
_WORLD_RANGES: Mapping[str | None, tuple[int, int]] = {
    None: (0, len(SPLITS) * WORLDS_PER_SPLIT),
    **{split: (number * WORLDS_PER_SPLIT, WORLDS_PER_SPLIT) for number, split in enumerate(SPLITS)},
}
"""For each split, the first world and the number of worlds."""


class GoalTasks(TaskTable):
    """One task per goal of a recipe book, in the book's order, with real names.

    The goals of each depth are sorted by the SHA-256 of their names. The first fifth is `test`, the next tenth is
    `validation` (both rounded), and the rest is `train`.
    """

    def __init__(self, recipe_book: RecipeBook) -> None:
        """Read the tasks of the built-in book from the frozen file, or derive those of another book."""
        name = _table_name(recipe_book)
        frozen = recipe_book.path is None
        tasks = TaskTable.from_jsonl(FROZEN).tasks if frozen else derive_tasks(recipe_book)
        super().__init__(name, recipe_book.version, tasks)
        self.recipe_book = recipe_book
        self.number = {task.id: number for number, task in enumerate(self.tasks)}

    def __reduce__(self) -> tuple[Any, ...]:
        return goal_tasks, (self.recipe_book,)

    def names(self, task: Task) -> ItemNames:
        """Return the real names."""
        return real_names(self.recipe_book)

    def goal(self, task: Task) -> int:
        """Return the item to craft."""
        return self.recipe_book.goals[self.number[task.id]]

    def difficulty(self, task: Task) -> Difficulty:
        """Return the difficulty of a task."""
        return _difficulty(self.recipe_book, self.names(task), self.number[task.id], task)

    def with_goal(self, task: Task, number: int) -> Task:
        """Return the task of the goal with index `number`."""
        return self.tasks[number]


class RenamedItemTasks(TaskSet):
    """The goals of a recipe book in fictional or invented worlds, where items have other names.

    Ids are `textcraft-<worlds>/<world>/<goal>`, where `goal` is the index in the book's order. The world decides the
    split, so no world is in two splits. Each split has a million worlds, each with every goal.
    """

    def __init__(self, base: GoalTasks, worlds: Worlds) -> None:
        """`base` holds the tasks with real names; `worlds` is "fictional" or "invented"."""
        self.base, self.recipe_book, self.worlds = base, base.recipe_book, worlds
        self.name, self.version = f"{base.name}-{worlds}", RENAMED_VERSION
        self._goals_by_groups: dict[tuple[str, ...] | None, list[int]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return renamed_item_tasks, (self.recipe_book, self.worlds)

    def get(self, task_id: str) -> Task:
        """Return the task of that id.

        Raises UnknownTask, also for a world out of range and for a number in non-canonical form.
        """
        prefix, _, rest = task_id.partition("/") if isinstance(task_id, str) else ("", "", "")
        world, goal = (plain_number(word) for word in (rest.split("/") if rest.count("/") == 1 else ("", "")))
        if prefix != self.name or not 0 <= world < 3 * WORLDS_PER_SPLIT or not 0 <= goal < len(self.base):
            raise UnknownTask(
                f"there is no task {task_id!r:.120}; ids are '{self.name}/<world>/<goal>' with a world below "
                f"{3 * WORLDS_PER_SPLIT} and a goal below {len(self.base)}, for example '{self.name}/0/0'"
            )
        return self._task(world, goal)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """Draw the world and goal by a hash of `key`; without a split, from all worlds."""
        goals = self._goals(split, groups)
        first, count = _WORLD_RANGES[split]
        world, index = divmod(scramble(key), len(goals))
        return self._task(first + world % count, goals[index])

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """Return `count` tasks in distinct worlds. Every goal is used before one is used again."""
        goals = self._goals(split, groups)
        first, worlds = _WORLD_RANGES[split]
        if count is None or not 0 <= count <= worlds:
            count_text = "all" if count is None else count
            raise UsageError(f"{count_text} tasks were asked for; {self.name!r} returns at most {worlds} at once")
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
        """The groups of the real tasks."""
        return self.base.groups

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the real tasks, the parameters of the worlds and the names in some of them."""
        sample = [
            make_names(self.recipe_book, self.worlds, world) for world in (0, WORLDS_PER_SPLIT, 2 * WORLDS_PER_SPLIT)
        ]
        spoken = [[names.name_of(ref) for ref in range(len(self.recipe_book.recipes_for))] for names in sample]
        drawn = [self.draw(key, split=split).id for key in range(8) for split in SPLITS]
        return canonical_hash([self.name, self.version, self.base.digest, WORLDS_PER_SPLIT, spoken, drawn])

    def names(self, task: Task) -> ItemNames:
        """Return the names in the task's world."""
        return make_names(self.recipe_book, self.worlds, task.data["world"])

    def goal(self, task: Task) -> int:
        """Return the item to craft."""
        return self.recipe_book.goals[int(task.id.rpartition("/")[2])]

    def difficulty(self, task: Task) -> Difficulty:
        """Return the difficulty of a task: that of the real goal, with the lengths of the world's names."""
        return _difficulty(self.recipe_book, self.names(task), int(task.id.rpartition("/")[2]), task)

    def with_goal(self, task: Task, number: int) -> Task:
        """Return the task of the goal with index `number` in the same world."""
        return self._task(task.data["world"], number)

    def _task(self, world: int, goal: int) -> Task:
        real = self.base.tasks[goal]
        spoken = make_names(self.recipe_book, self.worlds, world).name_of(self.recipe_book.goals[goal])
        data = {**real.data, "item": spoken.replace(" ", "_"), "world": world}
        split = SPLITS[world // WORLDS_PER_SPLIT]
        return Task(f"{self.name}/{world}/{goal}", split, real.group, f"craft {spoken}", data)

    def _goals(self, split: str | None, groups: Sequence[str] | None) -> list[int]:
        check_selection(self, split, groups)
        key = in_order(self, groups)
        if key not in self._goals_by_groups:
            self._goals_by_groups[key] = [n for n, task in enumerate(self.base) if key is None or task.group in key]
        return self._goals_by_groups[key]


CraftTasks = GoalTasks | RenamedItemTasks


def derive_tasks(recipe_book: RecipeBook) -> list[Task]:
    """Derive the tasks of a recipe book. The frozen file was written from these."""
    splits, name = _split(recipe_book), _table_name(recipe_book)
    return [
        _derive_task(recipe_book, f"{name}/{number}", goal, splits[goal])
        for number, goal in enumerate(recipe_book.goals)
    ]


def make_tasks(recipe_book: RecipeBook, worlds: Worlds) -> CraftTasks:
    """Return the tasks of a recipe book in the given worlds; cached."""
    return goal_tasks(recipe_book) if worlds == "real" else renamed_item_tasks(recipe_book, worlds)


@lru_cache(maxsize=8)
def goal_tasks(recipe_book: RecipeBook) -> GoalTasks:
    """Return the tasks with real names; cached."""
    return GoalTasks(recipe_book)


@lru_cache(maxsize=8)
def renamed_item_tasks(recipe_book: RecipeBook, worlds: Worlds) -> RenamedItemTasks:
    """Return the tasks in fictional or invented worlds; cached."""
    return RenamedItemTasks(goal_tasks(recipe_book), worlds)


def _difficulty(recipe_book: RecipeBook, names: ItemNames, number: int, task: Task) -> Difficulty:
    return measure(recipe_book, names, recipe_book.goals[number], task.data["plan_length"])


def _derive_task(recipe_book: RecipeBook, task_id: str, goal: int, split: Split) -> Task:
    depth, item = recipe_book.depth[goal], recipe_book.items[goal]
    data = {"item": item, "depth": depth, "plan_length": len(make_plan(recipe_book, goal, {}))}
    return Task(task_id, split, f"depth-{depth}", f"craft {item.replace('_', ' ')}", data)


def _split(recipe_book: RecipeBook) -> Mapping[int, Split]:
    by_depth: dict[int, list[int]] = {}
    for goal in recipe_book.goals:
        by_depth.setdefault(recipe_book.depth[goal], []).append(goal)
    splits: dict[int, Split] = {}
    for goals in by_depth.values():
        goals.sort(key=lambda goal: hashlib.sha256(recipe_book.items[goal].encode()).digest())
        test, validation = round(len(goals) / 5), round(len(goals) / 10)
        for index, goal in enumerate(goals):
            splits[goal] = "test" if index < test else "validation" if index < test + validation else "train"
    return splits


def _table_name(recipe_book: RecipeBook) -> str:
    """Return the name of the task set. The name for a user's table contains its digest, so that task ids differ."""
    return "textcraft" if recipe_book.path is None else f"textcraft-{recipe_book.digest[:8]}"
