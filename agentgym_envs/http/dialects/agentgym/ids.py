"""AgentGym's numberings of its tasks, as tables: which index means what. BabyAI's is in `babyai.levels`.

Source: the servers of AgentGym at commit 3ef9235; ScienceWorld's variations are those of scienceworld 1.2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.errors import UnknownTask
from agentgym_envs.task import Split

PREFIXES = {
    "textcraft": "AgentGym/TextCraft",
    "babyai": "AgentGym/BabyAI",
    "sciworld": "AgentGym/SciWorld",
    "searchqa": "AgentGym/Search",
    "webarena": "AgentGym/WebArena",
}
"""AgentGym's scenarios, and how the ids of our environments of the same kind begin."""

TEXTCRAFT_GOALS = 544
"""Goals sorted by depth, each depth in the order of the sorted recipe files; an index is taken modulo this."""

WEBARENA_TASKS = 812
"""An index is the task's own number."""

_SCIWORLD = (
    ("boil", 30),
    ("melt", 30),
    ("freeze", 30),
    ("change-the-state-of-matter-of", 30),
    ("use-thermometer", 540),
    ("measure-melting-point-known-substance", 436),
    ("measure-melting-point-unknown-substance", 300),
    ("power-component", 20),
    ("power-component-renewable-vs-nonrenewable-energy", 20),
    ("test-conductivity", 900),
    ("test-conductivity-of-unknown-substances", 600),
    ("find-living-thing", 300),
    ("find-non-living-thing", 300),
    ("find-plant", 300),
    ("find-animal", 300),
    ("chemistry-mix", 32),
    ("chemistry-mix-paint-secondary-color", 36),
    ("chemistry-mix-paint-tertiary-color", 36),
    ("lifespan-longest-lived", 125),
    ("lifespan-shortest-lived", 125),
    ("lifespan-longest-lived-then-shortest-lived", 125),
    ("identify-life-stages-1", 14),
    ("identify-life-stages-2", 10),
)
_NOT_PUBLISHED = "measure-melting-point-unknown-substance"  # task 2-3


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


def _parts(rows: Sequence[tuple[str, int]], first: int = 0, split: Split = "test") -> tuple[Part, ...]:
    parts: list[Part] = []
    for name, length in rows:
        parts.append(Part(name, first, length, split))
        first += length
    return tuple(parts)


SCIWORLD_4639 = _parts(_SCIWORLD)
"""The numbering of AgentGym's server: 23 tasks, 4,639 variations."""
SCIWORLD_4339 = _parts([row for row in _SCIWORLD if row[0] != _NOT_PUBLISHED])
"""That of AgentGym's published data, which lacks task 2-3 (its issue 49): from index 1,096 on 300 lower."""

_SEARCH_TEST = (
    ("nq", 3_610),
    ("triviaqa", 11_313),
    ("popqa", 14_267),
    ("hotpotqa", 7_405),
    ("2wikimultihopqa", 12_576),
    ("musique", 2_417),
    ("bamboogle", 125),
)
SEARCH = (
    *_parts(_SEARCH_TEST),
    *_parts([("nq", 79_168), ("hotpotqa", 90_447)], first=51_713, split="train"),
)
"""Test questions of seven data sets, then the training questions of two."""


class Found(NamedTuple):
    """A part and a place in it, counted from 0."""

    part: Part
    offset: int


def size(parts: Sequence[Part]) -> int:
    """How many indices a numbering has."""
    return parts[-1].first + parts[-1].length


def find(parts: Sequence[Part], index: int) -> Found:
    """What an index means. Raises UnknownTask."""
    for part in parts:
        if part.first <= index < part.first + part.length:
            return Found(part, index - part.first)
    raise UnknownTask(f"there is no index {index}; they go from 0 to {size(parts) - 1}")
