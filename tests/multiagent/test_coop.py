import json
import random
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import EpisodeOver
from agentgym_envs.grammar import GRAMMARS
from agentgym_envs.multiagent.coop import CoopTextCraftEnv
from agentgym_envs.multiagent.individual_reward import IndividualReward
from agentgym_envs.textcraft.recipes import RecipeBook
from tests.multiagent.teams import (
    WORLDS,
    both,
    play,
    random_round,
    solve,
    torch_env,
    torch_task,
)
from tests.trying import examples

TEAMS = pytest.mark.parametrize("count", [1, 2, 3, 4])
GOLDEN = [
    ("pass", "say craft 4 torch using 1 stick, 1 coal"),
    ("get 2 bamboo", "get 1 coal"),
    ("craft stick using 2 bamboo", "give 1 coal to crafter_0"),
    ("craft torch using 1 stick, 1 coal", "inventory"),
]


def test_an_episode_reproduces_the_transcript() -> None:
    env = CoopTextCraftEnv(max_distractors=0, split=None)
    seen, infos = env.reset(seed=0, options={"task": torch_task(env)})
    for agent, other in (("crafter_0", "crafter_1"), ("crafter_1", "crafter_0")):
        recipes, takes, goal = seen[agent].split("\n\n")[1:]
        assert seen[agent].startswith(
            f"You are {agent}. With you: {other}.\n\nCrafting commands that you know:\ncraft "
        )
        assert recipes.splitlines()[1:] == infos[agent]["card"]["recipes"]
        assert takes == f"You can take: {', '.join(infos[agent]['card']['takes'])}."
        assert goal == "Goal: crafter_0 must craft torch."
        assert infos[agent]["crafter"] == "crafter_0" and infos[agent]["agent"] == agent
    assert not set(infos["crafter_0"]["card"]["recipes"]) & set(infos["crafter_1"]["card"]["recipes"])
    rounds = [dict(zip(env.possible_agents, each, strict=True)) for each in GOLDEN]
    observations = [(each[0]["crafter_0"], each[0]["crafter_1"]) for each in play(env, rounds)]
    assert observations == [
        ('You pass.\ncrafter_1 says: "craft 4 torch using 1 stick, 1 coal"', "You said it."),
        ("Got 2 bamboo", "Got 1 coal"),
        ("Crafted 1 stick\ncrafter_1 gives you 1 coal.", "Gave 1 coal to crafter_0"),
        (
            "Crafted 4 torch",
            "Inventory: You are not carrying anything.\ncrafter_0 crafted torch. The goal is reached.",
        ),
    ]
    assert env.agents == [] and env.num_agents == 0 and env.max_num_agents == 2


def test_gifts_and_messages_are_in_the_info() -> None:
    env = torch_env()
    *_, infos = both(env, "say hello\nthere", "get 3 coal")
    assert infos["crafter_1"]["messages"] == [{"from": "crafter_0", "text": "hello there"}]
    assert infos["crafter_0"]["messages"] == infos["crafter_0"]["gifts"] == []
    *_, infos = both(env, "pass", "give 2 coal to crafter_0")
    assert infos["crafter_0"]["gifts"] == [{"from": "crafter_1", "item": "coal", "amount": 2}]
    assert infos["crafter_0"]["inventory"] == {"coal": 2} and infos["crafter_1"]["inventory"] == {"coal": 1}
    assert infos["crafter_1"]["messages"] == infos["crafter_1"]["gifts"] == []


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("get 1 bamboo", "You cannot take bamboo"),
        ("get 1 diamond", "You cannot take diamond"),
        ("get 1 stick", "Could not find stick"),
        ("give 1 coal to crafter_7", "Could not find crafter 7 to give to"),
        ("give 1 coal to crafter_1", "Could not find crafter 1 to give to"),
        ("give 3 coal to crafter_0", "Could not find enough items to give 3 coal"),
        ("give 1 unobtainium to crafter_0", "Could not find enough items to give 1 unobtainium"),
        ("GIVE 2  Coal to Crafter 0.", "Gave 2 coal to crafter_0"),
        ("give 2 minecraft:coal to crafter0", "Gave 2 coal to crafter_0"),
        ("pass", "You pass."),
        ("say " + "x" * 301, "You said the first 300 characters of it."),
    ],
)
def test_commands_get_the_expected_replies(command: str, reply: str) -> None:
    env = torch_env()
    both(env, "pass", "get 2 coal")
    observations, _, _, _, infos = both(env, "pass", command)
    assert observations["crafter_1"] == reply
    assert infos["crafter_1"]["invalid_action"] is None


@pytest.mark.parametrize(
    "action", ["", "look", "say", "give coal to crafter_0", "pass on", "get 0 coal", "craft torch"]
)
def test_malformed_actions_are_invalid_and_change_nothing(action: str) -> None:
    env = torch_env()
    *_, before = both(env, "pass", "get 2 coal")
    observations, rewards, _, _, infos = both(env, "pass", action)
    assert infos["crafter_1"]["invalid_action"] == observations["crafter_1"]
    assert infos["crafter_0"]["invalid_action"] is None
    assert rewards == {"crafter_0": 0.0, "crafter_1": 0.0}
    assert infos["crafter_1"]["state_key"] == before["crafter_1"]["state_key"]


def test_gifts_arrive_at_the_end_of_the_round() -> None:
    env = torch_env()
    both(env, "get 2 bamboo", "get 1 coal")
    both(env, "craft stick using 2 bamboo", "pass")
    observations, *_ = both(env, "craft torch using 1 stick, 1 coal", "give 1 coal to crafter_0")
    assert observations["crafter_0"] == "Could not find enough items to craft torch\ncrafter_1 gives you 1 coal."
    observations, *_ = both(env, "give 1 coal to crafter_1", "give 1 coal to crafter_0")
    assert observations["crafter_0"] == "Gave 1 coal to crafter_1"
    assert observations["crafter_1"].splitlines() == [
        "Could not find enough items to give 1 coal",
        "crafter_0 gives you 1 coal.",
    ]


def test_only_the_named_agent_reaches_the_goal() -> None:
    env = torch_env(individual=0.5)
    both(env, "get 2 bamboo", "get 1 coal")
    both(env, "craft stick using 2 bamboo", "pass")
    both(env, "give 1 stick to crafter_1", "pass")
    observations, rewards, terminations, _, _ = both(env, "pass", "craft torch using 1 stick, 1 coal")
    assert observations["crafter_1"] == "Crafted 4 torch"
    assert rewards == {"crafter_0": 0.0, "crafter_1": 0.0} and not any(terminations.values())
    assert solve(env) > 0


def test_an_unknown_recipe_may_be_used() -> None:
    env = torch_env()
    torch = "craft 4 torch using 1 stick, 1 coal"
    assert torch not in env.reset(seed=0, options={"task": torch_task(env)})[1]["crafter_0"]["card"]["recipes"]
    both(env, "get 2 bamboo", "get 1 coal")
    both(env, "craft stick using 2 bamboo", "give 1 coal to crafter_0")
    assert both(env, torch, "pass")[2] == {"crafter_0": True, "crafter_1": True}


def test_every_agent_is_rewarded_once() -> None:
    env = torch_env()
    totals = {"crafter_0": 0.0, "crafter_1": 0.0}
    for _, rewards, *_, infos in play(env, env.oracle()):
        totals = {agent: total + rewards[agent] for agent, total in totals.items()}
        assert {agent: info["score"] for agent, info in infos.items()} == totals
    assert totals == {"crafter_0": 1.0, "crafter_1": 1.0}
    assert env.status()["score"] == 1.0 and env.status()["scores"] == totals


def test_the_score_of_the_team_is_the_mean() -> None:
    """crafter_0 does two of the four steps of the plan; each pays 0.3 / 4."""
    env = torch_env(individual=0.3)
    both(env, "get 2 bamboo", "pass")
    both(env, "craft stick using 2 bamboo", "pass")
    status = env.status()
    assert status["scores"] == pytest.approx({"crafter_0": 0.15, "crafter_1": 0.0})
    assert status["score"] == pytest.approx(0.075)


def test_with_individual_1_success_itself_pays_nothing() -> None:
    env = torch_env(individual=1)
    *_, (_, rewards, _, _, _) = play(env, env.oracle())
    assert rewards == pytest.approx({"crafter_0": 0.25, "crafter_1": 0.0})


def test_messages_arrive_in_agent_order() -> None:
    env = CoopTextCraftEnv(num_agents=3, max_distractors=0)
    env.reset(seed=1)
    observations, *_, infos = env.step({"crafter_2": "say third", "crafter_0": "say first", "crafter_1": "say second"})
    assert observations["crafter_2"].splitlines()[1:] == ['crafter_0 says: "first"', 'crafter_1 says: "second"']
    assert observations["crafter_1"].splitlines()[1:] == ['crafter_0 says: "first"', 'crafter_2 says: "third"']
    assert observations["crafter_0"].splitlines()[1:] == ['crafter_1 says: "second"', 'crafter_2 says: "third"']
    assert [message["from"] for message in infos["crafter_0"]["messages"]] == ["crafter_1", "crafter_2"]


def test_no_info_reveals_the_recipes_of_another_agent() -> None:
    for worlds in WORLDS:
        _, infos = CoopTextCraftEnv(num_agents=3, worlds=worlds).reset(seed=1)  # type: ignore[arg-type]
        for agent, info in infos.items():
            shown = json.dumps({**info, "card": None})
            for other in set(infos) - {agent}:
                assert not [line for line in infos[other]["card"]["recipes"] if line.split(" using ")[1] in shown]
            assert "recipe_tree" not in info
    assert CoopTextCraftEnv(num_agents=1).reset(seed=1)[1]["crafter_0"]["recipe_tree"]


def test_the_state_is_the_json_of_all_observations() -> None:
    env = torch_env()
    seen, _ = env.reset(seed=0, options={"task": torch_task(env)})
    assert json.loads(env.state()) == seen and env.state() in env.state_space
    seen, *_ = both(env, "say hé", "get 1 coal")
    assert json.loads(env.state()) == seen and list(json.loads(env.state())) == env.possible_agents
    with pytest.raises(EpisodeOver, match="no episode was begun"):
        CoopTextCraftEnv().state()


def test_the_individual_reward_is_paid_per_step_of_the_plan() -> None:
    """The plan takes coal and bamboo and crafts a stick and a torch: four steps, a quarter of 0.4 each."""
    env = torch_env(individual=0.4)
    assert both(env, "get 2 bamboo", "pass")[1] == pytest.approx({"crafter_0": 0.1, "crafter_1": 0.0})
    assert both(env, "get 2 bamboo", "get 1 coal")[1] == pytest.approx({"crafter_0": 0.0, "crafter_1": 0.1})
    both(env, "give 2 bamboo to crafter_1", "pass")
    rewards = both(env, "craft stick using 2 bamboo", "craft stick using 2 bamboo")[1]
    assert rewards == pytest.approx({"crafter_0": 0.05, "crafter_1": 0.05})
    both(env, "pass", "give 1 coal to crafter_0")
    rewards = both(env, "craft torch using 1 stick, 1 coal", "pass")[1]
    assert rewards == pytest.approx({"crafter_0": 0.7, "crafter_1": 0.6})
    scores = env.status()["scores"]
    assert scores == pytest.approx({"crafter_0": 0.85, "crafter_1": 0.75})


def test_other_items_of_a_kind_count_except_for_the_goal(book: RecipeBook) -> None:
    oak, birch = (book.items.index(name) for name in ("oak_planks", "birch_planks"))
    assert IndividualReward(book, oak).pay([birch, None, oak]) == [0.0, 0.0, 0.5]
    individual_reward = IndividualReward(book, book.items.index("crafting_table"))
    assert individual_reward.pay([birch, oak]) == pytest.approx([1 / 6, 1 / 6])
    assert individual_reward.pay([birch, oak]) == [0.0, 0.0]


@given(st.integers(0, 400), st.integers(1, 4), st.sampled_from([0.0, 0.2, 1.0]))
@examples(30)
def test_rewards_stay_in_bounds(seed: int, count: int, individual: float) -> None:
    env = CoopTextCraftEnv(num_agents=count, individual=individual, split=None)
    env.reset(seed=seed)
    rng = random.Random(seed)
    seen = play(env, [random_round(env, rng) for _ in range(8)])
    if env.agents:
        seen += play(env, env.oracle())
    totals = {agent: sum(each[1][agent] for each in seen) for agent in env.possible_agents}
    assert all(reward >= 0 for each in seen for reward in each[1].values())
    assert totals == pytest.approx(env.status()["scores"])
    assert all(1 - individual - 1e-9 <= total <= 1 + 1e-9 for total in totals.values())
    assert sum(totals.values()) <= count * (1 - individual) + individual + 1e-9


@TEAMS
def test_the_oracle_earns_the_whole_individual_part(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count, individual=0.2, split=None)
    for seed in range(20):
        env.reset(seed=seed)
        solve(env)
        assert sum(env.status()["scores"].values()) == pytest.approx(count * 0.8 + 0.2)


# One agent.

SINGLE = {worlds: gym.make("AgentGym/TextCraft-v0", worlds=worlds).unwrapped for worlds in WORLDS}
TEAM_OF_ONE = {worlds: CoopTextCraftEnv(num_agents=1, worlds=worlds) for worlds in WORLDS}  # type: ignore[arg-type]


@examples(40)
@given(
    st.sampled_from(WORLDS), st.integers(0, 2**31 - 1), st.lists(st.text(max_size=30) | st.integers(0, 99), max_size=8)
)
def test_a_team_of_one_equals_textcraft(worlds: str, seed: int, moves: list[str | int]) -> None:
    env, single = TEAM_OF_ONE[worlds], SINGLE[worlds]
    rng = random.Random(seed)
    observations, infos = env.reset(seed=seed)
    observation, info = single.reset(seed=seed)
    assert observations == {"crafter_0": observation}
    assert {key: infos["crafter_0"][key] for key in info} == info
    actions: list[str] = []
    for move in moves:
        actions.append(move if isinstance(move, str) else env.random_command("crafter_0", rng))
        if not one_step(env, single, actions[-1]):
            return
    for extra in ("say hello", "give 1 coal to crafter_0", "pass"):
        one_step(env, single, extra)
    plan = list(single.oracle())  # type: ignore[attr-defined]
    assert [each["crafter_0"] for each in env.oracle()] == plan
    assert [one_step(env, single, command) for command in plan] == [True] * (len(plan) - 1) + [False]


def one_step(env: CoopTextCraftEnv, single: Any, action: str) -> bool:
    """Take the same step in both; return True if the episode continues."""
    *expected, info = single.step(action)
    observations, rewards, terminations, truncations, infos = env.step({"crafter_0": action})
    assert [each["crafter_0"] for each in (observations, rewards, terminations, truncations)] == expected
    assert {key: infos["crafter_0"][key] for key in info} == info
    assert set(infos["crafter_0"]) - set(info) == {"agent", "messages", "gifts"}
    return bool(env.agents)


def test_one_agent_has_the_instructions_of_textcraft() -> None:
    for grammar in GRAMMARS:
        env, single = (
            CoopTextCraftEnv(num_agents=1, grammar=grammar),
            gym.make("AgentGym/TextCraft-v0", grammar=grammar),
        )
        assert env.instructions_for("crafter_0") == single.unwrapped.instructions  # type: ignore[attr-defined]


def test_unseeded_episodes_of_one_agent_equal_those_of_textcraft() -> None:
    env, single = CoopTextCraftEnv(num_agents=1), gym.make("AgentGym/TextCraft-v0")
    env.reset(seed=3)
    single.reset(seed=3)
    assert [env.reset()[0]["crafter_0"] for _ in range(5)] == [single.reset()[0] for _ in range(5)]
