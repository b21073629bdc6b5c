"""AgentGym's task indices: tables from an index to a task or data set.

The tables of BabyAI are in `babyai.levels`, those of ScienceWorld in `sciworld.tasks`, those of the questions in
`search.questions.flashrag`.

Source: the servers of AgentGym at commit 3ef9235.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from agentgym_envs.errors import UnknownTask
from agentgym_envs.sciworld.tasks import choose_kinds, table
from agentgym_envs.search.questions.flashrag import PUBLISHED
from agentgym_envs.task import Split

PREFIXES = {
    "textcraft": "AgentGym/TextCraft",
    "babyai": "AgentGym/BabyAI",
    "sciworld": "AgentGym/SciWorld",
    "searchqa": "AgentGym/SearchRetry",  # continues after a wrong answer, as AgentGym does
    "webarena": "AgentGym/WebArena",
}
"""AgentGym's scenarios, and the id prefixes of our environments of the same kind."""

TEXTCRAFT_GOALS = 544
"""The number of goals, sorted by depth and then by recipe file; an index is taken modulo this number."""

WEBARENA_TASKS = 812
"""The number of tasks; an index is the task's own number."""


def scenario_of(env_id: str) -> str | None:
    """AgentGym's scenario of one of our environments, if it has one."""
    name = env_id.rpartition(":")[2]
    return next((scenario for scenario, prefix in PREFIXES.items() if name.startswith(prefix)), None)


class IndexRange(NamedTuple):
    """The indices of one task or data set: `length` of them, starting with `first`."""

    name: str
    first: int
    length: int
    split: Split = "test"


@lru_cache(maxsize=2)
def sciworld_ranges(numbering: str) -> tuple[IndexRange, ...]:
    """The tasks of a numbering of `sciworld.tasks.agentgym_task`."""
    ranges: list[IndexRange] = []
    for name in choose_kinds(numbering):
        ranges.append(IndexRange(name, size(ranges), len(table().kinds[name].goals)))
    return tuple(ranges)


SEARCH = tuple(IndexRange(each.name, each.first, each.length, each.split) for each in PUBLISHED)
"""Test questions of seven data sets, then the training questions of two."""


class IndexLocation(NamedTuple):
    """A range and an offset in it, counted from 0."""

    range: IndexRange
    offset: int


def size(ranges: Sequence[IndexRange]) -> int:
    """The number of indices of a numbering."""
    return ranges[-1].first + ranges[-1].length if ranges else 0


def find(ranges: Sequence[IndexRange], index: int) -> IndexLocation:
    """Locate an index. Raises UnknownTask."""
    for each in ranges:
        if each.first <= index < each.first + each.length:
            return IndexLocation(each, index - each.first)
    raise UnknownTask(f"there is no index {index}; they go from 0 to {size(ranges) - 1}")
