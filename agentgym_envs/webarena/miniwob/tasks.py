"""MiniWoB's tasks: every page with every seed. The seed determines the split."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import cast

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.task import (
    Split,
    Task,
    TaskSet,
    canonical_hash,
    check_selection,
    plain_number,
    scramble,
)
from agentgym_envs.webarena.miniwob.pages import GROUP_OF, GROUP_PAGES, LEFT_OUT, PAGES

SEEDS: dict[Split, range] = {
    "train": range(20_000, 1_020_000),
    "validation": range(10_000, 20_000),
    "test": range(10_000),
}
"""The seeds of each split."""
VERSION = 1
MINIWOB = "1.1.0"
"""The version of the package with the pages."""


class MiniWoBTasks(TaskSet):
    """The tasks `miniwob/<page>/<seed>`. All pages are drawn with equal probability, in groups of any size.

    A page generates its objective as it loads, so `goal` only names the page. `data` holds `page`, `seed` and `mode`. A
    few pages reserve wordings or numbers for tests, which the splits validation and test use.
    """

    name, version = "miniwob", VERSION

    def get(self, task_id: str) -> Task:
        """Return the task with this id. Raises UnknownTask, also for an unusual spelling of the seed, such as "01"."""
        parts = task_id.split("/") if isinstance(task_id, str) else []
        page, seed = (parts[1], plain_number(parts[2])) if len(parts) == 3 and parts[0] == self.name else ("", -1)
        if page not in GROUP_OF or not 0 <= seed < SEEDS["train"].stop:
            form = f"'miniwob/<page>/<seed>' with a seed below {SEEDS['train'].stop}, such as 'miniwob/click-link/0'"
            why = f"; the page {page!r} is left out, since it {LEFT_OUT[page]}" if page in LEFT_OUT else ""
            raise UnknownTask(f"there is no task {task_id!r:.120}; ids are {form}{why}")
        return _task(page, seed)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """Return the task with the page and seed that a hash of `key` selects."""
        pages, seeds = self._select(split, groups)
        page_key, number = divmod(scramble(key), len(seeds))
        return _task(pages[page_key % len(pages)], seeds[number])

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """Return `count` tasks with different seeds; pages repeat only after all of them were used."""
        pages, seeds = self._select(split, groups)
        if count is None or not 0 <= count <= len(seeds):
            requested = "all" if count is None else count
            raise UsageError(
                f"{requested} tasks were asked for; {self.name!r} gives a count of at most {len(seeds)} at once"
            )
        rng = random.Random(seed)
        chosen = [page for _ in range(-(-count // len(pages))) for page in rng.sample(pages, len(pages))]
        return [_task(page, number) for page, number in zip(chosen, rng.sample(seeds, count), strict=False)]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of pages, by the kind of interaction."""
        return tuple(GROUP_PAGES)

    def counts(self) -> Mapping[str, Mapping[Split, int]]:
        """The number of tasks of each group and split."""
        return {
            group: {split: len(pages) * len(seeds) for split, seeds in SEEDS.items()}
            for group, pages in GROUP_PAGES.items()
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the pages and groups, the version and the splits."""
        splits = [[split, seeds.start, seeds.stop] for split, seeds in SEEDS.items()]
        return canonical_hash([self.name, self.version, MINIWOB, GROUP_OF, splits])

    def _select(self, split: str | None, groups: Sequence[str] | None) -> tuple[list[str], range]:
        check_selection(self, split, groups)
        pages = [page for page in PAGES if groups is None or GROUP_OF[page] in groups]
        return pages, _ALL_SEEDS if split is None else SEEDS[cast(Split, split)]


def _task(page: str, seed: int) -> Task:
    split = next(split for split, seeds in SEEDS.items() if seed in seeds)
    data = {"page": page, "seed": seed, "mode": "train" if split == "train" else "test"}
    return Task(f"miniwob/{page}/{seed}", split, GROUP_OF[page], f"Do what the page {page} asks for.", data)


_ALL_SEEDS = range(min(seeds.start for seeds in SEEDS.values()), max(seeds.stop for seeds in SEEDS.values()))
