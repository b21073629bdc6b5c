"""Per-agent trajectories: what each member of a team read and wrote in an episode."""

from __future__ import annotations

from collections.abc import Mapping

from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.multiagent.play import TeamEpisode
from agentgym_envs.rollout import TokenTrajectory
from agentgym_envs.trajectory import Trajectory

Episode = TokenTrajectory | TeamEpisode


def agent_trajectories(episode: Episode) -> Mapping[str, TokenTrajectory]:
    """The token trajectories of an episode by agent; a single agent has the name ""."""
    return episode.per_agent if isinstance(episode, TeamEpisode) else {"": episode}


def agent_views(trajectory: Trajectory) -> list[Trajectory]:
    """Split a team's joint record into one trajectory per agent; return any other record unchanged."""
    return list(per_agent_trajectories(trajectory).values()) if is_team_record(trajectory) else [trajectory]
