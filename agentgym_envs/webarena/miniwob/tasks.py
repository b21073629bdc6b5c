"""MiniWoB's tasks: every page with every seed. The seed decides the split, so no seed is in two."""

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
"""The version of the package whose pages these are."""


class MiniWoBTasks(TaskSet):
    """The tasks `miniwob/<page>/<seed>`. Each page is drawn as often, whatever its group.

    What a task asks for is made by its page as it loads, so `goal` only names the page. `data` holds `page`, `seed` and
    `mode`: a few pages keep wordings or numbers back for tests, which are used in the splits validation and test.
    """

    name, version = "miniwob", VERSION

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask, also for a number written another way."""
        parts = task_id.split("/") if isinstance(task_id, str) else []
        page, seed = (parts[1], plain_number(parts[2])) if len(parts) == 3 and parts[0] == self.name else ("", -1)
        if page not in GROUP_OF or not 0 <= seed < SEEDS["train"].stop:
            form = f"'miniwob/<page>/<seed>' with a seed below {SEEDS['train'].stop}, such as 'miniwob/click-link/0'"
            why = f"; the page {page!r} is left out, since it {LEFT_OUT[page]}" if page in LEFT_OUT else ""
            raise UnknownTask(f"there is no task {task_id!r:.120}; ids are {form}{why}")
        return _task(page, seed)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The page and seed that a hash of `key` picks."""
        pages, seeds = self._select(split, groups)
        place, number = divmod(scramble(key), len(seeds))
        return _task(pages[place % len(pages)], seeds[number])

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` tasks of as many different seeds, with every page used before one is used again."""
        pages, seeds = self._select(split, groups)
        if count is None or not 0 <= count <= len(seeds):
            asked = "all" if count is None else count
            raise UsageError(
                f"{asked} tasks were asked for; {self.name!r} gives a count of at most {len(seeds)} at once"
            )
        rng = random.Random(seed)
        chosen = [page for _ in range(-(-count // len(pages))) for page in rng.sample(pages, len(pages))]
        return [_task(page, number) for page, number in zip(chosen, rng.sample(seeds, count), strict=False)]

    @property
    def groups(self) -> tuple[str, ...]:
        """Kinds of pages, by what has to be done there."""
        return tuple(GROUP_PAGES)

    def counts(self) -> Mapping[str, Mapping[Split, int]]:
        """See `TaskSet.counts`."""
        return {
            group: {split: len(pages) * len(seeds) for split, seeds in SEEDS.items()}
            for group, pages in GROUP_PAGES.items()
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the pages and their groups, their version and the splits."""
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
