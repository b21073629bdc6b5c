"""The joint form: one `TextEnv` with the behavior of the team's own form."""

from __future__ import annotations

import json
import random
from contextlib import closing
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.core import MAX_ACTION_CHARS, StopReason, text_env
from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.grammar import GRAMMARS
from agentgym_envs.multiagent.coop import CoopTextCraftEnv
from agentgym_envs.multiagent.joint import is_team
from agentgym_envs.multiagent.joint_envs import PlannerActorEnv, TextCraftCoopEnv
from agentgym_envs.multiagent.joint_format import read_actions, read_texts, write_action, write_texts
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_text, run_sync
from tests.trying import examples

PLANNER_ACTOR = "AgentGym/PlannerActor-v0"
COUNT = "tests.toy_envs:Toy/Count-v0"


def dump(**texts: str | None) -> str:
    return json.dumps(texts)


def counting(**options: Any) -> PlannerActorEnv:
    return PlannerActorEnv(env_id=COUNT, **options)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_joint_form_matches_the_parallel_form(count: int) -> None:
    """The same seed gives the same episode, and rounds give the same results in both forms."""
    options: dict[str, Any] = {"num_agents": count, "individual": 0.4, "worlds": "invented"}
    joint, parallel = TextCraftCoopEnv(**options), CoopTextCraftEnv(**options)
    rng = random.Random(count)
    for seed in range(3):
        observation, info = joint.reset(seed=seed)
        assert (json.loads(observation), info["agents"]) == parallel.reset(seed=seed)
        assert joint.status()["task_id"] == parallel.status()["task_id"]
        plan = [json.loads(command) for command in joint.oracle()]
        assert plan == list(parallel.oracle())
        rounds = [{agent: parallel.random_command(agent, rng) for agent in parallel.agents} for _ in range(4)]
        before = {agent: own["state_key"] for agent, own in info["agents"].items()}
        for actions in [*rounds, *plan]:
            if not parallel.agents:
                break
            observation, reward, terminated, truncated, info = joint.step(json.dumps(actions))
            observations, rewards, terminations, _, infos = parallel.step(actions)
            assert json.loads(observation) == observations
            assert {agent: own.pop("reward") for agent, own in info["agents"].items()} == rewards
            assert {agent: own.pop("state_before") for agent, own in info["agents"].items()} == before
            before = {agent: own["state_key"] for agent, own in info["agents"].items()}
            assert (info["agents"], reward) == (infos, sum(rewards.values()) / count)
            assert (terminated, truncated) == (all(terminations.values()), False)
            assert info["score"] == pytest.approx(parallel.status()["score"])


def test_each_agent_has_its_own_instructions_and_grammar() -> None:
    env = TextCraftCoopEnv(agent_grammar="tag")
    prompts = read_texts(env.instructions)
    assert prompts == {agent: env.instructions_for(agent) for agent in ("crafter_0", "crafter_1")}
    assert "<action>" in prompts["crafter_0"] and "You are crafter_1" in prompts["crafter_1"]
    env.reset(seed=0)
    *_, info = env.step(dump(crafter_0="<action>inventory</action>", crafter_1="inventory"))
    assert info["invalid_action"].startswith("crafter_1: No action found")
    *_, info = env.step(dump(crafter_0="<action>inventory</action>", crafter_1="I wait.<action>pass</action>"))
    assert info["invalid_action"] is None
    with pytest.raises(UsageError, match="crafter_1"):
        env.instructions_for("crafter_7")
    assert set(read_texts(TextCraftCoopEnv(instructions="Play.").instructions).values()) == {"Play."}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "action",
    [
        "pass",
        "[]",
        "null",
        "{}",
        dump(crafter_0="pass"),
        dump(crafter_0="pass", crafter_1="pass", crafter_2="pass"),
        '{"crafter_0": "pass", "crafter_1": "pass", "crafter_1": "pass"}',
        '{"crafter_0": "pass", "crafter_1": 3}',
        '{"crafter_0": "pass", "crafter_1": {"crafter_1": "pass"}}',
        '{"crafter_0": "pass", "crafter_1": "\\ud800"}',
        "[" * 10_000,
    ],
)
def test_malformed_joint_actions_get_a_reply_and_change_nothing(action: str) -> None:
    env = TextCraftCoopEnv()
    env.reset(seed=0)
    before = env.step(dump(crafter_0="inventory", crafter_1="pass"))
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["invalid_action"] == observation and observation.startswith("This is no joint action.")
    assert "agents" not in info and info["state_key"] == before[4]["state_key"]
    *_, info = env.step(dump(crafter_0="inventory", crafter_1="pass"))
    assert info["agents"]["crafter_0"]["turn"] == 2 and info["turn"] == 3


def test_null_passes_if_the_game_allows_it_and_otherwise_ends_the_episode() -> None:
    env = TextCraftCoopEnv(agent_grammar="react")
    env.reset(seed=0)
    observation, *_, info = env.step(dump(crafter_0=None, crafter_1="Action: inventory"))
    assert json.loads(observation)["crafter_0"] == "You pass." and info["invalid_action"] is None
    alone = TextCraftCoopEnv(num_agents=1)
    first, _ = alone.reset(seed=0)
    observation, reward, terminated, truncated, info = alone.step(dump(crafter_0=None))
    assert (observation, reward, terminated, truncated) == (first, 0.0, False, True)
    assert info["stop_reason"] == alone.status()["stop_reason"] == StopReason.TOKEN_LIMIT
    assert info["agents"]["crafter_0"]["reward"] == 0.0
    assert info["agents"]["crafter_0"]["stop_reason"] == "token_limit"
    alone.reset(seed=0)
    assert alone.step(dump(crafter_0="inventory"))[4]["stop_reason"] is None


def test_planner_and_actor_alternate() -> None:
    env = counting()
    observation, info = env.reset(seed=1, options={"task": "count/2"})
    assert list(json.loads(observation)) == ["planner"] == list(env.acting)
    assert set(info["agents"]) == {"planner", "actor"} and "reward" not in info["agents"]["actor"]
    observation, *_, info = env.step(dump(planner="Count!"))
    [(agent, seen)] = json.loads(observation).items()
    assert agent == "actor" and seen.endswith('planner says: "Count!"')
    key = info["state_key"]
    *_, info = env.step(dump(planner="Count!"))
    assert "exactly these agents: actor" in info["invalid_action"] and info["state_key"] == key
    observation, reward, *_, info = env.step(dump(actor="down"))
    assert info["invalid_action"] == "actor: Unknown command: down"
    assert json.loads(observation) == {"planner": 'actor says: "down"\n\nUnknown command: down'}
    observation, *_, info = env.step(dump(planner=None))
    assert info["invalid_action"] is None and "says" not in json.loads(observation)["actor"]
    *_, reward, _, _, info = env.step(dump(actor="up"))
    assert (reward, info["agents"]["planner"]["reward"]) == (0.5, 0.5)
    env.step(dump(planner="On!"))
    assert [json.loads(command) for command in env.oracle()] == [{"actor": "up"}]
    observation, reward, terminated, _, info = env.step(dump(actor="up"))
    assert list(json.loads(observation)) == ["planner", "actor"] and terminated and info["success"]
    assert info["score"] == 1.0 and info["turn"] == 7


def test_an_actor_that_writes_nothing_ends_the_episode() -> None:
    env = counting()
    env.reset(seed=1, options={"task": "count/2"})
    env.step(dump(planner="up"))
    env.step(dump(actor="up"))
    seen = env.step(dump(planner="up"))[0]
    observation, reward, terminated, truncated, info = env.step(dump(actor=None))
    assert (observation, reward, terminated, truncated) == (seen, 0.0, False, True)
    assert (info["stop_reason"], info["score"]) == ("token_limit", 0.5)


@pytest.mark.parametrize("task", ["count/0", "count/2"])
def test_a_failing_inner_environment_ends_the_episode_as_env_error(task: str) -> None:
    env = counting()
    _, info = env.reset(seed=1, options={"task": task})
    if task == "count/2":
        env.step(dump(planner="break it"))
        _, reward, _, truncated, info = env.step(dump(actor="crash"))
        assert (reward, truncated) == (0.0, True)
    assert info["stop_reason"] == "env_error" and ("no power" in info["error"] or "the abacus broke" in info["error"])
    env.reset(seed=1, options={"task": "count/2"})
    assert env.step(dump(planner=""))[4]["stop_reason"] is None


@pytest.mark.parametrize("env_id", ["AgentGym/BabyAI-v0", "AgentGym/Search-v0"])
def test_every_scenario_has_a_planner_and_an_actor(env_id: str) -> None:
    env = gym.make(PLANNER_ACTOR, env_id=env_id, split=None)
    played = run_sync(play_text(env, OraclePolicy(), EpisodeSpec(seed=3), limits=Limits(max_turns=400)))
    assert played.success and played.env_kwargs == {"env_id": env_id, "split": None}
    inner = gym.make(env_id, split=None)
    assert inner.reset(seed=3)[1]["task_id"] == played.task.id
    env.close()


def test_the_team_inherits_the_needs_of_the_inner_environment() -> None:
    assert not PlannerActorEnv.needs_worker({})
    assert PlannerActorEnv.needs_worker({"env_id": "AgentGym/SciWorld-v0"})
    assert not counting().blocking
    for name in ("Slow", "Async"):
        assert PlannerActorEnv(env_id=f"tests.toy_envs:Toy/{name}-v0").blocking


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(UsageError, match="outside of env_kwargs"):
        counting(env_kwargs={"base_url": "http://127.0.0.1:1", "token": "secret"})
    with pytest.raises(UsageError, match="a dict"):
        counting(env_kwargs="x")
    with pytest.raises(UsageError, match="cannot make"):
        PlannerActorEnv(env_id="AgentGym/Nothing-v0")
    with pytest.raises(UsageError, match="group"):
        counting(groups=("none",))
    with pytest.raises(UsageError, match="num_agents"):
        TextCraftCoopEnv(num_agents=9)
    with pytest.raises(UsageError, match="did you mean 'agents-3/depth-2'"):
        TextCraftCoopEnv(num_agents=3, groups=["depth-2"])
    with pytest.raises(UsageError, match="this is a team"):
        PlannerActorEnv(env_id=PLANNER_ACTOR)
    assert not {"env_id", "env_kwargs", "recipe_table"} & (
        PlannerActorEnv.remote_options | TextCraftCoopEnv.remote_options
    )


def test_is_team_detects_team_environments() -> None:
    assert is_team("AgentGym/TextCraftCoop-v0") and is_team(PLANNER_ACTOR)
    assert not is_team("AgentGym/TextCraft-v0") and not is_team("CartPole-v1") and not is_team("No/Such-v0")


AGENTS = st.lists(st.sampled_from(["crafter_0", "crafter_1", "planner", 'x"y', "门"]), min_size=1, unique=True)
TEXT = st.text(max_size=50) | st.sampled_from(['{"a": "b"}', "\ud800", "<action>", '"', "x" * MAX_ACTION_CHARS])


@examples(25)
@given(AGENTS, st.data())
def test_joint_actions_are_read_back(agents: list[str], data: st.DataObject) -> None:
    texts = {agent: data.draw(TEXT | st.none()) for agent in agents}
    action = write_action(texts)
    assert len(action) <= MAX_ACTION_CHARS
    found = read_actions(action, agents)
    assert list(found) == agents
    for agent, text in texts.items():
        read = found[agent]
        assert (read is None) == (text is None)
        if text is not None and read is not None:
            assert text.encode("utf-8", "replace").decode().startswith(read)
            assert read == text or "\ud800" in text or len(write_texts(texts)) > MAX_ACTION_CHARS
    with pytest.raises(InvalidAction):
        read_actions(action, [*agents, "another"])


def test_the_longest_texts_are_truncated_first() -> None:
    found = read_actions(write_action({"a": "short", "b": "x" * 20_000, "c": "y" * 9_000}), ["a", "b", "c"])
    assert found["a"] == "short" and len(found["b"] or "") > 6_000 and found["c"]


@pytest.mark.parametrize("grammar", GRAMMARS)
@pytest.mark.parametrize("agent_grammar", GRAMMARS)
def test_every_pair_of_grammars_works(grammar: str, agent_grammar: str) -> None:
    with closing(gym.make("AgentGym/TextCraftCoop-v0", grammar=grammar, agent_grammar=agent_grammar)) as made:
        env = text_env(made)
        env.reset(seed=0)
        for command in env.oracle():
            *_, info = env.step(env.grammar.format(command, "so it goes"))
            assert info["invalid_action"] is None
        assert info["success"]
