"""Replaying a recorded episode in an environment of this process, to inspect its world at each turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, TypeVar

from agentgym_envs.core import ENV_FAILED, TextEnv, describe, text_env
from agentgym_envs.errors import AgentGymError
from agentgym_envs.image_observations import text_of
from agentgym_envs.trajectory import Trajectory

_T = TypeVar("_T")
_IGNORED = frozenset({"info", "render_mode", "record_screenshots", "screenshot_format"})
"""Arguments that do not change the observations, and may cost time."""


class CannotReplay(Exception):
    """The episode cannot be replayed. The message is a sentence for the reader."""


def observations(trajectory: Trajectory) -> list[str]:
    """The observations before the first action and after each action."""
    return [*(turn.observation for turn in trajectory.turns), trajectory.final_observation]


class ReplayedState(NamedTuple):
    """A state of a replayed episode: the environment, the info that led there and the next action, None at the end."""

    env: TextEnv
    info: Mapping[str, Any]
    action: str | None


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
    with refusing_replay():
        with closing(make_replay_env(trajectory.env_id, trajectory.env_kwargs)) as env:
            seen = [look(state.env, state.action) for state in replayed_states(env, trajectory, seconds)]
        return seen if len(seen) > len(trajectory.turns) else [*seen, seen[-1]]  # the environment failed


@contextmanager
def refusing_replay() -> Iterator[None]:
    """Convert any error to CannotReplay: a record may contain any arguments and actions."""
    try:
        yield
    except CannotReplay:
        raise
    except Exception as error:
        raise CannotReplay(f"The episode cannot be replayed here ({_reason(error)}).") from error


def make_replay_env(env_id: str, env_kwargs: Mapping[str, Any], **trusted: Any) -> TextEnv:
    """Make the environment of a record with the arguments that remote clients may set, and `trusted` ones."""
    import gymnasium as gym

    from agentgym_envs.registration import env_class, env_ids

    if env_id not in env_ids():
        raise CannotReplay(f"The episode is of {env_id!r:.80}, which cannot be made here.")
    safe = env_class(env_id).remote_options - _IGNORED
    kwargs = {name: value for name, value in env_kwargs.items() if name in safe}
    return text_env(gym.make(env_id, **kwargs, **trusted))


def replayed_states(env: TextEnv, trajectory: Trajectory, seconds: float) -> Iterator[ReplayedState]:
    """Yield the states of an episode: before the first action and after each one, but none after `env_error`.

    Raises CannotReplay if the observations differ from the record, or after the time limit.
    """
    recorded = observations(trajectory)
    actions: list[str | None] = [*trajectory.actions, None]
    observation, info = env.reset(seed=trajectory.seed, options={"task": trajectory.task.id})
    deadline = time.monotonic() + seconds
    for turn, action in enumerate(actions):
        if turn and trajectory.stop_reason == "env_error" and recorded[turn] == ENV_FAILED:
            return  # an infrastructure error, which need not occur again
        if turn or trajectory.stop_reason != "env_error":
            _compare(text_of(observation), recorded[turn], turn)
        if time.monotonic() > deadline:
            raise CannotReplay("The replay of the episode took too long.")
        yield ReplayedState(env, info, action)
        if action is not None:
            observation, *_, info = env.step(action)


def _compare(observation: str, recorded: str, turn: int) -> None:
    if observation != recorded:
        where = f"after turn {turn}" if turn else "at its beginning"
        raise CannotReplay(
            f"The replay differs from the record {where}: it was recorded by another version, or with other options."
        )


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, AgentGymError) else describe(error)
    return text[:300]
