"""`Labeller`: replay recorded episodes in this process and label their turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from agentgym_envs.core import Solution, TextEnv
from agentgym_envs.errors import InvalidAction
from agentgym_envs.labels.record import EpisodeLabels, TurnLabel
from agentgym_envs.rollout.oracle_labels import carried_over
from agentgym_envs.rollout.replay import CannotReplay, ReplayedState, make_replay_env, refusing_replay, replayed_states
from agentgym_envs.trajectory import Trajectory


class Labeller:
    """Labels episodes one after another. Environments are kept, so close it at the end."""

    def __init__(self, *, seconds: float = 600.0, env_kwargs: Mapping[str, Any] | None = None) -> None:
        """`seconds` limits one episode. `env_kwargs` are arguments that records leave out, such as a path."""
        self._seconds, self._env_kwargs = seconds, dict(env_kwargs or {})
        self._envs: dict[str, TextEnv] = {}

    def label(self, trajectory: Trajectory, mark: str = "") -> EpisodeLabels:
        """Label an episode, which may come from a server. If it does not replay here, the labels have an `error`.

        `mark` is the `line_mark` of its line.
        """
        fields = mark, trajectory.env_id, trajectory.task.id, trajectory.seed
        try:
            with refusing_replay():
                env = self._env(trajectory)
                solutions = _solutions(env, trajectory, self._seconds)
        except CannotReplay as error:
            self._drop(trajectory)
            return EpisodeLabels(*fields, error=str(error))
        distances = _tightened([_distance(solution) for solution in solutions])
        return EpisodeLabels(*fields, tuple(_label(before, after) for before, after in pairwise(distances)))

    def close(self) -> None:
        """Close the environments."""
        while self._envs:
            self._envs.popitem()[1].close()

    def _env(self, trajectory: Trajectory) -> TextEnv:
        key = _key(trajectory)
        if key not in self._envs:
            self._envs[key] = make_replay_env(trajectory.env_id, trajectory.env_kwargs, **self._env_kwargs)
        return self._envs[key]

    def _drop(self, trajectory: Trajectory) -> None:
        """Close an environment that may be in an unknown state."""
        if (env := self._envs.pop(_key(trajectory), None)) is not None:
            env.close()


def _key(trajectory: Trajectory) -> str:
    return json.dumps([trajectory.env_id, dict(trajectory.env_kwargs)], sort_keys=True, default=str)


def _solutions(env: TextEnv, trajectory: Trajectory, seconds: float) -> list[Solution]:
    """The solutions of the states, before the first action and after each one."""
    found = list[Solution]()
    key, command = "", None
    for state in replayed_states(env, trajectory, seconds):
        known = _known(found[-1], state, key, command) if found else None
        found.append(known or env.solution())
        key, command = state.info["state_key"], _command(env, state.action)
    return found


def _known(before: Solution, state: ReplayedState, key: str, command: str | None) -> Solution | None:
    """The solution of a state that follows from the one before: nothing changed, or the plan was followed."""
    if state.info["stop_reason"] is not None:
        return None
    return carried_over(before, command, unchanged=state.info["state_key"] == key)


def _command(env: TextEnv, action: str | None) -> str | None:
    try:
        return None if action is None else env.grammar.parse(action).command
    except InvalidAction:
        return None


class _Distance(NamedTuple):
    """The turns to go from a state, None if no way is known, and true if that is proven."""

    turns: int | None
    exact: bool


def _distance(solution: Solution) -> _Distance:
    return _Distance(None if solution.commands is None else len(solution.commands), solution.exact)


def _tightened(distances: list[_Distance]) -> list[_Distance]:
    """Bound each unproven distance by the next one plus a turn: the episode itself is a way to the goal.

    Without this, a turn could have negative regret because the oracle's plan before it was not the shortest.
    """
    for now in range(len(distances) - 2, -1, -1):
        turns, exact = distances[now]
        after = distances[now + 1].turns
        if not exact and after is not None:
            distances[now] = _Distance(after + 1 if turns is None else min(turns, after + 1), False)
    return distances


def _label(before: _Distance, after: _Distance) -> TurnLabel:
    reachable = True if after.turns is not None else False if after.exact else None
    return TurnLabel(before.turns, after.turns, before.exact and after.exact, reachable)
