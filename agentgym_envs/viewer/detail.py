"""One episode as JSON for the page, with thought and command of each turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.times import EpisodeTimes
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_envs.viewer.answers import grammar_of, read_answer
from agentgym_envs.viewer.team import team_of

_PICTURE = ("screenshot", "boxes")
"""The keys of an info, and of a record's `meta`, with a web page's picture; its panel shows them."""
_SEPARATE_FIELDS = ("invalid_action", "finish", "score", *_PICTURE)
_MAX_DEPTH, _TOO_DEEP = 50, "(nested too deeply to be shown)"


def detail_of(trajectory: Trajectory) -> dict[str, Any]:
    """The episode as JSON: the response of `/api/episodes/ID` without the row and its siblings."""
    grammar = grammar_of(trajectory)
    shown = {
        "instructions": _text(trajectory.instructions),
        "turns": _with_times(turns_of([_plain(_fields(turn)) for turn in trajectory.turns], grammar), trajectory.times),
        "final_observation": _text(trajectory.final_observation),
        "error": None if trajectory.error is None else _text(trajectory.error),
        "seconds": trajectory.times and [trajectory.times.generation, trajectory.times.environment],
        "meta": {name: value for name, value in trajectory.meta.items() if name not in ("attempts", *_PICTURE)},
        "env_kwargs": trajectory.env_kwargs,
        "task_data": trajectory.task.data,
        "attempts": _attempts(trajectory.meta.get("attempts"), grammar),
        "team": team_of(trajectory),
    }
    return {name: _bounded(value) for name, value in shown.items()}


def turns_of(turns: Sequence[Mapping[str, Any]], grammar: ActionGrammar) -> list[dict[str, Any]]:
    """Convert turns for the page. `score` is the score so far: the environment's, else the sum of the rewards."""
    shown, total = [], 0.0
    for turn in turns:
        info = turn["info"]
        total += turn["reward"]
        thought, command = read_answer(turn["action"], grammar)
        score = info.get("score")
        shown.append(
            {
                "observation": turn["observation"],
                "action": turn["action"],
                "thought": thought,
                "command": command,
                "reward": turn["reward"],
                "score": score if isinstance(score, int | float) else total,
                "invalid": info.get("invalid_action"),
                "truncated": info.get("finish") == "length",
                "info": {name: value for name, value in info.items() if name not in _SEPARATE_FIELDS},
            }
        )
    return shown


def _with_times(turns: list[dict[str, Any]], times: EpisodeTimes | None) -> list[dict[str, Any]]:
    """The turns with their seconds of generation and environment, if the times of all turns are known."""
    if times is None or len(times.turns) != len(turns):
        return turns
    return [{**turn, "seconds": list(when[1:])} for turn, when in zip(turns, times.turns, strict=True)]


def _plain(turn: Any) -> dict[str, Any]:
    """A recorded turn, also of an earlier attempt. Values of a wrong type are converted to text or dropped."""
    fields: Mapping[str, Any] = turn if isinstance(turn, Mapping) else {}
    info = fields.get("info")
    return {
        "observation": _text(fields.get("observation")),
        "action": _text(fields.get("action")),
        "reward": _number(fields.get("reward")) or 0.0,
        "info": info if isinstance(info, Mapping) else {},
    }


def _fields(turn: Turn) -> dict[str, Any]:
    """The fields of a turn. `asdict` would copy a deeply nested `info` recursively."""
    return {"observation": turn.observation, "action": turn.action, "reward": turn.reward, "info": turn.info}


def _attempts(attempts: Any, grammar: ActionGrammar) -> list[dict[str, Any]]:
    """The earlier attempts of a reflecting agent."""
    return [
        {
            "turns": turns_of([_plain(turn) for turn in _list(one.get("turns"))], grammar),
            "score": _number(one.get("score")),
            "success": bool(one.get("success")),
            "stop": _text(one.get("stop_reason")),
            "lesson": _text(one.get("lesson")),
        }
        for one in _list(attempts)
        if isinstance(one, Mapping)
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bounded(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """Replace values that are nested too deeply for JSON writers and browsers."""
    if isinstance(value, Mapping):
        return {name: _bounded(item, depth - 1) for name, item in value.items()} if depth else _TOO_DEEP
    if isinstance(value, list | tuple):
        return [_bounded(item, depth - 1) for item in value] if depth else _TOO_DEEP
    return value
