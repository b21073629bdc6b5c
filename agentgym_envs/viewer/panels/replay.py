"""Playing a recorded episode again, in an environment of this process, to look at its world turn by turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from agentgym_envs.core import ENV_FAILED, TextEnv, describe, text_env
from agentgym_envs.errors import AgentGymError
from agentgym_envs.trajectory import Trajectory

_T = TypeVar("_T")
_UNSEEN = frozenset({"info", "render_mode"})
"""Arguments that change nothing that is told, and may cost time."""


class CannotReplay(Exception):
    """Why an episode cannot be played again, as a sentence for the reader."""


def observations(trajectory: Trajectory) -> list[str]:
    """What was told: before the first action, and after each."""
    return [*(turn.observation for turn in trajectory.turns), trajectory.final_observation]


def replay(trajectory: Trajectory, look: Callable[[TextEnv, str | None], _T], *, seconds: float) -> list[_T]:
    """What `look` finds before the first action and after each.

    Args:
        trajectory: the episode. Of its environment's arguments only those are used that a stranger may give, so that
            a file that somebody sent cannot name a path, an address or a program.
        look: is called with the environment and the next action, None after the last.
        seconds: how long it may take from the first observation on.

    Raises:
        CannotReplay: the environment cannot be made, fails or takes too long, or tells something else than recorded.
    """
    try:
        with closing(_make(trajectory)) as env:
            return _play(env, trajectory, look, seconds)
    except CannotReplay:
        raise
    except Exception as error:  # a record may ask of an environment what nobody ever asked of it
        raise CannotReplay(f"The episode cannot be played again here ({_reason(error)}).") from error


def _make(trajectory: Trajectory) -> TextEnv:
    import gymnasium as gym

    from agentgym_envs.registration import env_class, env_ids

    if trajectory.env_id not in env_ids():
        raise CannotReplay(f"The episode is of {trajectory.env_id!r:.80}, which cannot be made here.")
    safe = env_class(trajectory.env_id).remote_options - _UNSEEN
    kwargs = {name: value for name, value in trajectory.env_kwargs.items() if name in safe}
    return text_env(gym.make(trajectory.env_id, **kwargs))


def _play(env: TextEnv, trajectory: Trajectory, look: Callable[[TextEnv, str | None], _T], seconds: float) -> list[_T]:
    told = observations(trajectory)
    actions: list[str | None] = [*trajectory.actions, None]
    observation, _ = env.reset(seed=trajectory.seed, options={"task": trajectory.task.id})
    seen, deadline = list[_T](), time.monotonic() + seconds
    for turn, action in enumerate(actions):
        if turn and trajectory.stop_reason == "env_error" and told[turn] == ENV_FAILED:
            return [*seen, seen[-1]]  # the machine failed then, and need not fail again
        if turn or trajectory.stop_reason != "env_error":
            _compare(observation, told[turn], turn)
        if time.monotonic() > deadline:
            raise CannotReplay("Playing the episode again took too long.")
        seen.append(look(env, action))
        if action is not None:
            observation, *_ = env.step(action)
    return seen


def _compare(observation: str, told: str, turn: int) -> None:
    if observation != told:
        where = f"after turn {turn}" if turn else "at its beginning"
        raise CannotReplay(
            f"Played again here, the episode is another {where}: the record was made by another version, or with "
            "options of its own."
        )


def _reason(error: Exception) -> str:
    told = str(error) if isinstance(error, AgentGymError) else describe(error)
    return told[:300]
