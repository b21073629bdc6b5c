"""`--tasks FILE`: ids of ours, one a line or as JSON, and the files of AgentGym-RL, `[{"item_id": "textcraft_17"}]`.

An item of AgentGym-RL is a scenario and an index; what an index means is told by the tables that also serve its
protocol. For SciWorld that is the numbering of AgentGym's server, or that of its published data in an environment
with `tasks=agentgym-published`. Indices of `searchqa` are rows of the published questions, which an environment has
with `questions=flashrag` or `questions=DIR`, and those of `webarena` are tasks of the original sites.
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
_FEW = 3
"""So many wrong ids are named in an error."""


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The names of tasks that a file holds, each once, in its order."""

    path: str
    names: tuple[str, ...]

    def fingerprint(self) -> dict[str, Any]:
        """What tells it from another: how many names, and a SHA-256 of them."""
        return {"named": len(self.names), "sha256": canonical_hash(list(self.names))}

    def find(self, env_id: str, env_args: Mapping[str, Any], tasks: TaskSet) -> dict[str, Task]:
        """Those of the names that are tasks of this environment, in their order. Two names may be of one task."""
        found = {name: _task(name, tasks) or _task(translate(name, env_id, env_args), tasks) for name in self.names}
        return {name: task for name, task in found.items() if task is not None}

    def refuse(self, unknown: Sequence[str], envs: Sequence[str]) -> UsageError:
        """The error that names the first ids which none of the environments knows."""
        few = ", ".join(map(repr, unknown[:_FEW])) + (", …" if len(unknown) > _FEW else "")
        hint = ""
        if any(name.startswith(("searchqa_", "webarena_")) for name in unknown):
            hint = (
                "; searchqa_N needs the published questions (--env-arg questions=flashrag), webarena_N the "
                "original sites (an environment of WebArenaOfficial)"
            )
        tasks, are = "task" if len(self.names) == 1 else "tasks", "is" if len(unknown) == 1 else "are"
        return UsageError(
            f"{len(unknown)} of the {len(self.names)} {tasks} that {self.path} names {are} none of {', '.join(envs)}: "
            f"{few}{hint}; mend the file, or leave them out with --skip-unknown"
        )


def read_task_file(path: str) -> TaskFile:
    """The names in a file. Raises UsageError if it cannot be read, names nothing, or holds something else."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"--tasks takes a number or a file, and {path!r} is neither") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file of tasks {path} cannot be read: {error}") from None
    names = tuple(dict.fromkeys(_name(path, place, entry) for place, entry in enumerate(_entries(path, text), 1)))
    if not names:
        raise UsageError(f"the file of tasks {path} names no task")
    return TaskFile(path, names)


def translate(name: str, env_id: str, env_args: Mapping[str, Any]) -> str | None:
    """The id of ours for an item of AgentGym-RL, or None if it is none, or one of another scenario."""
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

    if scenario == "searchqa":  # of which AgentGym has one, and this suite two: a wrong answer ends it, or goes on
        return env_id.startswith("AgentGym/Search")
    return ids.scenario_of(env_id) == scenario


def _task(task_id: str | None, tasks: TaskSet) -> Task | None:
    try:
        return None if task_id is None else tasks.get(task_id)
    except AgentGymError:
        return None


def _entries(path: str, text: str) -> list[Any]:
    """What the file lists: a JSON list, JSON lines, or lines of text."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines or lines[0][0] not in '[{"':
        return lines
    try:
        if lines[0][0] == "[":
            return list(json.loads(text))
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the file of tasks {path} is no JSON: {error}") from None


def _name(path: str, place: int, entry: Any) -> str:
    value = next((entry[key] for key in _KEYS if key in entry), None) if isinstance(entry, dict) else entry
    if not isinstance(value, str):
        raise UsageError(
            f'entry {place} of the file of tasks {path} is {entry!r:.80}; a task is its id, {{"id": ...}}, or '
            '{"item_id": "textcraft_17"} as in AgentGym-RL'
        )
    return value
