"""What Tab offers: environments, splits, groups and tasks. What cannot be found out offers nothing and says nothing."""

from __future__ import annotations

import contextlib
import os

from agentgym_envs.errors import AgentGymError
from agentgym_envs.task import SPLITS, TaskSet, TaskTable

_MOST = 200
"""More are of no use in a terminal."""


def envs(incomplete: str) -> list[str]:
    """Names and ids of environments; the ids once somebody has begun to write one."""
    from agentgym_envs.cli.common import SHORT

    found = [*SHORT] + ([*SHORT.values()] if "AgentGym/".startswith(incomplete[:9]) and incomplete else [])
    return [name for name in found if name.startswith(incomplete)]


def splits(incomplete: str) -> list[str]:
    """The splits, and all of them."""
    return [name for name in (*SPLITS, "all") if name.startswith(incomplete)]


def groups(incomplete: str) -> list[str]:
    """The groups of the environment that stands before."""
    tasks = _tasks_of_line()
    return [] if tasks is None else [name for name in tasks.groups if name.startswith(incomplete)]


def tasks(incomplete: str) -> list[str]:
    """The tasks of the environment that stands before, where they are a table."""
    table = _tasks_of_line()
    found = table if isinstance(table, TaskTable) else ()
    return [task.id for task in found if task.id.startswith(incomplete)][:_MOST]


def _tasks_of_line() -> TaskSet | None:
    """The tasks of the environment in the line so far, which the shell hands over in a variable.

    The parser is of no use: it gives up at the option that is being written, before it looks at arguments.
    """
    from agentgym_envs.cli.common import SHORT, find_env, make_env
    from agentgym_envs.core import text_env

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    names = [word for word in line.split()[2:] if word.lower() in SHORT or word in SHORT.values()]
    with contextlib.suppress(AgentGymError):
        if names:
            env = make_env(find_env(names[0]), {})
            env.close()
            return text_env(env).tasks
    return None
