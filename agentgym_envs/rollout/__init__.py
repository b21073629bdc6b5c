"""Play episodes, one (`play`) or many concurrently (`play_many`), with token engines.

`play_text` and `play_many_text` take text policies; `play_agent` and `play_many_agents` take agents over a model.
"""

from agentgym_envs.rollout.agents import (
    AGENTS,
    Agent,
    AgentEpisode,
    ChatModel,
    Context,
    TokenModel,
    make_agent,
    parse_context,
    play_agent,
    play_many_agents,
    play_many_as_agent,
)
from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import BatchEngine, CompletionEngine, Engine, Generation, Sampling, ScriptedEngine
from agentgym_envs.rollout.forks import Fork, play_forks
from agentgym_envs.rollout.oracle_labels import OracleClock, OracleLabel, play_labelled
from agentgym_envs.rollout.oracle_policy import Defects, OraclePolicy
from agentgym_envs.rollout.play import (
    EpisodeSpec,
    Limits,
    play,
    play_many,
    play_many_text,
    play_text,
    run_sync,
)
from agentgym_envs.rollout.policies import ChatPolicy, Policy, RandomPolicy, ReplayPolicy
from agentgym_envs.rollout.tokens import TokenBuilder, TokenTrajectory, encode_trajectory

__all__ = [
    "AGENTS",
    "Agent",
    "AgentEpisode",
    "BatchEngine",
    "ChatCodec",
    "ChatModel",
    "ChatPolicy",
    "CompletionEngine",
    "Context",
    "Defects",
    "Engine",
    "EpisodeSpec",
    "Fork",
    "Generation",
    "Limits",
    "OracleClock",
    "OracleLabel",
    "OraclePolicy",
    "Policy",
    "RandomPolicy",
    "ReplayPolicy",
    "Sampling",
    "ScriptedEngine",
    "TokenBuilder",
    "TokenModel",
    "TokenTrajectory",
    "encode_trajectory",
    "make_agent",
    "parse_context",
    "play",
    "play_agent",
    "play_forks",
    "play_labelled",
    "play_many",
    "play_many_agents",
    "play_many_as_agent",
    "play_many_text",
    "play_text",
    "run_sync",
]
