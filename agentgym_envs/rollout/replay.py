"""Replaying a recorded episode in an environment of this process, to inspect its world at each turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from agentgym_envs.core import ENV_FAILED, TextEnv, describe, text_env
from agentgym_envs.errors import AgentGymError
from agentgym_envs.trajectory import Trajectory

_T = TypeVar("_T")
_IGNORED = frozenset({"info", "render_mode"})
"""Arguments that do not change the observations, and may cost time."""


class CannotReplay(Exception):
    """The episode cannot be replayed. The message is a sentence for the reader."""


def observations(trajectory: Trajectory) -> list[str]:
    """The observations before the first action and after each action."""
    return [*(turn.observation for turn in trajectory.turns), trajectory.final_observation]


def replay(trajectory: Trajectory, look: Callable[[TextEnv, str | None], _T], *, seconds: float) -> list[_T]:
    """Replay an episode and return the results of `look`, before the first action and after each action.

    Args:
        trajectory: the episode. Only those arguments of its environment are used that remote clients may set, so that
            an untrusted file cannot name a path, an address or a program.
        look: called with the environment and the next action, None after the last one.
        seconds: time limit from the first observation on.

    Raises:
        CannotReplay: the environment cannot be made, fails, takes too long, or its observations differ from the record.
    """
    try:
        with closing(_make(trajectory)) as env:
            return _play(env, trajectory, look, seconds)
    except CannotReplay:
        raise
    except Exception as error:  # a record may contain any arguments and actions
        raise CannotReplay(f"The episode cannot be replayed here ({_reason(error)}).") from error


def _make(trajectory: Trajectory) -> TextEnv:
    import gymnasium as gym

    from agentgym_envs.registration import env_class, env_ids

    if trajectory.env_id not in env_ids():
        raise CannotReplay(f"The episode is of {trajectory.env_id!r:.80}, which cannot be made here.")
    safe = env_class(trajectory.env_id).remote_options - _IGNORED
    kwargs = {name: value for name, value in trajectory.env_kwargs.items() if name in safe}
    return text_env(gym.make(trajectory.env_id, **kwargs))


def _play(env: TextEnv, trajectory: Trajectory, look: Callable[[TextEnv, str | None], _T], seconds: float) -> list[_T]:
    recorded = observations(trajectory)
    actions: list[str | None] = [*trajectory.actions, None]
    observation, _ = env.reset(seed=trajectory.seed, options={"task": trajectory.task.id})
    seen, deadline = list[_T](), time.monotonic() + seconds
    for turn, action in enumerate(actions):
        if turn and trajectory.stop_reason == "env_error" and recorded[turn] == ENV_FAILED:
            return [*seen, seen[-1]]  # an infrastructure error, which need not occur again
        if turn or trajectory.stop_reason != "env_error":
            _compare(observation, recorded[turn], turn)
        if time.monotonic() > deadline:
            raise CannotReplay("The replay of the episode took too long.")
        seen.append(look(env, action))
        if action is not None:
            observation, *_ = env.step(action)
    return seen


def _compare(observation: str, recorded: str, turn: int) -> None:
    if observation != recorded:
        where = f"after turn {turn}" if turn else "at its beginning"
        raise CannotReplay(
            f"The replay differs from the record {where}: it was recorded by another version, or with other options."
        )


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, AgentGymError) else describe(error)
    return text[:300]
