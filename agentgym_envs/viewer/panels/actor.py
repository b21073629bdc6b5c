"""A planner and an actor: the actor's episode in the inner world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from agentgym_envs.multiagent.joint_format import own_info
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_envs.viewer.team import Texts, joint_of

_PLANNER, _ACTOR = "planner", "actor"
_DEFAULT = "AgentGym/TextCraft-v0"
_PLAN, _ACTION, _TRUNCATED = f'\n\n{_PLANNER} says: "', f'{_ACTOR} says: "', "\n\nOnly the first "


class Actor(NamedTuple):
    """The actor's episode, and its number of turns at each state of the joint episode."""

    trajectory: Trajectory
    turn_counts: Sequence[int]


def actor_of(trajectory: Trajectory) -> Actor | None:
    """Extract the actor's episode from a joint record; None if that is not of a planner and an actor."""
    joint = joint_of(trajectory)
    if joint is None or joint.agents != [_PLANNER, _ACTOR]:
        return None
    turns, turn_counts, seen = list[Turn](), [0], ""
    for turn, observed, actions in zip(trajectory.turns, joint.observations, joint.actions, strict=False):
        seen = _world(observed) if observed else seen
        action = (actions or {}).get(_ACTOR)
        if action is not None:
            own = own_info(turn.info, _ACTOR)
            turns.append(Turn(seen, action, turn.reward, own))
        turn_counts.append(len(turns))
    last = joint.observations[-1]
    given = trajectory.env_kwargs
    world = replace(
        trajectory,
        env_id=str(given.get("env_id") or _DEFAULT),
        env_kwargs=_options(given),
        turns=tuple(turns),
        final_observation=_world(last) if last else trajectory.final_observation,
    )
    return Actor(world, turn_counts)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    inner, grammar = given.get("env_kwargs"), given.get("agent_grammar")
    options = dict(inner) if isinstance(inner, Mapping) else {}
    return options if grammar is None else {**options, "grammar": grammar}


def _world(observed: Texts) -> str:
    """The world's part of an observation, without the quoted message of the other agent, which is one line."""
    if _ACTOR in observed:
        before, plan, message = observed[_ACTOR].rpartition(_PLAN)
        return before if plan and message.endswith('"') and "\n" not in message else observed[_ACTOR]
    text = observed[_PLANNER]
    if text.startswith(_ACTION):
        _, _, text = text.partition('"\n\n')
    before, mark, rest = text.rpartition(_TRUNCATED)
    return before if mark and "\n" not in rest else text
