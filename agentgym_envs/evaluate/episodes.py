"""What one episode says, and the episodes of one task together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from agentgym_envs.trajectory import Trajectory

TaskKey = tuple[str, str]
"""Environment and id of a task: two environments may use one id."""
_T = TypeVar("_T")


class Facts(NamedTuple):
    """What the metrics read of an episode.

    `turns` and `invalid` count the earlier tries of a reflecting agent too. `tokens` counts what the policy wrote, and
    is None where no one counted.
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


def facts_of(trajectory: Trajectory) -> Facts:
    """The facts of an episode."""
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
    for info in _earlier_turns(trajectory.meta.get("attempts")):
        turns += 1
        invalid += info.get("invalid_action") is not None
    return Facts(
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
    """The episodes of each task."""
    return split(trajectories, lambda t: (t.env_id, t.task.id))


def split(items: Iterable[_T], key: Callable[[_T], Any]) -> dict[Any, list[_T]]:
    """The items by their key, in the order of first appearance."""
    parts: dict[Any, list[_T]] = {}
    for item in items:
        parts.setdefault(key(item), []).append(item)
    return parts


def mean_of(episodes: Sequence[Trajectory], value: Callable[[Trajectory], float]) -> float:
    """The mean over the usable ones."""
    return fmean(value(episode) for episode in episodes if episode.usable)


def _earlier_turns(tries: Any) -> Iterator[dict[str, Any]]:
    """The infos of the turns of earlier tries; `meta` is the recorder's, so another may mean something else by it."""
    for attempt in tries if isinstance(tries, list) else ():
        turns = attempt.get("turns") if isinstance(attempt, dict) else None
        for turn in turns if isinstance(turns, list) else ():
            info = turn.get("info") if isinstance(turn, dict) else None
            yield info if isinstance(info, dict) else {}


def _agent_tokens(meta: Any, counted: int | None) -> int | None:
    """What the agent says of all that it wrote, plans and lessons included; without an agent, what the turns say."""
    agent = meta.get("agent")
    if not isinstance(agent, dict) or "answer_tokens" not in agent:
        return counted
    tokens = agent["answer_tokens"]
    return tokens if isinstance(tokens, int) else None
