"""Our environments in SkyRL's form, with skyrl-gym if it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError

skyrl_gym = pytest.importorskip("skyrl_gym")
TASK = "textcraft/198"


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    from skyrl_gym.envs import deregister

    skyrl_gym.register(id="agentgym", entry_point="examples.skyrl_env:AgentGymEnv")
    yield importlib.import_module("examples.skyrl_env")
    deregister("agentgym")


def make(row: dict[str, Any]) -> Any:
    return skyrl_gym.make("agentgym", env_config={}, extras=row)


def test_an_episode_equals_a_local_one(example: Any) -> None:
    here = gym.make("AgentGym/TextCraft-v0")
    observation, _ = here.reset(seed=3, options={"task": TASK})
    row = example.dataset_row("AgentGym/TextCraft-v0", TASK, seed=3)
    env = make(row)
    conversation, _ = env.init(row["prompt"])
    assert [message["role"] for message in conversation] == ["system", "user"]
    assert conversation[1]["content"] == observation
    total, done = 0.0, False
    for command in text_env(here).oracle():
        output = env.step(command)
        expected, *_ = here.step(command)
        total, done = total + output["reward"], output["done"]
        assert output["observations"] == ([] if done else [{"role": "user", "content": expected}])
    assert done and total == 1.0 and env.get_metrics() == {"success": True, "score": 1.0, "turns": 3}
    env.close()


def test_the_row_sets_the_turn_limit(example: Any) -> None:
    row = example.dataset_row("AgentGym/TextCraft-v0", TASK, max_turns=2)
    env = make(row)
    env.init(row["prompt"])
    assert [env.step("inventory")["done"] for _ in range(2)] == [False, True]


def test_a_row_without_an_episode_is_refused(example: Any) -> None:
    with pytest.raises(UsageError, match="dataset_row"):
        make({"extra_info": {"env": "AgentGym/TextCraft-v0"}})
