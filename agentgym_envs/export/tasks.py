"""The tasks of an environment to export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.task import Task, TaskSet


class ExportTasks(NamedTuple):
    """Tasks of an environment, with what an agent is shown: `instructions` and native `tools`.

    Attributes:
        env: the id of the environment.
        options: its arguments.
        table: all its tasks; `tasks` are those that were chosen, with `seed`.
    """

    env: str
    options: Mapping[str, Any]
    table: TaskSet
    tasks: Sequence[Task]
    seed: int
    instructions: str
    tools: Sequence[Mapping[str, Any]] = ()
