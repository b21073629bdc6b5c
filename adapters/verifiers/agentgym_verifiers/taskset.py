"""The taskset: the tasks of an environment, each with its seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.grammar import tools_of
from agentgym_envs.hosting.session_host import make_env
from agentgym_envs.rollout.play import check_text_only


class AgentGymData(vf.TaskData):
    """The data of a task. A prompt of None means that the environment speaks first."""

    env_id: str
    env_args: dict[str, Any]
    task_id: str
    group: str
    seed: int


class AgentGymTask(vf.Task[AgentGymData]):
    """One episode: a task and a seed."""

    @property
    def key(self) -> str:
        """The name of the episode, which does not depend on its position in the taskset."""
        return f"{self.data.env_id}/{self.data.task_id}#{self.data.seed}"


class AgentGymConfig(vf.TasksetConfig):
    """The options of the taskset (`--env.taskset.*`)."""

    env_id: str = "AgentGym/TextCraft-v0"
    """An environment of this suite, or your own as `module:Id`."""
    split: str = "train"
    """train, validation or test."""
    groups: list[str] | None = None
    """Names of task groups; None for all."""
    count: int | None = None
    """The number of tasks, chosen by `seed`; None for all."""
    seed: int = 0
    """Chooses the tasks, and is the seed of their episodes. Rollouts of one task begin equal."""
    env_args: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment, such as grammar."""


class AgentGymTaskset(vf.Taskset[AgentGymTask, AgentGymConfig]):
    """The tasks of one environment of the suite."""

    def load(self) -> Iterator[AgentGymTask]:
        """Yield the tasks. Raises UsageError for an unknown environment or argument, or for too few tasks."""
        config = self.config
        arguments = {"split": config.split, **config.env_args}
        with closing(make_env(config.env_id, arguments)) as made:
            base = text_env(made)
            _check(base)
            prompt = None if is_team(base) else base.instructions or None
            for task in base.tasks.sample(config.count, split=config.split, groups=config.groups, seed=config.seed):
                data = AgentGymData(
                    id=task.id,
                    name=f"{task.group}/{task.id}",
                    description=task.goal,
                    prompt=None,
                    system_prompt=prompt,
                    env_id=config.env_id,
                    env_args=arguments,
                    task_id=task.id,
                    group=task.group,
                    seed=config.seed,
                )
                yield AgentGymTask(data, config.task)


def is_team(env: TextEnv) -> bool:
    """True for a team in its joint form: each agent has its own conversation."""
    from agentgym_envs.multiagent.joint import JointEnv

    return isinstance(env, JointEnv)


def _check(env: TextEnv) -> None:
    """Raise UsageError for an environment that text alone cannot play."""
    check_text_only(env)
    if tools_of(env.grammar):
        raise UsageError(
            f"the grammar {env.grammar.name!r} calls native tools, which the harness does not send: choose another, "
            "such as tool_call"
        )
