"""`--agent`, `--context` and `--tries`: which go together, and with which policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentgym_envs.cli.evaluating.settings import AgentChoice
from agentgym_envs.cli.policies import is_model
from agentgym_envs.errors import UsageError

if TYPE_CHECKING:
    from agentgym_envs.rollout import Agent


def choose_agent(policy: str, name: str | None, context: str | None, tries: int | None) -> Agent | None:
    """The agent that is asked for, if any.

    Raises:
        UsageError: there is none of that name or context, or an option is given that would mean nothing.
    """
    from agentgym_envs.rollout import make_agent

    if name is None:
        if given := _given(context, tries):
            raise UsageError(f"{given} belongs to an agent; choose one with --agent act, react, plan or reflect")
        return None
    if not is_model(policy) and (given := _given(context, tries)):
        raise UsageError(
            f"{given} means nothing to --policy {policy}, which no agent guides; leave it out "
            "(--agent alone sets the form of the answers)"
        )
    if tries is not None and name != "reflect":
        raise UsageError(f"--tries belongs to --agent reflect, the one that tries again, not to {name!r}")
    return make_agent(name, context=context or "full", attempts=3 if tries is None else tries)


def check_plays_alone(agent: Agent, env_ids: Iterable[str]) -> None:
    """Raise UsageError if a team is among the environments: an agent guides one model in one conversation."""
    from agentgym_envs.multiagent.joint import is_team

    if teams := [env_id for env_id in env_ids if is_team(env_id)]:
        raise UsageError(
            f"--agent {agent.name} guides a model that plays alone, and {teams[0]} is a team; leave it out. "
            f"--env-arg agent_grammar={agent.grammar} has the members write in that form"
        )


def recorded_agent(agent: Agent | None) -> AgentChoice | None:
    """What of an agent decides the result."""
    return None if agent is None else AgentChoice(agent.name, str(agent.context), agent.attempts)


def _given(context: str | None, tries: int | None) -> str:
    return "--context" if context is not None else "--tries" if tries is not None else ""
