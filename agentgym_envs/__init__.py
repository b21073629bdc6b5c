"""A Gymnasium suite of text environments for LLM agents.

    import gymnasium as gym
    import agentgym_envs  # registers the ids

    env = gym.make("AgentGym/TextCraft-v0")
    observation, info = env.reset(seed=0)

Importing this package registers every id and loads nothing heavy.
"""

import typing

from agentgym_envs.core import Snapshot, StopReason, TextEnv, Transition
from agentgym_envs.errors import AgentGymError
from agentgym_envs.registration import env_ids, register, register_all
from agentgym_envs.schedule import FixedRounds, StepRounds
from agentgym_envs.spaces import Utf8Text
from agentgym_envs.task import Task, TaskSet, TaskTable
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn, read_trajectories
from agentgym_envs.wrappers import RecordTrajectory, ScheduledTimeLimit

if typing.TYPE_CHECKING:
    from agentgym_envs.vector import TextVectorEnv, make_vec

__version__ = "0.1.0"

__all__ = [
    "AgentGymError",
    "FixedRounds",
    "RecordTrajectory",
    "ScheduledTimeLimit",
    "Snapshot",
    "StepRounds",
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
    "Utf8Text",
    "env_ids",
    "make_vec",
    "read_trajectories",
    "register",
    "register_all",
]

register_all()


def __getattr__(name: str) -> typing.Any:
    if name in ("TextVectorEnv", "make_vec"):  # they load asyncio, which an import of the package should not
        from agentgym_envs import vector

        return getattr(vector, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
