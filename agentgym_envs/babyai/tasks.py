"""BabyAI's tasks: every level with every seed. The seed decides the split, so no seed is in two splits."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import count as counting
from typing import cast

from agentgym_envs.babyai.difficulty import measure
from agentgym_envs.babyai.infeasibility import why_unsolvable
from agentgym_envs.babyai.levels import GROUP_OF, GROUPS, LEVELS, MINIGRID, similar_levels
from agentgym_envs.babyai.world import GridWorld, generated_world
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.task import Difficulty, Split, Task, TaskSet, canonical_hash, check_selection, plain_number, scramble

SEEDS: dict[Split, range] = {
    "train": range(20_000, 1_020_000),
    "validation": range(10_000, 20_000),
    "test": range(0, 10_000),
}
"""The seeds of each split. The first seeds are in test, because all of AgentGym's published tasks use them."""
VERSION = 1


class BabyTasks(TaskSet):
    """The tasks `babyai/<level>/<seed>` of some levels. Levels are drawn uniformly, whatever their groups.

    A task's `goal` is the mission, and `data` holds `level`, `seed`, `max_steps` and `solvable`. Looking up a task
    generates its world, which takes up to a few milliseconds. Unsolvable tasks (see `unsolvable`) are never drawn, but
    can be looked up by id.
    """

    name, version = "babyai", VERSION

    def __init__(self, levels: Sequence[str] = LEVELS) -> None:
        """Select the levels that tasks are drawn from."""
        self.levels = tuple(levels)

    def get(self, task_id: str) -> Task:
        """Return the task of that id, of any level. Raises UnknownTask, also for a number in non-canonical form."""
        parts = task_id.split("/") if isinstance(task_id, str) else []
        level, seed = (parts[1], plain_number(parts[2])) if len(parts) == 3 and parts[0] == self.name else ("", -1)
        if level not in GROUP_OF or not 0 <= seed < SEEDS["train"].stop:
            form = (
                f"'babyai/<level>/<seed>' with a seed below {SEEDS['train'].stop}, for example 'babyai/GoToRedBall/0'"
            )
            wrong = f"; {similar_levels(level)}" if level and level not in GROUP_OF else ""
            raise UnknownTask(f"there is no task {task_id!r:.120}; ids are {form}{wrong}")
        return _describe(generated_world(level, seed))

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """Draw the level and seed by a hash of `key`. If that task is unsolvable, the next seed is used."""
        levels, seeds = self._select(split, groups)
        rest, number = divmod(scramble(key), len(seeds))
        level = levels[rest % len(levels)]
        following = (seeds[(number + step) % len(seeds)] for step in counting())
        return next(_solvable(level, following))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """Return `count` tasks with distinct seeds. Every level is used before one is used again."""
        levels, seeds = self._select(split, groups)
        limit = len(seeds) // 4  # at least a third of the seeds are solvable in every level
        if count is None or not 0 <= count <= limit:
            count_text = "all" if count is None else count
            raise UsageError(f"{count_text} tasks were asked for; {self.name!r} returns at most {limit} at once")
        rng = random.Random(seed)
        fresh, tasks = _distinct(rng, seeds), list[Task]()
        while len(tasks) < count:
            chosen = rng.sample(levels, len(levels))[: count - len(tasks)]
            tasks += [next(_solvable(level, fresh)) for level in chosen]
        return tasks

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the selected levels."""
        present = {GROUP_OF[level] for level in self.levels}
        return tuple(group for group in GROUPS if group in present)

    @property
    def digest(self) -> str:
        """SHA-256 of the levels and their groups, the splits, minigrid's version and the draws of some keys."""
        return _digest(self.levels)

    def difficulty(self, task: Task) -> Difficulty | None:
        """Return the difficulty of a task, with macro actions; None if the oracle does not solve it."""
        return measure(task.data["level"], task.data["seed"])

    def _select(self, split: str | None, groups: Sequence[str] | None) -> tuple[list[str], range]:
        check_selection(self, split, groups)
        levels = [level for level in self.levels if groups is None or GROUP_OF[level] in groups]
        return levels, _ALL_SEEDS if split is None else SEEDS[cast(Split, split)]


@lru_cache(maxsize=256)  # a server reports it for every environment, and computing it generates a dozen worlds
def _digest(levels: tuple[str, ...]) -> str:
    tasks = BabyTasks(levels)
    groups = [[level, GROUP_OF[level]] for level in levels]
    splits = [[split, seeds.start, seeds.stop] for split, seeds in SEEDS.items()]
    drawn = [asdict(tasks.draw(key, split=split)) for key in range(4) for split in SEEDS]
    return canonical_hash([tasks.name, tasks.version, MINIGRID, groups, splits, drawn])


def unsolvable(world: GridWorld) -> bool:
    """Return true if it is proven that no sequence of actions solves a world.

    This happens if one door must be opened before (or after) another one and the second clause is strict: the missions
    of two clauses in OpenDoorsOrderN2Debug and OpenDoorsOrderN4Debug. It also happens if the only key to a locked room
    is in that room: some worlds of Unlock and GoToImpUnlock, because minigrid compares room numbers by identity.
    """
    return bool(why_unsolvable(world))


def _describe(world: GridWorld) -> Task:
    level, seed = world.levelname, world.seed
    split = next(split for split, seeds in SEEDS.items() if seed in seeds)
    data = {"level": level, "seed": seed, "max_steps": world.max_steps, "solvable": not unsolvable(world)}
    return Task(f"babyai/{level}/{seed}", split, GROUP_OF[level], world.mission, data)


def _solvable(level: str, seeds: Iterable[int]) -> Iterator[Task]:
    tasks = (_describe(generated_world(level, seed)) for seed in seeds)
    return (task for task in tasks if task.data["solvable"])


def _distinct(rng: random.Random, seeds: range) -> Iterator[int]:
    """Yield seeds in random order without repetition."""
    used = set[int]()
    while True:
        seed = rng.choice(seeds)
        if seed not in used:
            used.add(seed)
            yield seed


_ALL_SEEDS = range(min(seeds.start for seeds in SEEDS.values()), max(seeds.stop for seeds in SEEDS.values()))
