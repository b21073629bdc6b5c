"""Checks of `--agent`, `--context` and `--attempts` against each other and against the policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentgym_envs.cli.evaluating.settings import AgentChoice
from agentgym_envs.cli.policies import is_model
from agentgym_envs.errors import UsageError

if TYPE_CHECKING:
    from agentgym_envs.rollout import Agent

_DEFAULT_ATTEMPTS = 3


def choose_agent(policy: str, name: str | None, context: str | None, attempts: int | None) -> Agent | None:
    """Make the agent of the options; None without --agent.

    Raises:
        UsageError: the name or context is unknown, or an option would have no effect.
    """
    from agentgym_envs.rollout import make_agent

    if name is None:
        if given := _given(context, attempts):
            raise UsageError(f"{given} belongs to an agent; choose one with --agent act, react, plan or reflect")
        return None
    if not is_model(policy) and (given := _given(context, attempts)):
        raise UsageError(
            f"{given} has no effect with --policy {policy}, because agents guide models only; leave it out "
            "(--agent alone sets the form of the answers)"
        )
    if attempts is not None and name != "reflect":
        raise UsageError(
            f"--attempts belongs to --agent reflect, the only agent with several attempts, not to {name!r}"
        )
    return make_agent(name, context=context or "full", attempts=_DEFAULT_ATTEMPTS if attempts is None else attempts)


def check_plays_alone(agent: Agent, env_ids: Iterable[str]) -> None:
    """Raise UsageError if an environment is a team: an agent guides one model in one conversation."""
    from agentgym_envs.multiagent.joint import is_team

    if teams := [env_id for env_id in env_ids if is_team(env_id)]:
        raise UsageError(
            f"--agent {agent.name} guides a single player, and {teams[0]} is a team; leave it out. "
            f"--env-arg agent_grammar={agent.grammar} makes the members write in that form"
        )


def recorded_agent(agent: Agent | None) -> AgentChoice | None:
    """The properties of an agent that affect the result."""
    return None if agent is None else AgentChoice(agent.name, str(agent.context), agent.attempts)


def _given(context: str | None, attempts: int | None) -> str:
    return "--context" if context is not None else "--attempts" if attempts is not None else ""
