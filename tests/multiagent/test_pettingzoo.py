import json
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils.conversions import aec_to_parallel

from agentgym_envs.errors import UsageError
from agentgym_envs.multiagent import textcraft_coop_v0
from agentgym_envs.multiagent.coop import CoopTextCraftEnv
from agentgym_envs.multiagent.planner_actor import planner_actor
from tests.multiagent.aec import check_aec, in_order


def planner_actor_over_textcraft() -> Any:
    return planner_actor("AgentGym/TextCraft-v0")


TEAMS = pytest.mark.parametrize("count", [1, 2, 3, 4])


@TEAMS
@pytest.mark.parametrize("max_rounds", [None, 7])
def test_the_environment_passes_the_parallel_api_test(count: int, max_rounds: int | None) -> None:
    env = textcraft_coop_v0.parallel_env(num_agents=count, max_rounds=max_rounds)
    with pytest.warns(UserWarning, match="ignores the options"):  # it resets with {"options": 1}
        parallel_api_test(env, num_cycles=30)


@pytest.mark.parametrize("make", [textcraft_coop_v0.parallel_env, textcraft_coop_v0.env, planner_actor_over_textcraft])
def test_a_reset_ignores_unknown_options_with_a_warning(make: Callable[[], Any]) -> None:
    env = make()
    known = {"split": "test"}
    with pytest.warns(UserWarning, match=r"ignores the options \['tusk'\]: it knows .*'task'"):
        env.reset(seed=3, options={"tusk": "x", **known})
    with_unknown = env.unwrapped.state()
    env.reset(seed=3, options=known)
    assert env.unwrapped.state() == with_unknown
    with pytest.raises(UsageError, match="names"):
        env.reset(seed=3, options={"task": 7})


@TEAMS
def test_the_environment_passes_the_seed_tests(count: int) -> None:
    parallel_seed_test(lambda: textcraft_coop_v0.parallel_env(num_agents=count), num_cycles=20)
    seed_test(lambda: textcraft_coop_v0.env(num_agents=count), num_cycles=20)
    assert textcraft_coop_v0.raw_env is textcraft_coop_v0.env


@TEAMS
def test_the_aec_form_plays_the_same_game(count: int) -> None:
    env = textcraft_coop_v0.env(num_agents=count)
    parallel = textcraft_coop_v0.parallel_env(num_agents=count)
    assert str(env) == str(parallel) == "textcraft_coop_v0"
    assert isinstance(env.unwrapped, CoopTextCraftEnv) and isinstance(aec_to_parallel(env), CoopTextCraftEnv)
    for seed in range(3):
        observations, _ = parallel.reset(seed=seed)
        rounds = list(parallel.oracle())
        actions = [each[agent] for each in rounds for agent in parallel.possible_agents]
        turns = check_aec(env, in_order(actions), seed)
        assert env.unwrapped.status()["success"]
        for number, each in enumerate(rounds):
            played = turns[number * count : (number + 1) * count]
            assert played == [(agent, observations[agent], each[agent]) for agent in parallel.possible_agents]
            observations, *_ = parallel.step(each)


def test_an_invalid_action_is_refused_at_once() -> None:
    """And not when the round is complete, where it would appear as the error of another agent."""
    env = textcraft_coop_v0.env(num_agents=2)
    env.reset(seed=0)
    for wrong in (3, None):
        with pytest.raises(UsageError, match="an action is a string, got "):
            env.step(wrong)
        assert env.agent_selection == "crafter_0"
    env.step("inventory")
    with pytest.raises(UsageError, match="got int: 3"):
        env.step(3)
    assert env.agent_selection == "crafter_1"
    env.step("pass")
    assert env.agent_selection == "crafter_0"
    assert (env.observe("crafter_0"), env.observe("crafter_1")) == (
        "Inventory: You are not carrying anything.",
        "You pass.",
    )
    with pytest.raises(UsageError, match="the agents are crafter_0, crafter_1"):
        env.observe("bob")


def test_the_aec_form_has_the_attributes_of_the_parallel_form() -> None:
    env, parallel = textcraft_coop_v0.env(num_agents=2), textcraft_coop_v0.parallel_env(num_agents=2)
    assert env.tasks is parallel.tasks and env.grammar.name == "bare" and env.task is None
    assert env.instructions_for("crafter_1") == parallel.instructions_for("crafter_1")
    env.reset(seed=4)
    observations, _ = parallel.reset(seed=4)
    assert env.task == parallel.task and env.status() == parallel.status()
    assert list(env.oracle()) == list(parallel.oracle())
    assert env.random_command("crafter_0", random.Random(1)) == parallel.random_command("crafter_0", random.Random(1))
    assert json.loads(env.state()) == observations and env.state() in env.unwrapped.state_space
    assert not hasattr(env, "snapshots") and not hasattr(env.env, "_members")


@TEAMS
def test_random_agents_play_the_aec_form(count: int) -> None:
    env = textcraft_coop_v0.env(num_agents=count, max_rounds=20, individual=0.5)
    rng = random.Random(count)
    for seed in range(4):
        turns = check_aec(env, lambda agent, seen: env.unwrapped.random_command(agent, rng), seed)
        assert 0 < len(turns) <= 20 * count and len(turns) % count == 0


def test_without_pettingzoo_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['pettingzoo'] = None\n"
        "import agentgym_envs.multiagent, agentgym_envs.multiagent.joint_envs\n"
        "from agentgym_envs.multiagent import textcraft_coop_v0"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtra: " in done.stderr and "pip install 'agentgym-envs[multiagent]'" in done.stderr
