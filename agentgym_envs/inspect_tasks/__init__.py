"""The tasks of Inspect AI: `inspect eval agentgym_envs/textcraft` finds them through an entry point.

Inspect loads this module in every command, so it imports nothing heavy: environments are made with the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

from agentgym_envs.errors import missing_extra
from agentgym_envs.registration import env_ids
from agentgym_envs.task import Split

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
except ModuleNotFoundError:
    raise missing_extra("agentgym_envs.inspect_tasks", "inspect_ai", "inspect") from None

from agentgym_envs.inspect_tasks.scorer import episode_score
from agentgym_envs.inspect_tasks.solver import play_episode


def make_task(
    env_id: str,
    *,
    split: Split = "test",
    groups: str | Sequence[str] | None = None,
    count: int | None = 100,
    seed: int = 0,
    max_turns: int = 30,
    **env_args: Any,
) -> Task:
    """Make a task from any registered environment.

    Args:
        env_id: an id of this suite, or your own.
        split: train, validation or test.
        groups: names of task groups, as a list or separated by commas; None for all.
        count: the number of samples, chosen by `seed`; None for all.
        seed: chooses the samples, and is the seed of their episodes.
        max_turns: the turn limit of an episode.
        **env_args: arguments of the environment. With `grammar="tools"` or `"command_tools"`, the model acts by tool
            calls, otherwise by text.

    Raises:
        UsageError: an unknown environment or argument, or too few tasks. MissingExtra.
    """
    from agentgym_envs.core import text_env
    from agentgym_envs.hosting.session_host import make_env
    from agentgym_envs.rollout.play import check_text_only

    chosen = groups.split(",") if isinstance(groups, str) else groups
    made = make_env(env_id, {"split": split, **env_args})
    try:
        check_text_only(text_env(made))
        tasks = text_env(made).tasks
        drawn = tasks.sample(count, split=split, groups=chosen, seed=seed)
    finally:
        made.close()
    samples = [Sample(id=one.id, input=one.goal, metadata={"group": one.group, "split": one.split}) for one in drawn]
    about = {"env_id": env_id, "env_args": env_args, "tasks": tasks.name, "tasks_sha256": tasks.digest, "seed": seed}
    return Task(
        dataset=MemoryDataset(samples, name=f"{tasks.name}:{split}"),
        solver=play_episode(env_id, seed=seed, max_turns=max_turns, **env_args),
        scorer=episode_score(),
        version=tasks.version,
        metadata=about,
    )


def _scenario(env_id: str) -> None:
    """Register the task of an environment under its short name, such as `textcraft`."""

    def make(**options: Any) -> Task:
        return make_task(env_id, **options)

    name = env_id.partition("/")[2].rpartition("-v")[0].lower()
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Play {env_id}."
    make.__signature__ = _OPTIONS  # type: ignore[attr-defined]
    globals()[name] = task(name=name)(make)


_whole = signature(make_task)
_OPTIONS = _whole.replace(parameters=[*_whole.parameters.values()][1:])
for _id in env_ids():
    _scenario(_id)
env = task(name="env")(make_task)
"""The task of an environment of your own: `-T env_id=your_module:Yours-v0`."""
