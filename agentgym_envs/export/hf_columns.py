"""The columns of a data set for the Hugging Face Hub: recorded episodes, and tasks of an environment.

A column is a row of a table: its type, its description for the card, and the function that makes its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.tasks import ExportTasks
from agentgym_envs.export.text import valid_json, valid_unicode
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, prompt_messages, strict_json

MESSAGES, FLOATS = "messages", "floats"
_SEEDS = 1 << 63


class Column(NamedTuple):
    """A column: "string", "int64", "float64", "bool", `MESSAGES` or `FLOATS`; its description; its value of a row."""

    kind: str
    about: str
    value: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class HubEpisodeRow:
    """An episode as one of its agents saw it; `agent` is "" unless it is a team's."""

    episode: ExportEpisode
    agent: str
    view: Trajectory


@dataclass(frozen=True, slots=True)
class HubTaskRow:
    """A task of an environment."""

    selection: ExportTasks
    task: Task


def episode_rows(episode: ExportEpisode) -> Iterator[HubEpisodeRow]:
    """The rows of an episode: one, or one per agent of a team."""
    whole = episode.trajectory
    views = per_agent_trajectories(whole) if is_team_record(whole) else {"": whole}
    for agent, view in views.items():
        yield HubEpisodeRow(episode, agent, view)


def _json(value: Any) -> str:
    return strict_json(valid_json(value))


def _seed(row: HubEpisodeRow) -> int:
    seed = row.view.seed
    if not -_SEEDS <= seed < _SEEDS:
        raise UsageError(f"the seed {seed} of {row.view.task.id} does not fit into the 64 bits of a column of seeds")
    return seed


def _invalid_actions(row: HubEpisodeRow) -> int:
    return sum(turn.info.get("invalid_action") is not None for turn in row.view.turns)


def _task_prompt(row: HubTaskRow) -> list[dict[str, str]]:
    return prompt_messages(row.selection.instructions, row.task.goal)


EPISODE_COLUMNS: Mapping[str, Column] = {
    "messages": Column(
        MESSAGES,
        "the conversation: instructions (system), observations (user), actions as written (assistant)",
        lambda row: row.view.messages(),
    ),
    "tools": Column(
        "string",
        "the native tools of the prompt, as a JSON list; null without any",
        lambda row: _json(row.view.meta["tools"]) if row.view.meta.get("tools") else None,
    ),
    "env": Column("string", "the id of the environment", lambda row: row.view.env_id),
    "task": Column("string", "the id of the task", lambda row: row.view.task.id),
    "group": Column("string", "the group of the task", lambda row: row.view.task.group),
    "goal": Column("string", "the goal of the task", lambda row: row.view.task.goal),
    "seed": Column("int64", "the seed; with the task it determines the episode", _seed),
    "agent": Column("string", "the agent of a team, with a row for each; empty otherwise", lambda row: row.agent),
    "turns": Column("int64", "actions taken", lambda row: len(row.view.turns)),
    "score": Column("float64", "the score, in [0, 1]", lambda row: float(row.view.score)),
    "success": Column("bool", "true if the goal was reached", lambda row: row.view.success),
    "stop_reason": Column("string", "success, failure, turn_limit, token_limit", lambda row: row.view.stop_reason),
    "rewards": Column(FLOATS, "the reward of each turn", lambda row: [float(turn.reward) for turn in row.view.turns]),
    "invalid_actions": Column("int64", "actions that the environment did not understand", _invalid_actions),
    "final_observation": Column(
        "string", "the observation after the last action, not a message", lambda row: row.view.final_observation
    ),
    "task_data": Column("string", "the data of the task, as JSON", lambda row: _json(dict(row.view.task.data))),
    "env_args": Column("string", "arguments of the environment, as JSON", lambda row: _json(dict(row.view.env_kwargs))),
    "meta": Column("string", "notes of the recorder (policy, ...), as JSON", lambda row: _json(dict(row.view.meta))),
    "episode": Column("string", "a digest of the record", lambda row: row.episode.id),
}
TASK_COLUMNS: Mapping[str, Column] = {
    "prompt": Column(
        MESSAGES, "instructions (system) and goal (user); a reset has the first observation", _task_prompt
    ),
    "env": Column("string", "the id of the environment", lambda row: row.selection.env),
    "task": Column("string", "the id of the task", lambda row: row.task.id),
    "group": Column("string", "the group of the task", lambda row: row.task.group),
    "goal": Column("string", "the goal", lambda row: row.task.goal),
    "task_data": Column("string", "the data of the task, as JSON", lambda row: _json(dict(row.task.data))),
    "difficulty": Column("string", "measures of difficulty, as JSON; null without any", lambda row: _difficulty(row)),
}


def _difficulty(row: HubTaskRow) -> str | None:
    measured = row.selection.table.difficulty(row.task)
    return None if measured is None else _json(asdict(measured))


def cells(columns: Mapping[str, Column], row: Any) -> dict[str, Any]:
    """The values of a row, with U+FFFD for lone surrogates, which Parquet does not hold."""
    return {name: _clean(column.value(row)) for name, column in columns.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {name: _clean(item) for name, item in value.items()} if isinstance(value, dict) else value
