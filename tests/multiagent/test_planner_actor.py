import json
import random
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo.test import seed_test

from agentgym_envs.errors import EpisodeOver, NoOracle, UsageError
from agentgym_envs.grammar import GRAMMARS
from agentgym_envs.multiagent.planner_actor import MAX_PLAN_CHARS, PlannerActorAECEnv, planner_actor
from agentgym_envs.schedule import FixedTurnLimit
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.wrappers import ScheduledTimeLimit
from tests.multiagent.aec import check_aec, in_order
from tests.toy import CountEnv

TORCH = {"goal": "torch", "max_distractors": 0}


@pytest.fixture
def env() -> PlannerActorAECEnv:
    env = planner_actor("AgentGym/TextCraft-v0", **TORCH)
    env.reset(seed=0)
    return env


def without_state_key(info: dict[str, Any]) -> dict[str, Any]:
    """The part of an info that is equal for both agents."""
    return {name: value for name, value in info.items() if name != "state_key"}


def infos_of(env: PlannerActorAECEnv) -> dict[str, Any]:
    return {agent: without_state_key(info) for agent, info in env.infos.items()}


def test_a_turn_passes_the_plan_to_the_actor(env: PlannerActorAECEnv) -> None:
    single = TextCraftEnv(**TORCH)  # type: ignore[arg-type]
    first, info = single.reset(seed=0)
    assert env.agent_selection == "planner" and env.observe("planner") == env.observe("actor") == first
    assert infos_of(env) == {
        "planner": {**without_state_key(info), "agent": "planner", "messages": []},
        "actor": {**without_state_key(info), "agent": "actor", "messages": []},
    }
    env.step("First get coal.\nThen sticks.")
    shown_plan = "First get coal. Then sticks."
    assert env.agent_selection == "actor"
    assert env.observe("actor") == f'{first}\n\nplanner says: "{shown_plan}"'
    message = {"from": "planner", "text": shown_plan}
    assert infos_of(env)["actor"] == {**without_state_key(info), "agent": "actor", "messages": [message]}
    env.step("get 1 coal")
    *_, info = single.step("get 1 coal")
    assert env.agent_selection == "planner"
    assert env.observe("planner") == 'actor says: "get 1 coal"\n\nGot 1 coal'
    assert env.observe("actor") == "Got 1 coal"
    messages = [{"from": "actor", "text": "get 1 coal"}]
    assert infos_of(env)["planner"] == {**without_state_key(info), "agent": "planner", "messages": messages}
    assert env.rewards == {"planner": 0.0, "actor": 0.0}


def test_both_agents_are_rewarded_and_end(env: PlannerActorAECEnv) -> None:
    plan = list(env.oracle())
    assert plan[0] == {"planner": f"Do this next: {plan[0]['actor']}", "actor": plan[0]["actor"]}
    for turn in plan:
        env.step(turn["planner"])
        env.step(turn["actor"])
    assert env.rewards == {"planner": 1.0, "actor": 1.0} and all(env.terminations.values())
    assert {env.infos[agent]["stop_reason"] for agent in env.agents} == {"success"}
    with pytest.raises(ValueError, match="None"):
        env.step("more")
    seen = []
    for agent in env.agent_iter():
        seen.append((agent, *env.last()[1:4]))
        env.step(None)
    assert seen == [("planner", 1.0, True, False), ("actor", 1.0, True, False)]
    with pytest.raises(EpisodeOver, match="reset"):
        env.step("more")
    with pytest.raises(NoOracle):
        env.oracle()


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_the_loop_of_pettingzoo_plays_an_episode(grammar: str) -> None:
    env = planner_actor("AgentGym/TextCraft-v0", grammar=grammar)
    single = gym.make("AgentGym/TextCraft-v0", grammar=grammar)
    for seed in range(3):
        expected = [single.reset(seed=seed)[0]]
        env.reset(seed=seed)
        plan = list(env.oracle())
        expected += [single.step(env.grammar.format(turn["actor"]))[0] for turn in plan[:-1]]
        texts = [text for turn in plan for text in (turn["planner"], env.grammar.format(turn["actor"]))]
        turns = check_aec(env, in_order(texts), seed)
        assert len(turns) == 2 * len(plan)
        for (_, planners, _), (_, actors, _), observation in zip(turns[::2], turns[1::2], expected, strict=True):
            assert planners.endswith(observation) and actors.startswith(f'{observation}\n\nplanner says: "Do this')


def test_a_given_environment_keeps_its_time_limit() -> None:
    single = ScheduledTimeLimit(gym.make("AgentGym/TextCraft-v0"), FixedTurnLimit(3))
    env = planner_actor(single)
    rng = random.Random(0)
    turns = check_aec(env, lambda agent, seen: "inventory" if agent == "actor" else f"hm {rng.random()}", 0)
    assert len(turns) == 6
    assert env.tasks is single.unwrapped.tasks and env.task is single.unwrapped.task  # type: ignore[attr-defined]


def test_the_environment_passes_the_seed_test() -> None:
    seed_test(lambda: planner_actor("AgentGym/TextCraft-v0"), num_cycles=20)


def test_each_agent_has_its_own_instructions(env: PlannerActorAECEnv) -> None:
    own = TextCraftEnv().instructions
    assert env.instructions_for("planner").startswith("You plan for another agent")
    assert env.instructions_for("planner").endswith(own)
    assert env.instructions_for("actor").startswith(own + "\n\nBefore each of your actions a planner")
    with pytest.raises(UsageError, match="no agent 'critic'; the agents are planner, actor"):
        env.instructions_for("critic")


def test_a_long_plan_is_truncated_with_a_notice(env: PlannerActorAECEnv) -> None:
    env.step("x" * (MAX_PLAN_CHARS + 1))
    assert env.observe("actor").endswith(f'planner says: "{"x" * MAX_PLAN_CHARS}"')
    env.step("inventory")
    assert env.observe("planner").endswith(
        f"\n\nOnly the first {MAX_PLAN_CHARS} characters of what you said were shown."
    )
    env.step("short")
    env.step("inventory")
    assert env.observe("planner").endswith("anything.")


@given(st.text(max_size=200), st.text(max_size=200))
def test_neither_agent_can_forge_a_line(plan: str, action: str) -> None:
    env = planner_actor(TextCraftEnv(**TORCH))  # type: ignore[arg-type]
    env.reset(seed=0)
    first = env.observe("planner")
    env.step(plan)
    rest = env.observe("actor").removeprefix(first)
    assert rest == "" or (rest.startswith('\n\nplanner says: "') and rest.count('"') == 2 and rest.count("\n") == 2)
    env.step(action)
    shown = env.observe("planner").removesuffix(env.observe("actor"))
    assert shown == "" or (shown.startswith('actor says: "') and shown.endswith('"\n\n') and shown.count('"') == 2)
    for agent in env.agents:
        assert env.observe(agent) in env.observation_space(agent)


def test_invalid_calls_are_refused(env: PlannerActorAECEnv) -> None:
    for wrong in (None, 3):
        with pytest.raises(UsageError, match="an action is a string"):
            env.step(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="expected an environment of this suite"):
        planner_actor("CartPole-v1")
    with pytest.raises(UsageError, match="got int: 3"):
        planner_actor(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'grammar'"):
        planner_actor(TextCraftEnv(), grammar="react")
    for team in ("AgentGym/PlannerActor-v0", "AgentGym/TextCraftCoop-v0"):
        with pytest.raises(UsageError, match="this is a team"):
            planner_actor(team)
    for call in (env.observation_space, env.action_space, env.observe):
        with pytest.raises(UsageError, match="no agent 'bob'; the agents are planner, actor"):
            call("bob")
    env.close()
    with pytest.raises(EpisodeOver):
        env.step("x")
    with pytest.raises(EpisodeOver):
        env.reset(seed=0)


def test_calls_before_a_reset_are_refused() -> None:
    env = planner_actor(TextCraftEnv())
    for call in (lambda: env.observe("actor"), env.last, env.agent_iter, env.state, lambda: env.step("x")):
        with pytest.raises(EpisodeOver, match=r"call reset\(\) first"):
            call()
    env.reset(seed=0)
    assert env.last()[0] == env.observe("planner")


def test_the_state_is_the_json_of_both_observations(env: PlannerActorAECEnv) -> None:
    env.step("Take coal.")
    assert json.loads(env.state()) == {agent: env.observe(agent) for agent in ("planner", "actor")}
    assert env.state() in env.state_space


def test_a_failing_environment_ends_the_episode_of_both() -> None:
    env = planner_actor(CountEnv())
    env.reset(seed=0)
    env.step("go on")
    env.step("crash")
    assert all(env.truncations.values()) and env.infos["planner"]["stop_reason"] == "env_error"
    env.reset(seed=0, options={"task": "count/0"})
    assert all(env.truncations.values()) and env.infos["actor"]["error"] == "EnvError: no power"
    for agent in env.agent_iter():
        assert env.last()[1:4] == (0.0, False, True), agent
        env.step(None)
    assert env.agents == []


def test_both_agents_get_the_same_rewards() -> None:
    env = planner_actor(CountEnv())
    turns = check_aec(env, lambda agent, seen: "up", 0, {"task": "count/3"})
    assert len(turns) == 6
    env.reset(seed=0, options={"task": "count/2"})
    env.step("up you go")
    env.step("up")
    assert env.rewards == env._cumulative_rewards == {"planner": 0.5, "actor": 0.5}
    env.step("on")
    assert env.rewards == {"planner": 0.0, "actor": 0.0} and env.last()[1] == 0.5
