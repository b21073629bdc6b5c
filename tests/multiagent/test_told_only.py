"""Teams whose members craft only by what they were shown or told."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from agentgym_envs.multiagent.allocation import can_make
from agentgym_envs.multiagent.coop import CoopTextCraftEnv
from agentgym_envs.multiagent.joint_envs import TextCraftCoopEnv
from agentgym_envs.multiagent.tasks import deal_of
from tests.multiagent.teams import play, random_round, solve

TORCH = "craft 4 torch using 1 stick, 1 coal"
UNKNOWN = "You do not know that recipe"


def told(count: int = 2, **options: Any) -> CoopTextCraftEnv:
    return CoopTextCraftEnv(num_agents=count, told_only=True, max_distractors=0, split=None, **options)


def with_torch_parts() -> CoopTextCraftEnv:
    """crafter_0 carries all that a torch takes, and was told nothing."""
    env = told()
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


def test_nobody_crafts_by_a_guess() -> None:
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
        (f"{'x' * 280} {TORCH}", False),  # cut
    ],
)
def test_a_recipe_is_told_word_for_word(message: str, knows: bool) -> None:
    env = with_torch_parts()
    say(env, crafter_1=message)
    assert crafts(env) == ("Crafted 4 torch" if knows else UNKNOWN)


def test_only_one_that_knows_it_can_tell() -> None:
    """Neither saying it to oneself nor having a mate repeat it helps."""
    env = with_torch_parts()
    say(env, crafter_0=TORCH)
    assert crafts(env) == UNKNOWN
    team = told(3)
    task = next(task for task in team.tasks.sample() if task.goal == "craft torch")
    team.reset(seed=0, options={"task": task.id})
    deal = deal_of(team._seats[0].recipe_book, task)
    crafter, goal = team._seats[deal.crafter], team._seats[0].goal
    knower = team._seats[deal.knower(crafter.recipe_book.recipes_for[goal][0])]
    [third] = (seat for seat in team._seats if seat not in (crafter, knower))
    say(team, **{third.agent: TORCH})
    assert not any(seat.told_in(TORCH) for seat in (crafter, third))
    say(team, **{knower.agent: TORCH})
    assert crafter.told_in(TORCH) == third.told_in(TORCH) == knower.told_in(TORCH) != set()


@pytest.mark.parametrize("count", [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (3, 4))])
def test_a_silent_team_never_wins_and_one_that_talks_always_does(count: int) -> None:
    env = told(count)
    for seed, task in enumerate(env.tasks.sample(split="test")):
        env.reset(seed=seed, options={"task": task.id})
        silent = [
            {agent: "pass" if command.startswith("say ") else command for agent, command in each.items()}
            for each in env.oracle()
        ]
        observations, *_ = play(env, silent)[-1]
        assert UNKNOWN in observations.values() and env.agents, task.id
        solve(env)  # from there, by talking after all


@pytest.mark.parametrize("worlds", ["real", "invented"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_nobody_can_be_left_out(count: int, worlds: Any) -> None:
    """All but one say every recipe there is, guessed or known. What they know then and can take does not suffice."""
    env = told(count, worlds=worlds)
    for seed, task in enumerate(env.tasks.sample(12, split="test", seed=count)):
        env.reset(seed=seed, options={"task": task.id})
        book, goal = env._seats[0].recipe_book, env._seats[0].goal
        lines = [env._seats[0].names.line(number) for number in book.needed(goal)]
        saved = env.snapshot()
        for absent in env._seats:
            if absent.agent == absent.crafter:
                continue
            env.restore(saved)
            for line in lines:
                env.step({each: "pass" if each == absent.agent else f"say {line}" for each in env.agents})
            present = [seat for seat in env._seats if seat is not absent]
            knows = {number for seat in present for number in seat.known or ()}
            takes = {ref for seat in present for ref in seat.hand.takes}
            assert knows == {number for seat in present for number in seat.hand.recipes}
            assert not can_make(book, goal, knows, takes), (task.id, absent.agent)


@pytest.mark.parametrize("count", [1, 3])
def test_the_oracle_solves_from_any_state(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count, told_only=True, split=None, worlds="fictional")
    rng = random.Random(0)
    for seed in range(10):
        env.reset(seed=seed)
        for _ in range(8):
            if env.agents:
                env.step(random_round(env, rng))
        if env.agents:
            solve(env)


def test_one_agent_is_not_told_anything() -> None:
    env, plain = (CoopTextCraftEnv(num_agents=1, told_only=only) for only in (True, False))
    assert env.instructions_for("crafter_0") == plain.instructions_for("crafter_0")
    assert env.reset(seed=3) == plain.reset(seed=3)
    for command in list(env.oracle()):
        assert env.step(command) == plain.step(command)
    assert env.status()["success"]


def test_the_rule_is_told() -> None:
    assert "one that you were told, word for word, by one that knows it. The" in told().instructions_for("crafter_0")
    assert "one that you were told. The" in CoopTextCraftEnv().instructions_for("crafter_0")
    with pytest.raises(UsageError, match="told_only is True or False, got 'no'"):
        CoopTextCraftEnv(told_only="no")  # type: ignore[arg-type]


def test_the_joint_form_takes_it() -> None:
    assert "told_only" in TextCraftCoopEnv.remote_options
    env = TextCraftCoopEnv(told_only=True, max_distractors=0)
    env.reset(seed=0, options={"task": "textcraft-coop/2/22"})
    for command in [json.loads(each) for each in env.oracle()]:
        quiet = {agent: "pass" if text.startswith("say ") else text for agent, text in command.items()}
        observation, *_ = env.step(json.dumps(quiet))
    assert json.loads(observation)["crafter_1"] == UNKNOWN
