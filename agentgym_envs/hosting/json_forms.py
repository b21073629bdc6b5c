"""The JSON forms of tasks, steps, errors and random states, and the replies of remote methods."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, TypedDict

from agentgym_envs import errors
from agentgym_envs.core import describe
from agentgym_envs.errors import AgentGymError, EnvError, UsageError
from agentgym_envs.image_files import from_data_url, to_data_url
from agentgym_envs.image_observations import text_of
from agentgym_envs.task import Task

SCREENSHOT = "screenshot"
"""The key of an info with an image: bytes in memory, a `data:` URL in JSON."""


class TaskReply(TypedDict):
    """A task."""

    id: str
    split: str
    group: str
    goal: str
    data: dict[str, Any]


class DifficultyReply(TypedDict):
    """Measures of a task's difficulty: turns of the oracle, choices per turn, unneeded things, length in characters."""

    turns: int
    branching: float | None
    distractors: int | None
    observation_chars: int | None


class ResetReply(TypedDict):
    """The first observation of an episode."""

    observation: str
    info: dict[str, Any]
    task: TaskReply


class StepReply(TypedDict):
    """The five values that Gymnasium's `step` returns, by name."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class StatusReply(TypedDict):
    """The state of the episode; `stop_reason` is null while it runs, and "closed" before the first one."""

    task_id: str | None
    seed: int
    turn: int
    score: float
    success: bool
    stop_reason: str | None


class RestoreReply(StatusReply):
    """The last observation, and the state of the episode."""

    observation: str


class SnapshotReply(TypedDict):
    """The episode so far as task, seed and actions: the body of `restore`."""

    task_id: str
    seed: int
    actions: list[str]


class CommandReply(TypedDict):
    """A random command, and the state of the generator after it."""

    command: str
    rng: list[Any]


class ImageReply(TypedDict):
    """An RGB image, row by row: `shape` is [height, width, 3]; `zlib` has the bytes, compressed and in base64."""

    shape: list[int]
    zlib: str


class TaskSetDescription(TypedDict):
    """The tasks of an environment; `digest` is the SHA-256 over everything that determines them.

    `counts` is the number of tasks by group and split, null if the set is unlimited.
    """

    name: str
    version: int
    digest: str
    groups: list[str]
    counts: dict[str, dict[str, int]] | None


class EnvDescription(TypedDict):
    """An environment before its first episode. `instructions` is the text for a model's system prompt."""

    rules: str
    instructions: str
    split: str | None
    groups: list[str] | None
    render_modes: list[str]
    tasks: TaskSetDescription


def task_to_json(task: Task) -> TaskReply:
    """A task as JSON; `Task(**data)` is the inverse."""
    return {"id": task.id, "split": task.split, "group": task.group, "goal": task.goal, "data": dict(task.data)}


def step_to_json(result: tuple[str, Any, bool, bool, dict[str, Any]]) -> StepReply:
    """The five values that `step` returns, by name."""
    observation, reward, terminated, truncated, info = result
    return {
        "observation": text_of(observation),
        "reward": float(reward),
        "terminated": bool(terminated),
        "truncated": bool(truncated),
        "info": info_to_json(info),
    }


def info_to_json(info: dict[str, Any]) -> dict[str, Any]:
    """An info as JSON: its screenshot, if it has one, becomes a `data:` URL. Raises EnvError if it is too large."""
    image = info.get(SCREENSHOT)
    if not isinstance(image, bytes):
        return info
    try:
        return {**info, SCREENSHOT: to_data_url(image)}
    except (TypeError, ValueError) as error:
        raise EnvError(f"the screenshot cannot be sent: {error}") from None


def info_from_json(info: dict[str, Any]) -> dict[str, Any]:
    """The info that `info_to_json` converted. Raises EnvError if its screenshot is no image, or too large."""
    if info.get(SCREENSHOT) is None:
        return info
    try:
        return {**info, SCREENSHOT: from_data_url(info[SCREENSHOT])}
    except ValueError as error:
        raise EnvError(f"the server sent a screenshot that cannot be read: {error}") from None


def error_to_json(error: BaseException) -> dict[str, str]:
    """An error as class name and message; errors of other libraries become an EnvError."""
    if isinstance(error, AgentGymError):
        return {"type": type(error).__name__, "message": str(error)}
    return {"type": "EnvError", "message": describe(error)}


def error_from_json(data: Mapping[str, Any]) -> AgentGymError:
    """The error that `error_to_json` converted; an unknown class becomes an EnvError."""
    kind = getattr(errors, str(data.get("type")), None)
    message = str(data.get("message"))
    if isinstance(kind, type) and issubclass(kind, AgentGymError):
        return kind(message)
    return EnvError(f"{data.get('type')}: {message}")


def rng_to_json(rng: random.Random) -> list[Any]:
    """The state of a generator."""
    version, numbers, gauss = rng.getstate()
    return [version, list(numbers), gauss]


def set_rng(rng: random.Random, state: list[Any]) -> None:
    """Set the state of a generator to what `rng_to_json` returned. Raises UsageError for anything else."""
    try:
        version, numbers, gauss = state
        rng.setstate((version, tuple(numbers), gauss))
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"this is not the state of a random.Random: {error}") from None
