"""What must be said of a policy that plays a task again until it is solved."""

from __future__ import annotations

from collections.abc import Iterable

from agentgym_envs.trajectory import Trajectory


def tries_of(episodes: Iterable[Trajectory]) -> int:
    """The most tries that an agent had at an episode, each but the first after it was told how the last one ended."""
    found = 1
    for episode in episodes:
        agent, earlier = episode.meta.get("agent"), episode.meta.get("attempts")
        told = agent.get("attempts") if isinstance(agent, dict) else None
        found = max(found, told if isinstance(told, int) else 1, 1 + len(earlier) if isinstance(earlier, list) else 1)
    return found


def retries_notes(episodes: Iterable[Trajectory]) -> list[str]:
    """The note that a reader of such a policy's success needs, if these episodes are of one."""
    tries = tries_of(episodes)
    if tries == 1:
        return []
    return [
        f"Success is that after up to {tries} tries at an episode: the agent was told whether a try had solved the "
        "task, and stopped when it had. Compare it with the pass@k of another agent rather than with its success."
    ]
