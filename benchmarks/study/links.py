"""The search setting of the study: pages that lead to one another, so that distances to the answer are known.

A chain has `LENGTH` pages; each names the next one, and the last one holds a treasure. The question at distance d
begins d - 1 pages before the end: as many searches, and the answer. Chains of the test split have pages that no
training question leads to.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

from agentgym_envs.search.corpus.embedded import cache_folder
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.index import build_index
from agentgym_envs.task import Split, Task, TaskTable
from benchmarks.study.recipes import KINDS

DISTANCES = (2, 4, 6, 8)
LENGTH = max(DISTANCES) - 1
SPLITS: dict[Split, int] = {"train": 80, "validation": 24, "test": 24}
"""The number of chains in each split."""
PLACES = "gate hall yard mill bridge tower well barn garden square lane harbour".split()  # noqa: SIM905
OWNERS = "king queen baker smith miller fisher monk".split()  # noqa: SIM905
TREASURES = "ring crown coin pearl sword book lamp bell cup mirror".split()  # noqa: SIM905
_ASKED = ("Which treasure is at the end of the way from {}?", "The way from {} ends at a treasure. Which one?")

Chain = tuple[Sequence[str], str]
"""The names of the pages and the treasure."""


@cache
def chains() -> dict[Split, list[Chain]]:
    """The chains of each split; no two have a page in common."""
    rng = random.Random(0)
    names = [" ".join(words) for words in product(OWNERS, KINDS, PLACES)]
    rng.shuffle(names)
    rest = iter(names)
    return {
        split: [([next(rest) for _ in range(LENGTH)], rng.choice(TREASURES)) for _ in range(count)]
        for split, count in SPLITS.items()
    }


@cache
def questions() -> TaskTable:
    """Two wordings for each chain and distance; the group names the distance."""
    return TaskTable("study-links", 1, list(_tasks()))


def _tasks() -> Iterator[Task]:
    for split, own in chains().items():
        for (number, (pages, treasure)), distance, (form, asked) in product(
            enumerate(own), DISTANCES, enumerate(_ASKED)
        ):
            way = pages[LENGTH - distance + 1 :]
            data = {"answers": [treasure], "queries": list(way)}
            yield Task(
                f"links/{split}-{number}-{distance}-{form}", split, f"links-{distance}", asked.format(way[0]), data
            )


def passages() -> Iterator[Passage]:
    """The pages of all chains."""
    for pages, treasure in (chain for own in chains().values() for chain in own):
        for page, following in zip(pages, [*pages[1:], ""], strict=True):
            text = f"{page} leads to {following}." if following else f"{page} has the {treasure}."
            yield Passage(page.replace(" ", "-"), f'"{page}"\n{text}')


@cache
def index() -> str:
    """The folder of the pages' index; it is built at the first call on a machine."""
    folder = cache_folder() / f"study-links-{questions().digest[:16]}"
    build_index(passages(), folder, corpus="study-links")
    return str(folder)
