"""Shell completion: environments, groups, tasks and other values that an option takes by name.

Completion never fails: it offers nothing if the values cannot be determined. A shell then offers files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import islice

from agentgym_envs.cli.envs import SHORT_NAMES, find_env, make_env
from agentgym_envs.core import text_env
from agentgym_envs.errors import AgentGymError
from agentgym_envs.task import SPLITS, TaskSet, TaskTable

Complete = Callable[[str], list[str]]
_MAX_OFFERED = 200
_POLICIES = ("oracle", "oracle:", "random", "replay:", "openai:", "hf:")
_CONTEXTS = ("full", "last:", "summarise:")


def choices(*names: str) -> Complete:
    """Return a completion that offers these names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


splits, policies, contexts = choices(*SPLITS, "all"), choices(*_POLICIES), choices(*_CONTEXTS)


def envs(incomplete: str) -> list[str]:
    """Short names of environments; full ids as well once the input begins like one."""
    found = [*SHORT_NAMES]
    if incomplete and "AgentGym/".startswith(incomplete[:9]):
        found += SHORT_NAMES.values()
    return [name for name in found if name.startswith(incomplete)]


def agents(incomplete: str) -> list[str]:
    """Names of the agents."""
    from agentgym_envs.rollout import AGENTS

    return choices(*AGENTS)(incomplete)


def grammars(incomplete: str) -> list[str]:
    """Names of the action grammars."""
    from agentgym_envs.grammar import ENV_GRAMMARS

    return choices(*ENV_GRAMMARS)(incomplete)


def group_list(incomplete: str) -> list[str]:
    """Groups of the environments in the line, for the last of several names separated by commas.

    Names that are already in the list are not offered again.
    """
    before, comma, last = incomplete.rpartition(",")
    offered = choices(*dict.fromkeys(group for tasks in _tasks_of_line() for group in tasks.groups))(last)
    return [f"{before}{comma}{name}" for name in offered if name not in before.split(",")]


def tasks(incomplete: str) -> list[str]:
    """Task ids of the environments in the line that have a task table."""
    return _ids(_tasks_of_line(), incomplete)


def tasks_of(env: str) -> Complete:
    """Return a completion that offers the task ids of one environment."""
    return lambda incomplete: _ids(_tasks_of(env), incomplete)


def _ids(sets: Iterator[TaskSet], incomplete: str) -> list[str]:
    tables = (tasks for tasks in sets if isinstance(tasks, TaskTable))
    matching = (task.id for table in tables for task in table if task.id.startswith(incomplete))
    return list(islice(matching, _MAX_OFFERED))


def _tasks_of_line() -> Iterator[TaskSet]:
    """The tasks of each environment in the line so far, which the shell passes in an environment variable.

    Typer's parser cannot be used: it stops at the incomplete option, before it reads the arguments.
    """
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    for word in line.split()[2:]:
        if word.lower() in SHORT_NAMES or word in SHORT_NAMES.values():
            yield from _tasks_of(word)


def _tasks_of(name: str) -> Iterator[TaskSet]:
    """The tasks of an environment; nothing if it cannot be made on this machine."""
    with contextlib.suppress(AgentGymError):
        env = make_env(find_env(name), {})
        env.close()
        yield text_env(env).tasks
