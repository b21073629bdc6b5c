"""The environments of a run: parsed and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentgym_envs.cli.envs import with_native_tools
from agentgym_envs.errors import UsageError
from agentgym_envs.multiagent.joint import is_team
from agentgym_envs.rollout.mixture import MixtureEnv, read_env_kwargs, read_mixture
from agentgym_trl.cli.arguments import EnvArguments
from agentgym_trl.error_messages import team_error


def environments(arguments: EnvArguments) -> list[MixtureEnv]:
    """The environments of `--env` and `--env-kwargs`. Raises UsageError."""
    found = read_mixture(arguments.env, read_env_kwargs(arguments.env_kwargs))
    if not arguments.tools:
        return found
    return [replace(environment, kwargs=with_native_tools(environment.kwargs)) for environment in found]


def only_environment(arguments: EnvArguments, *, teams: bool = False) -> MixtureEnv:
    """The environment of a run with exactly one.

    Raises UsageError if several are given, or if it is a team and `teams` is false.
    """
    found = environments(arguments)
    if len(found) != 1:
        raise UsageError(f"this algorithm takes one environment, got {', '.join(e.id for e in found)}")
    if not teams and is_team(found[0].id):
        raise team_error(found[0].id, "this algorithm")
    return found[0]


def makers(found: list[MixtureEnv]) -> dict[str, Callable[[], Any]]:
    """A function that makes each environment, by its id."""
    return {environment.id: environment.make for environment in found}
