"""Wrappers: a turn limit that follows a schedule, and a recorder of trajectories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from agentgym_envs.core import TRANSPORT_OPTIONS, StopReason, text_env
from agentgym_envs.errors import EpisodeOver
from agentgym_envs.grammar import tools_of
from agentgym_envs.image_observations import text_of
from agentgym_envs.schedule import TurnSchedule
from agentgym_envs.times import EpisodeTimer
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn


class ScheduledTimeLimit(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Truncates an episode at the turn limit of the training step in which the episode began.

    The limit is `schedule(clock())`, read at `reset`; it never changes during an episode. A truncation is
    `truncated=True` with `stop_reason="turn_limit"`. An episode that ends on its last turn keeps its own reason.
    """

    def __init__(self, env: gym.Env[str, str], schedule: TurnSchedule, clock: Callable[[], int] = lambda: 0) -> None:
        """`clock()` is the global training step, counted from 0; by default always 0, as fits a fixed limit."""
        # A clock is often a trainer's method. A deep copy would copy the trainer, and its clock would never advance.
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, schedule=schedule, clock=clock)
        gym.Wrapper.__init__(self, env)
        self._schedule, self._clock = schedule, clock
        self.max_turns = schedule(clock())
        self._over = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode with the current limit, which is in `info["max_turns"]`."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.max_turns, self._over = self._schedule(self._clock()), False
        return observation, {**info, "max_turns": self.max_turns}

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Take an action. The last one within the limit ends the episode."""
        if self._over:
            raise EpisodeOver(f"the episode was truncated at its limit of {self.max_turns} turns; call reset() first")
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info["turn"] >= self.max_turns and not (terminated or truncated):
            truncated = self._over = True
            info["stop_reason"] = StopReason.TURN_LIMIT.value
        return observation, reward, terminated, truncated, info


class RecordTrajectory(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Appends every finished episode to a JSONL file. An unfinished episode is recorded as `closed`."""

    def __init__(self, env: gym.Env[str, str], path: str | Path) -> None:
        """Append to `path`. Make this wrapper the outermost one, so that it sees truncations by other wrappers."""
        RecordConstructorArgs.__init__(self, path=str(path))
        gym.Wrapper.__init__(self, env)
        self._writer = TrajectoryWriter(path)
        self._turns: list[Turn] = []
        self._last: tuple[str, dict[str, Any]] | None = None
        self._meta: dict[str, Any] = {}
        self._timer = EpisodeTimer()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode. A running one is recorded first."""
        self._record()
        timer = EpisodeTimer()
        observation, info = self.env.reset(seed=seed, options=options)
        timer.began()
        self._turns, self._last, self._meta = [], (text_of(observation), info), first_picture(info)
        self._timer = timer
        timer.asked()
        return observation, info

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Take an action and record it."""
        before = self._last[0] if self._last else ""
        self._timer.answered()
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._timer.stepped()
        self._timer.asked()
        self._turns.append(Turn(before, action, float(reward), info))
        self._last = (text_of(observation), info)
        if terminated or truncated:
            self._record()
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Record a running episode, then close environment and file."""
        try:
            self._record()
        finally:
            self._writer.close()
            super().close()

    def _record(self) -> None:
        last, self._last = self._last, None  # cleared first, so that a full disk is reported only once
        if last is not None:
            fields: dict[str, Any] = {"meta": self._meta, "times": self._timer.times}
            self._writer.write(make_trajectory(self.env, tuple(self._turns), last[0], last[1], **fields))


def first_picture(info: dict[str, Any]) -> dict[str, Any]:
    """The picture in the info of a reset, for the `meta` of a record: only infos of steps are in its turns."""
    return {name: info[name] for name in ("screenshot", "boxes") if name in info}


def make_trajectory(
    env: gym.Env[str, str], turns: tuple[Turn, ...], observation: str, info: dict[str, Any], **fields: Any
) -> Trajectory:
    """Make the record of the episode that `env` has just played.

    `fields` overrides or adds fields of `Trajectory` (`stop_reason`, `error`, `meta`, `times`).
    """
    base = text_env(env)
    if base.task is None and "task" not in fields:
        raise EpisodeOver("no episode was begun, so there is nothing to record")
    kwargs = base.spec.kwargs if base.spec else {}
    known: dict[str, Any] = {
        "env_id": base.spec.id if base.spec else type(base).__name__,
        "env_kwargs": {name: value for name, value in kwargs.items() if name not in TRANSPORT_OPTIONS},
        "task": base.task,
        "seed": base.episode_seed,
        "instructions": base.instructions,
        "score": info["score"],
        "success": info["success"],
        "stop_reason": info["stop_reason"] or StopReason.CLOSED.value,
        "error": info.get("error"),
    }
    if tools := tools_of(base.grammar):  # which the system prompt does not have
        fields["meta"] = {**fields.get("meta", {}), "tools": tools}
    return Trajectory(turns=turns, final_observation=observation, **{**known, **fields})
