"""Checks of AEC environments. PettingZoo's own `api_test` expects arrays as observations and crashes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from pettingzoo import AECEnv

Act = Callable[[str, str], str]
"""Agent and observation -> action."""
PER_AGENT = ("rewards", "terminations", "truncations", "infos")


def check_aec(env: AECEnv, act: Act, seed: int, options: Mapping[str, Any] | None = None) -> list[Any]:
    """Play an episode in PettingZoo's loop, check its rules, and return (agent, observation, action) of each turn."""
    env.reset(seed=seed, options=dict(options) if options else None)
    assert env.agents == env.possible_agents
    totals = dict.fromkeys(env.agents, 0.0)
    turns: list[Any] = []
    order: list[str] = []
    for agent in env.agent_iter(max_iter=2_000):
        check_state(env)
        observation, reward, terminated, truncated, info = env.last()
        assert agent == env.agent_selection
        assert observation in env.observation_space(agent) and observation == env.observe(agent)
        assert isinstance(terminated, bool) and isinstance(truncated, bool)
        assert json.loads(json.dumps(info)) == info and info["agent"] == agent
        totals[agent] += reward
        over = terminated or truncated
        action = None if over else act(agent, observation)
        if not over:
            assert action in env.action_space(agent)
            order.append(agent)
            turns.append((agent, observation, action))
        else:
            assert info["stop_reason"] is not None
            assert totals[agent] == pytest.approx(info["score"])
        env.step(action)
        assert (agent in env.agents) != over
    assert env.agents == []
    count = len(env.possible_agents)
    assert order == (env.possible_agents * (len(order) // count + 1))[: len(order)], "the agents act in turn"
    return turns


def in_order(texts: Iterable[str]) -> Act:
    """Return the texts in order, for any agent."""
    left = iter(texts)
    return lambda agent, observation: next(left)


def check_state(env: AECEnv) -> None:
    for name in PER_AGENT:
        assert set(getattr(env, name)) == set(env.agents), name
    for agent in env.agents:
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
        assert isinstance(env.observe(agent), str)
    assert env.num_agents == len(env.agents) <= env.max_num_agents == len(env.possible_agents)
