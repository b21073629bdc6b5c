"""The environments that a run names: parsed, checked and made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

import agentgym_envs
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_trl.cli.arguments import EnvArguments, json_object


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment of a run, and its share of the tasks."""

    id: str
    kwargs: Mapping[str, Any]
    weight: float = 1.0

    def make(self) -> Any:
        """A new instance. Raises UsageError for an unknown id, or arguments that it does not take."""
        return gym_make(self.id, self.kwargs)


def environments(arguments: EnvArguments) -> list[Environment]:
    """What `--env` and `--env_kwargs` name; every one is made once, so that bad arguments are refused at once."""
    weights = _weights(arguments.env_id)
    kwargs = _kwargs_by_id(json_object(arguments.env_kwargs), list(weights))
    found = [Environment(env_id, kwargs[env_id], weight) for env_id, weight in weights.items()]
    for environment in found:
        environment.make().close()
    return found


def only_environment(arguments: EnvArguments) -> Environment:
    """The environment of an algorithm that takes one. Raises UsageError if several are named."""
    found = environments(arguments)
    if len(found) != 1:
        raise UsageError(f"this algorithm takes one environment, got {', '.join(e.id for e in found)}")
    return found[0]


def makers(found: list[Environment]) -> dict[str, Callable[[], Any]]:
    """How to make each environment, by its id."""
    return {environment.id: environment.make for environment in found}


def gym_make(env_id: str, kwargs: Mapping[str, Any]) -> Any:
    """`gym.make` of one of our environments. Raises UsageError."""
    if env_id not in gym.registry:
        raise UsageError(
            f"there is no environment {env_id!r}; `agentgym list` shows {', '.join(agentgym_envs.env_ids())}"
        )
    try:
        env = gym.make(env_id, **kwargs)
    except TypeError as error:
        raise UsageError(f"{env_id} does not take these arguments: {error}") from None
    text_env(env)
    return env


def _weights(names: list[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for name in names:
        env_id, _, weight = name.rpartition(":") if ":" in name else (name, "", "1")
        if env_id in weights:
            raise UsageError(f"--env names {env_id} twice; give it a weight instead, as in {env_id}:2")
        weights[env_id] = _weight(name, weight)
    return weights


def _weight(name: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise UsageError(
            f"the weight of an environment is a number above 0, as in AgentGym/TextCraft-v0:2; got {name!r}"
        )
    return weight


def _kwargs_by_id(kwargs: dict[str, Any], ids: list[str]) -> dict[str, dict[str, Any]]:
    """Arguments for each id: an object keyed by ids, or one object for the only environment."""
    if any(key in ids for key in kwargs):
        if wrong := [key for key, value in kwargs.items() if key not in ids or not isinstance(value, dict)]:
            raise UsageError(f"--env_kwargs keyed by ids must hold an object for each; wrong: {', '.join(wrong)}")
        return {env_id: kwargs.get(env_id, {}) for env_id in ids}
    if kwargs and len(ids) > 1:
        raise UsageError(f"with several environments --env_kwargs is keyed by id: '{{\"{ids[0]}\": {{...}}}}'")
    return {env_id: kwargs for env_id in ids}
