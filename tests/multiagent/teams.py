"""Helpers that play a team in tests."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

from agentgym_envs.multiagent.coop import CoopTextCraftEnv

WORLDS = ("real", "fictional", "invented")


def torch_env(**options: Any) -> CoopTextCraftEnv:
    env = CoopTextCraftEnv(max_distractors=0, split=None, **options)
    env.reset(seed=0, options={"task": torch_task(env)})
    return env


def torch_task(env: CoopTextCraftEnv) -> str:
    return next(task.id for task in env.tasks.sample() if task.goal == "craft torch")


def both(env: CoopTextCraftEnv, one: str, other: str) -> Any:
    return env.step({"crafter_0": one, "crafter_1": other})


def play(env: CoopTextCraftEnv, rounds: Iterable[Mapping[str, str]]) -> list[Any]:
    """Act until the end of the episode, and return all results as JSON."""
    seen: list[Any] = []
    for actions in rounds:
        seen.append(env.step(dict(actions)))
        if not env.agents:
            break
    return json.loads(json.dumps(seen))


def solve(env: CoopTextCraftEnv) -> int:
    """Play the oracle's rounds and return their number."""
    plan = list(env.oracle())
    seen = play(env, [{agent: env.grammar.format(action) for agent, action in each.items()} for each in plan])
    assert len(seen) == len(plan), "the goal was reached before the end of the plan"
    for info in seen[-1][4].values():
        assert info["success"] and info["stop_reason"] == "success"
    assert all(info["invalid_action"] is None for each in seen for info in each[4].values())
    return len(plan)


def random_round(env: CoopTextCraftEnv, rng: random.Random) -> dict[str, str]:
    return {agent: env.random_command(agent, rng) for agent in env.agents}


def carried(infos: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The common inventory of the team."""
    total: dict[str, int] = {}
    for info in infos.values():
        for item, amount in info["inventory"].items():
            total[item] = total.get(item, 0) + amount
    return total


def transcript_hash() -> str:
    """A hash of episodes of teams of all sizes, equal in every process."""
    digest = hashlib.sha256()
    for count in (1, 2, 3, 4):
        for worlds in WORLDS:
            env = CoopTextCraftEnv(num_agents=count, worlds=worlds, individual=0.3)  # type: ignore[arg-type]
            digest.update(env.tasks.digest.encode())
            for seed in range(2):
                digest.update(json.dumps(env.reset(seed=seed)).encode())
                rng = random.Random(seed)
                digest.update(json.dumps(play(env, [random_round(env, rng) for _ in range(10)])).encode())
                if env.agents:
                    digest.update(json.dumps(play(env, env.oracle())).encode())
    return digest.hexdigest()
