"""Notes on episodes of an agent that may attempt a task several times."""

from __future__ import annotations

from collections.abc import Iterable

from agentgym_envs.evaluate.episodes import earlier_attempts, recorded_attempts
from agentgym_envs.trajectory import Trajectory


def max_attempts(episodes: Iterable[Trajectory]) -> int:
    """The largest number of attempts in an episode. After each failed one, the agent was given the outcome."""
    return max((max(recorded_attempts(e.meta), 1 + len(earlier_attempts(e.meta))) for e in episodes), default=1)


def attempts_notes(episodes: Iterable[Trajectory]) -> list[str]:
    """A note on the meaning of success, if an episode had several attempts."""
    attempts = max_attempts(episodes)
    if attempts == 1:
        return []
    return [
        f"Success is measured after up to {attempts} attempts per episode: the agent was given the outcome of each "
        "attempt and stopped after a success. Compare it with another agent's pass@k, not with its success."
    ]
