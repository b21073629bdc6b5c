"""Teams whose members may only use recipes that they were shown or sent."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from agentgym_envs.multiagent.allocation import can_make
from agentgym_envs.multiagent.coop import CoopTextCraftEnv
from agentgym_envs.multiagent.joint_envs import TextCraftCoopEnv
from agentgym_envs.multiagent.tasks import allocation_of
from tests.multiagent.teams import play, random_round, solve

TORCH = "craft 4 torch using 1 stick, 1 coal"
UNKNOWN = "You do not know that recipe"


def team_of(count: int = 2, **options: Any) -> CoopTextCraftEnv:
    return CoopTextCraftEnv(num_agents=count, known_recipes_only=True, max_distractors=0, split=None, **options)


def with_torch_parts() -> CoopTextCraftEnv:
    """crafter_0 has all ingredients of a torch, but not the recipe."""
    env = team_of()
    env.reset(seed=0, options={"task": next(task.id for task in env.tasks.sample() if task.goal == "craft torch")})
    for one, other in (
        ("get 2 bamboo", "get 1 coal"),
        ("craft stick using 2 bamboo", "give 1 coal to crafter_0"),
    ):
        env.step({"crafter_0": one, "crafter_1": other})
    return env


def say(env: CoopTextCraftEnv, **texts: str) -> Any:
    return env.step({agent: f"say {texts[agent]}" if agent in texts else "pass" for agent in env.agents})


def crafts(env: CoopTextCraftEnv, agent: str = "crafter_0") -> str:
    observations, *_, infos = env.step({each: TORCH if each == agent else "pass" for each in env.agents})
    assert infos[agent]["invalid_action"] is None
    return str(observations[agent])


def test_a_guessed_recipe_is_refused() -> None:
    env = with_torch_parts()
    carried = env.step({"crafter_0": "pass", "crafter_1": "pass"})[4]["crafter_0"]["inventory"]
    assert crafts(env) == UNKNOWN
    assert env.step({"crafter_0": "pass", "crafter_1": "pass"})[4]["crafter_0"]["inventory"] == carried
    say(env, crafter_1=TORCH)
    assert crafts(env) == "Crafted 4 torch" and env.agents == []


@pytest.mark.parametrize(
    ("message", "knows"),
    [
        (f"Please {TORCH}. I go for coal.", True),
        (TORCH.upper(), True),
        ("craft 4 torch using 1 stick,\n1 coal", True),
        ("craft torch using 1 stick, 1 coal", False),
        ("craft 4 torch using 1 coal, 1 stick", False),
        ("craft 4 torch using 1 stick, 1 coalition", False),
        ("aircraft 4 torch using 1 stick, 1 coal", False),
        (f"{'x' * 280} {TORCH}", False),  # truncated
    ],
)
def test_a_recipe_must_be_sent_word_for_word(message: str, knows: bool) -> None:
    env = with_torch_parts()
    say(env, crafter_1=message)
    assert crafts(env) == ("Crafted 4 torch" if knows else UNKNOWN)


def test_only_an_agent_that_knows_a_recipe_can_teach_it() -> None:
    """Sending it oneself does not help, and neither does another agent that repeats it."""
    env = with_torch_parts()
    say(env, crafter_0=TORCH)
    assert crafts(env) == UNKNOWN
    team = team_of(3)
    task = next(task for task in team.tasks.sample() if task.goal == "craft torch")
    team.reset(seed=0, options={"task": task.id})
    allocation = allocation_of(team._members[0].recipe_book, task)
    crafter, goal = team._members[allocation.crafter], team._members[0].goal
    holder = team._members[allocation.recipe_holder(crafter.recipe_book.recipes_for[goal][0])]
    [third] = (member for member in team._members if member not in (crafter, holder))
    say(team, **{third.agent: TORCH})
    assert not any(member.recipes_in(TORCH) for member in (crafter, third))
    say(team, **{holder.agent: TORCH})
    assert crafter.recipes_in(TORCH) == third.recipes_in(TORCH) == holder.recipes_in(TORCH) != set()


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (3, 4))])
def test_a_team_wins_only_with_messages(count: int) -> None:
    env = team_of(count)
    for seed, task in enumerate(env.tasks.sample(split="test")):
        env.reset(seed=seed, options={"task": task.id})
        silent = [
            {agent: "pass" if command.startswith("say ") else command for agent, command in each.items()}
            for each in env.oracle()
        ]
        observations, *_ = play(env, silent)[-1]
        assert UNKNOWN in observations.values() and env.agents, task.id
        solve(env)  # from there, with messages


@pytest.mark.parametrize("worlds", ["real", "invented"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_agent_is_needed(count: int, worlds: Any) -> None:
    """All but one send every recipe, known or guessed. Their recipes and items still do not suffice."""
    env = team_of(count, worlds=worlds)
    for seed, task in enumerate(env.tasks.sample(12, split="test", seed=count)):
        env.reset(seed=seed, options={"task": task.id})
        book, goal = env._members[0].recipe_book, env._members[0].goal
        lines = [env._members[0].names.line(number) for number in book.needed(goal)]
        saved = env.snapshot()
        for absent in env._members:
            if absent.agent == absent.crafter:
                continue
            env.restore(saved)
            for line in lines:
                env.step({each: "pass" if each == absent.agent else f"say {line}" for each in env.agents})
            present = [member for member in env._members if member is not absent]
            knows = {number for member in present for number in member.known or ()}
            takes = {ref for member in present for ref in member.holdings.takes}
            assert knows == {number for member in present for number in member.holdings.recipes}
            assert not can_make(book, goal, knows, takes), (task.id, absent.agent)


@pytest.mark.parametrize("count", [1, 3])
def test_the_oracle_solves_from_any_state(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count, known_recipes_only=True, split=None, worlds="fictional")
    rng = random.Random(0)
    for seed in range(10):
        env.reset(seed=seed)
        for _ in range(8):
            if env.agents:
                env.step(random_round(env, rng))
        if env.agents:
            solve(env)


def test_the_option_has_no_effect_on_a_single_agent() -> None:
    env, plain = (CoopTextCraftEnv(num_agents=1, known_recipes_only=only) for only in (True, False))
    assert env.instructions_for("crafter_0") == plain.instructions_for("crafter_0")
    assert env.reset(seed=3) == plain.reset(seed=3)
    for command in list(env.oracle()):
        assert env.step(command) == plain.step(command)
    assert env.status()["success"]


def test_the_instructions_state_the_rule() -> None:
    assert "one that you were told, word for word, by one that knows it. The" in team_of().instructions_for("crafter_0")
    assert "one that you were told. The" in CoopTextCraftEnv().instructions_for("crafter_0")
    with pytest.raises(UsageError, match="known_recipes_only is True or False, got 'no'"):
        CoopTextCraftEnv(known_recipes_only="no")  # type: ignore[arg-type]


def test_the_joint_form_has_the_option() -> None:
    assert "known_recipes_only" in TextCraftCoopEnv.remote_options
    env = TextCraftCoopEnv(known_recipes_only=True, max_distractors=0)
    env.reset(seed=0, options={"task": "textcraft-coop/2/22"})
    for command in [json.loads(each) for each in env.oracle()]:
        quiet = {agent: "pass" if text.startswith("say ") else text for agent, text in command.items()}
        observation, *_ = env.step(json.dumps(quiet))
    assert json.loads(observation)["crafter_1"] == UNKNOWN
