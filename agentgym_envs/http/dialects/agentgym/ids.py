"""AgentGym's numberings of its tasks, as tables: which index means what.

BabyAI's is in `babyai.levels`, ScienceWorld's in `sciworld.tasks`, that of the questions in
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
    "searchqa": "AgentGym/SearchRetry",  # whose wrong answers go on, as there
    "webarena": "AgentGym/WebArena",
}
"""AgentGym's scenarios, and how the ids of our environments of the same kind begin."""

TEXTCRAFT_GOALS = 544
"""Goals sorted by depth, each depth in the order of the sorted recipe files; an index is taken modulo this."""

WEBARENA_TASKS = 812
"""An index is the task's own number."""


def scenario_of(env_id: str) -> str | None:
    """The scenario of AgentGym that an environment of ours is of, if any."""
    name = env_id.rpartition(":")[2]
    return next((scenario for scenario, prefix in PREFIXES.items() if name.startswith(prefix)), None)


class Part(NamedTuple):
    """The indices from `first` on, `length` of them, that belong to one task or data set."""

    name: str
    first: int
    length: int
    split: Split = "test"


@lru_cache(maxsize=2)
def sciworld_parts(numbering: str) -> tuple[Part, ...]:
    """The tasks of one of `sciworld.tasks.agentgym_task`'s numberings."""
    parts: list[Part] = []
    for name in choose_kinds(numbering):
        parts.append(Part(name, size(parts), len(table().kinds[name].goals)))
    return tuple(parts)


SEARCH = tuple(Part(part.name, part.first, part.length, part.split) for part in PUBLISHED)
"""Test questions of seven data sets, then the training questions of two."""


class Found(NamedTuple):
    """A part and a place in it, counted from 0."""

    part: Part
    offset: int


def size(parts: Sequence[Part]) -> int:
    """How many indices a numbering has."""
    return parts[-1].first + parts[-1].length if parts else 0


def find(parts: Sequence[Part], index: int) -> Found:
    """What an index means. Raises UnknownTask."""
    for part in parts:
        if part.first <= index < part.first + part.length:
            return Found(part, index - part.first)
    raise UnknownTask(f"there is no index {index}; they go from 0 to {size(parts) - 1}")
