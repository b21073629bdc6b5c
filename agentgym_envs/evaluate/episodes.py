"""The facts that metrics use of an episode, and grouping of episodes by task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from agentgym_envs.trajectory import Trajectory

TaskKey = tuple[str, str]
"""Environment and id of a task, as two environments may use the same id."""
_T = TypeVar("_T")


class EpisodeFacts(NamedTuple):
    """The facts that metrics use of an episode.

    `turns` and `invalid` include the earlier attempts of a reflecting agent. `tokens` is the number of tokens that the
    policy wrote, None if they were not counted.
    """

    key: TaskKey
    group: str
    stop_reason: str
    usable: bool
    success: bool
    score: float
    turns: int
    invalid: int
    tokens: int | None


def facts_of(trajectory: Trajectory) -> EpisodeFacts:
    """Extract the facts of an episode."""
    turns, invalid, tokens = len(trajectory.turns), 0, 0
    counted = turns > 0
    for turn in trajectory.turns:
        info = turn.info
        invalid += info.get("invalid_action") is not None
        written = info.get("tokens")
        if isinstance(written, int):
            tokens += written
        else:
            counted = False
    for info in _earlier_infos(trajectory.meta):
        turns += 1
        invalid += info.get("invalid_action") is not None
    return EpisodeFacts(
        key=(trajectory.env_id, trajectory.task.id),
        group=trajectory.task.group,
        stop_reason=trajectory.stop_reason,
        usable=trajectory.usable,
        success=trajectory.success,
        score=trajectory.score,
        turns=turns,
        invalid=invalid,
        tokens=_agent_tokens(trajectory.meta, tokens if counted else None),
    )


def by_task(trajectories: Iterable[Trajectory]) -> dict[TaskKey, list[Trajectory]]:
    """Group episodes by task."""
    return split(trajectories, lambda t: (t.env_id, t.task.id))


def split(items: Iterable[_T], key: Callable[[_T], Any]) -> dict[Any, list[_T]]:
    """Group items by a key, in the order of first appearance."""
    parts: dict[Any, list[_T]] = {}
    for item in items:
        parts.setdefault(key(item), []).append(item)
    return parts


def mean_of(episodes: Sequence[Trajectory], value: Callable[[Trajectory], float]) -> float:
    """The mean of a value over the usable episodes."""
    return fmean(value(episode) for episode in episodes if episode.usable)


def earlier_attempts(meta: Mapping[str, Any]) -> list[Any]:
    """The attempts before the last one, as a reflecting agent recorded them.

    The items are not validated: `meta` may come from any recorder.
    """
    found = meta.get("attempts")
    return found if isinstance(found, list) else []


def recorded_attempts(meta: Mapping[str, Any]) -> int:
    """The number of attempts recorded with the agent; 1 without one."""
    agent = meta.get("agent")
    found = agent.get("attempts") if isinstance(agent, dict) else None
    return found if isinstance(found, int) else 1


def _earlier_infos(meta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The infos of the turns of earlier attempts."""
    for attempt in earlier_attempts(meta):
        turns = attempt.get("turns") if isinstance(attempt, dict) else None
        for turn in turns if isinstance(turns, list) else ():
            info = turn.get("info") if isinstance(turn, dict) else None
            yield info if isinstance(info, dict) else {}


def _agent_tokens(meta: Any, counted: int | None) -> int | None:
    """The agent's count of all tokens that it wrote, including plans and lessons; without an agent, that of turns."""
    agent = meta.get("agent")
    if not isinstance(agent, dict) or "answer_tokens" not in agent:
        return counted
    tokens = agent["answer_tokens"]
    return tokens if isinstance(tokens, int) else None
