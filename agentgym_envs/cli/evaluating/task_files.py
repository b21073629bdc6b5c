"""`--tasks FILE`: task ids, one per line or as JSON, or a file of AgentGym-RL: `[{"item_id": "textcraft_17"}]`.

An item of AgentGym-RL is a scenario and an index. The tables of the AgentGym dialect translate it to a task id. Indices
of SciWorld follow AgentGym's server, or its published data if the environment has `tasks=agentgym-published`. Indices
of `searchqa` are rows of the published questions (`questions=flashrag` or `questions=DIR`); those of `webarena` are
tasks of the original sites.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_envs.errors import AgentGymError, UsageError
from agentgym_envs.task import Task, TaskSet, canonical_hash

_ITEM = re.compile(r"([a-z]+)_([0-9]{1,9})")
_KEYS = ("id", "item_id")
_MAX_SHOWN = 3
"""The most unknown ids in an error message."""


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The distinct task names of a file, in its order."""

    path: str
    names: tuple[str, ...]

    def fingerprint(self) -> dict[str, Any]:
        """The identity of its contents: the number of names, and their SHA-256."""
        return {"named": len(self.names), "sha256": canonical_hash(list(self.names))}

    def find(self, env_id: str, env_args: Mapping[str, Any], tasks: TaskSet) -> dict[str, Task]:
        """The tasks of this environment by their name in the file. Two names may refer to one task."""
        found = {name: _task(name, tasks) or _task(translate(name, env_id, env_args), tasks) for name in self.names}
        return {name: task for name, task in found.items() if task is not None}

    def unknown_tasks_error(self, unknown: Sequence[str], envs: Sequence[str]) -> UsageError:
        """The error for names that belong to none of the environments."""
        shown = ", ".join(map(repr, unknown[:_MAX_SHOWN])) + (", …" if len(unknown) > _MAX_SHOWN else "")
        hint = ""
        if any(name.startswith(("searchqa_", "webarena_")) for name in unknown):
            hint = (
                "; searchqa_N needs the published questions (--env-arg questions=flashrag), webarena_N the "
                "original sites (an environment of WebArenaOfficial)"
            )
        tasks, belong = "task" if len(self.names) == 1 else "tasks", "belongs" if len(unknown) == 1 else "belong"
        return UsageError(
            f"{len(unknown)} of the {len(self.names)} {tasks} in {self.path} {belong} to none of {', '.join(envs)}: "
            f"{shown}{hint}; correct the file, or skip them with --skip-unknown"
        )


def read_task_file(path: str) -> TaskFile:
    """Read a task file. Raises UsageError if it cannot be read, is empty or has another format."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"--tasks takes a number or a file, and {path!r} is neither") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the task file {path} cannot be read: {error}") from None
    names = tuple(dict.fromkeys(_name(path, number, entry) for number, entry in enumerate(_entries(path, text), 1)))
    if not names:
        raise UsageError(f"the task file {path} contains no task")
    return TaskFile(path, names)


def translate(name: str, env_id: str, env_args: Mapping[str, Any]) -> str | None:
    """Return our id for an item of AgentGym-RL; None for other names and items of another scenario."""
    from agentgym_envs.http.dialects.agentgym.scenarios import SCENARIOS

    match = _ITEM.fullmatch(name)
    if match is None or not _is_of(match[1], env_id):
        return None
    published = env_args.get("tasks") == "agentgym-published"
    scenario = "sciworld-4339" if match[1] == "sciworld" and published else match[1]
    [protocol] = [protocol() for protocol in SCENARIOS if protocol.name == scenario]
    try:
        return str(protocol.options_of(int(match[2]))["task"])
    except AgentGymError:
        return None


def _is_of(scenario: str, env_id: str) -> bool:
    from agentgym_envs.http.dialects.agentgym import ids

    if scenario == "searchqa":  # Search and SearchRetry: a wrong answer ends the first and not the second
        return env_id.startswith("AgentGym/Search")
    return ids.scenario_of(env_id) == scenario


def _task(task_id: str | None, tasks: TaskSet) -> Task | None:
    try:
        return None if task_id is None else tasks.get(task_id)
    except AgentGymError:
        return None


def _entries(path: str, text: str) -> list[Any]:
    """The entries of a JSON list, JSON lines, or lines of text."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines or lines[0][0] not in '[{"':
        return lines
    try:
        if lines[0][0] == "[":
            return list(json.loads(text))
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the task file {path} is not valid JSON: {error}") from None


def _name(path: str, number: int, entry: Any) -> str:
    value = next((entry[key] for key in _KEYS if key in entry), None) if isinstance(entry, dict) else entry
    if not isinstance(value, str):
        raise UsageError(
            f'entry {number} of the task file {path} is {entry!r:.80}; write the id of a task, {{"id": ...}}, or '
            '{"item_id": "textcraft_17"} as in AgentGym-RL'
        )
    return value
