"""Agents: how a model reasons in a multi-turn episode, independent of the model and of the environment."""

from agentgym_envs.rollout.agents.context import Context, parse_context
from agentgym_envs.rollout.agents.models import ChatModel, Dialogue, Model, TokenModel
from agentgym_envs.rollout.agents.play import (
    AgentEpisode,
    FailedAttempt,
    play_agent,
    play_many_agents,
    play_many_as_agent,
)
from agentgym_envs.rollout.agents.styles import AGENTS, Agent, make_agent
from agentgym_envs.rollout.policies import ModelReply

__all__ = [
    "AGENTS",
    "Agent",
    "AgentEpisode",
    "ChatModel",
    "Context",
    "Dialogue",
    "FailedAttempt",
    "Model",
    "ModelReply",
    "TokenModel",
    "make_agent",
    "parse_context",
    "play_agent",
    "play_many_agents",
    "play_many_as_agent",
]
