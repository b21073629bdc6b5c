"""A planner and an actor: the episode of the world inside, as the actor played it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from agentgym_envs.multiagent.joint_format import own_info
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_envs.viewer.team import Texts, joint_of

_PLANNER, _ACTOR = "planner", "actor"
_DEFAULT = "AgentGym/TextCraft-v0"
_PLAN, _ACTION, _CUT = f'\n\n{_PLANNER} says: "', f'{_ACTOR} says: "', "\n\nOnly the first "


class Actor(NamedTuple):
    """The actor's own episode, and for each state of the joint one how many turns of it were over by then."""

    trajectory: Trajectory
    places: Sequence[int]


def actor_of(trajectory: Trajectory) -> Actor | None:
    """The world's episode out of the joint record; None if that is not one of a planner and an actor."""
    joint = joint_of(trajectory)
    if joint is None or joint.agents != [_PLANNER, _ACTOR]:
        return None
    turns, places, seen = list[Turn](), [0], ""
    for turn, told, written in zip(trajectory.turns, joint.told, joint.written, strict=False):
        seen = _world(told) if told else seen
        action = (written or {}).get(_ACTOR)
        if action is not None:
            own = own_info(turn.info, _ACTOR)
            turns.append(Turn(seen, action, turn.reward, own))
        places.append(len(turns))
    last = joint.told[-1]
    given = trajectory.env_kwargs
    world = replace(
        trajectory,
        env_id=str(given.get("env_id") or _DEFAULT),
        env_kwargs=_options(given),
        turns=tuple(turns),
        final_observation=_world(last) if last else trajectory.final_observation,
    )
    return Actor(world, places)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    inner, grammar = given.get("env_kwargs"), given.get("agent_grammar")
    options = dict(inner) if isinstance(inner, Mapping) else {}
    return options if grammar is None else {**options, "grammar": grammar}


def _world(told: Texts) -> str:
    """What the world told: without what the one said to the other, which is one line without quotation marks."""
    if _ACTOR in told:
        before, plan, said = told[_ACTOR].rpartition(_PLAN)
        return before if plan and said.endswith('"') and "\n" not in said else told[_ACTOR]
    text = told[_PLANNER]
    if text.startswith(_ACTION):
        _, _, text = text.partition('"\n\n')
    before, cut, rest = text.rpartition(_CUT)
    return before if cut and "\n" not in rest else text
