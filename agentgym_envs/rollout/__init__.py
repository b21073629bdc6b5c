"""Playing episodes: one as a coroutine, many bounded; by text policies or by token engines."""

from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import BatchEngine, CompletionEngine, Engine, Generation, Sampling, ScriptedEngine
from agentgym_envs.rollout.play import (
    EpisodeSpec,
    Limits,
    play,
    play_many,
    play_many_text,
    play_text,
    run_sync,
)
from agentgym_envs.rollout.policies import ChatPolicy, OraclePolicy, Policy, RandomPolicy, ReplayPolicy
from agentgym_envs.rollout.tokens import TokenBuilder, TokenTrajectory, encode_trajectory

__all__ = [
    "BatchEngine",
    "ChatCodec",
    "ChatPolicy",
    "CompletionEngine",
    "Engine",
    "EpisodeSpec",
    "Generation",
    "Limits",
    "OraclePolicy",
    "Policy",
    "RandomPolicy",
    "ReplayPolicy",
    "Sampling",
    "ScriptedEngine",
    "TokenBuilder",
    "TokenTrajectory",
    "encode_trajectory",
    "play",
    "play_many",
    "play_many_text",
    "play_text",
    "run_sync",
]
