"""Episodes of teams for the viewer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import text_env
from agentgym_envs.multiagent.play import TeamEpisode, play_team
from agentgym_envs.rollout import EpisodeSpec, OraclePolicy, play_text
from agentgym_envs.trajectory import Trajectory
from tests.multiagent.engines import CODEC, LIMITS, plan_of, scripts, soon
from tests.viewer.panel_episodes import episode

COOP = "AgentGym/TextCraftCoop-v0"
WALL = "textcraft-coop/2/22"
HOSTILE = "<img src=x onerror=\"document.title='bad'\"> \u202egnp.exe"


def played(id: str = COOP, task: str | None = None, seed: int = 0, **options: Any) -> Trajectory:
    """An episode of the oracle."""
    env = text_env(gym.make(id, **options))
    found = soon(play_text(env, OraclePolicy(), EpisodeSpec(task, seed), limits=LIMITS))
    env.close()
    return Trajectory.from_json(found.to_json())


def with_tokens(*first: Mapping[str, str], task: str = WALL, env_id: str = COOP, **options: Any) -> TeamEpisode:
    """An episode of these rounds and then the oracle's, with the tokens of each agent."""
    env: Any = text_env(gym.make(env_id, **options))
    plan = [*first, *plan_of(env, task)]
    return soon(play_team(env, scripts(plan, env.agents), CODEC, EpisodeSpec(task, 0), limits=LIMITS))


def team_record(
    *turns: tuple[Any, Any, Any], last: Any, agents: Sequence[str] = ("a", "b"), **fields: Any
) -> Trajectory:
    """A record of (observations, actions, info) by turn. Values that are not text are encoded as JSON."""
    seen, written = ([_text(turn[part]) for turn in turns] for part in (0, 1))
    rules = json.dumps({agent: f"You are {agent}." for agent in agents})
    infos = [turn[2] for turn in turns]
    env_id = fields.pop("env_id", "Other/Team-v0")
    return episode(env_id, [*seen, _text(last)], written, infos, **{"instructions": rules, **fields})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def hostile() -> Trajectory:
    """Names, texts, messages and gifts that spell HTML."""
    names = (HOSTILE, "b")
    see = dict.fromkeys(names, f"Crafting commands that you know:\ncraft 1 stick using 2 {HOSTILE}\n{HOSTILE}")
    arrived = {
        "messages": [{"from": HOSTILE, "text": HOSTILE}],
        "gifts": [{"from": HOSTILE, "item": HOSTILE, "amount": 2}],
        "inventory": {HOSTILE: 2},
        "invalid_action": HOSTILE,
    }
    first = (see, dict.fromkeys(names, HOSTILE), {"agents": {"b": arrived}})
    return team_record(first, (see, HOSTILE, {"invalid_action": HOSTILE}), last=see, agents=names, env_id=COOP)
