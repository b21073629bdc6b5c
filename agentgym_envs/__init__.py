"""A Gymnasium suite of text environments for LLM agents.

    import gymnasium as gym
    import agentgym_envs  # registers the ids

    env = gym.make("AgentGym/TextCraft-v0")
    observation, info = env.reset(seed=0)

Importing this package registers every id and loads no scenario. Less common names are in its modules, such as
`agentgym_envs.errors` and `agentgym_envs.spaces`.
"""

import typing

from agentgym_envs.core import StopReason, TextEnv, Transition
from agentgym_envs.errors import AgentGymError, EnvError, EpisodeOver, InvalidAction, NoOracle, UsageError
from agentgym_envs.registration import env_ids, register
from agentgym_envs.registration import register_all as _register_all
from agentgym_envs.schedule import FixedTurnLimit, TurnLimitCurriculum
from agentgym_envs.task import Task, TaskSet, TaskTable
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn, read_trajectories
from agentgym_envs.wrappers import RecordTrajectory, ScheduledTimeLimit

if typing.TYPE_CHECKING:
    from agentgym_envs.vector import TextVectorEnv, make_vec

__version__ = "0.1.0"

__all__ = [
    "AgentGymError",
    "EnvError",
    "EpisodeOver",
    "FixedTurnLimit",
    "InvalidAction",
    "NoOracle",
    "RecordTrajectory",
    "ScheduledTimeLimit",
    "StopReason",
    "Task",
    "TaskSet",
    "TaskTable",
    "TextEnv",
    "TextVectorEnv",
    "Trajectory",
    "TrajectoryWriter",
    "Transition",
    "Turn",
    "TurnLimitCurriculum",
    "UsageError",
    "env_ids",
    "make_vec",
    "read_trajectories",
    "register",
]

_register_all()


def __getattr__(name: str) -> typing.Any:
    if name in ("TextVectorEnv", "make_vec"):  # lazily: they load asyncio
        from agentgym_envs import vector

        return getattr(vector, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
