"""What Tab offers: environments, groups, tasks and what else an option takes by name.

What cannot be found out offers nothing and says nothing. Where nothing is offered, a shell offers files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import islice

from agentgym_envs.errors import AgentGymError
from agentgym_envs.task import SPLITS, TaskSet, TaskTable

Complete = Callable[[str], list[str]]
_MOST = 200
"""More are of no use in a terminal."""
_POLICIES = ("oracle", "random", "replay:", "openai:", "hf:")
_CONTEXTS = ("full", "last:", "summarise:")


def choices(*names: str) -> Complete:
    """Offers these names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


splits, policies, contexts = choices(*SPLITS, "all"), choices(*_POLICIES), choices(*_CONTEXTS)


def envs(incomplete: str) -> list[str]:
    """Names and ids of environments; the ids once somebody has begun to write one."""
    from agentgym_envs.cli.common import SHORT

    found = [*SHORT] + ([*SHORT.values()] if "AgentGym/".startswith(incomplete[:9]) and incomplete else [])
    return [name for name in found if name.startswith(incomplete)]


def agents(incomplete: str) -> list[str]:
    """The ways in which a model reasons."""
    from agentgym_envs.rollout import AGENTS

    return choices(*AGENTS)(incomplete)


def grammars(incomplete: str) -> list[str]:
    """The ways in which an action is written."""
    from agentgym_envs.grammar import GRAMMARS

    return choices(*GRAMMARS)(incomplete)


def groups(incomplete: str) -> list[str]:
    """The groups of the environments that stand before."""
    return choices(*dict.fromkeys(group for tasks in _tasks_of_line() for group in tasks.groups))(incomplete)


def group_list(incomplete: str) -> list[str]:
    """The same for the last of some that commas separate; what stands there already is not offered again."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in groups(last) if name not in before.split(",")]


def tasks(incomplete: str) -> list[str]:
    """The tasks of the environments that stand before, where they are a table."""
    return _ids(_tasks_of_line(), incomplete)


def tasks_of(env: str) -> Complete:
    """Offers the tasks of one environment, whatever stands before."""
    return lambda incomplete: _ids(_tasks_of(env), incomplete)


def _ids(sets: Iterator[TaskSet], incomplete: str) -> list[str]:
    tables = (tasks for tasks in sets if isinstance(tasks, TaskTable))
    return list(islice((task.id for table in tables for task in table if task.id.startswith(incomplete)), _MOST))


def _tasks_of_line() -> Iterator[TaskSet]:
    """The tasks of each environment in the line so far, which the shell hands over in a variable.

    The parser is of no use: it gives up at the option that is being written, before it looks at arguments.
    """
    from agentgym_envs.cli.common import SHORT

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    for word in line.split()[2:]:
        if word.lower() in SHORT or word in SHORT.values():
            yield from _tasks_of(word)


def _tasks_of(name: str) -> Iterator[TaskSet]:
    """The tasks of the environment, or nothing if it cannot be made here."""
    from agentgym_envs.cli.common import find_env, make_env
    from agentgym_envs.core import text_env

    with contextlib.suppress(AgentGymError):
        env = make_env(find_env(name), {})
        env.close()
        yield text_env(env).tasks
