"""Demonstrations by an environment's oracle, and the vocabulary of an environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import gymnasium as gym

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, RandomPolicy, play_many_text, run_sync
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.agent_trajectories import agent_views

_LIMITS = Limits(max_turns=1000)


def oracle_demonstrations(
    make_env: Callable[[], gym.Env[str, str]],
    count: int | None = None,
    *,
    split: str | None = "train",
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> list[Trajectory]:
    """Successful oracle episodes, one per task of `count` distinct tasks (None: all of a finite set).

    A team's episodes are joint records.

    Raises:
        UsageError: the oracle solved none of them.
        NoOracle: the environment has no oracle.
    """
    tasks = text_env(make_env()).tasks.sample(count, split=split, groups=groups, seed=seed)
    specs = [EpisodeSpec(task.id, seed + number) for number, task in enumerate(tasks)]
    played = run_sync(play_many_text(specs, make_env, OraclePolicy, limits=_LIMITS))
    # Without times, so that a resumed run finds the demonstrations equal to those it wrote.
    solved = [replace(trajectory, times=None) for trajectory in played if trajectory.success]
    if not solved:
        raise UsageError("the oracle solved none of the tasks, so there are no demonstrations")
    return solved


def environment_corpus(
    make_env: Callable[[], gym.Env[str, str]], max_tasks: int = 1000, *, groups: Sequence[str] | None = None
) -> list[str]:
    """Texts of the environment, its oracle and a random policy: the vocabulary of a tokenizer.

    Plays at most `max_tasks` tasks of `groups` (None: all). A team's episode is split into its agents' trajectories.
    """
    tasks = text_env(make_env()).tasks
    try:
        chosen = tasks.sample(groups=groups)[:max_tasks]
    except UsageError:  # an endless set
        chosen = tasks.sample(max_tasks, groups=groups)
    specs = [EpisodeSpec(task.id, 0) for task in chosen]
    solved = run_sync(play_many_text(specs, make_env, OraclePolicy, limits=_LIMITS))
    random = run_sync(play_many_text(specs[:200], make_env, RandomPolicy, limits=Limits(max_turns=10)))
    return [text for trajectory in [*solved, *random] for view in agent_views(trajectory) for text in _texts(view)]


def _texts(trajectory: Trajectory) -> list[str]:
    observations = [turn.observation for turn in trajectory.turns]
    return [trajectory.instructions, *observations, *trajectory.actions, trajectory.final_observation]
