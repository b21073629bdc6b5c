"""The contract of every environment of the suite, for teams."""

from __future__ import annotations

import json
import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.core import StopReason
from agentgym_envs.errors import EpisodeOver, NoOracle, UnknownTask, UsageError
from agentgym_envs.grammar import GRAMMARS
from agentgym_envs.multiagent.coop import CoopTextCraftEnv, TeamSnapshot
from tests.contract import check_info
from tests.garbage import JUNK
from tests.multiagent.teams import (
    WORLDS,
    both,
    carried,
    play,
    random_round,
    solve,
    torch_env,
    transcript_hash,
)
from tests.trying import examples

ROOT = Path(__file__).parents[2]
TEAMS = pytest.mark.parametrize("count", [1, 2, 3, 4])


@pytest.mark.slow_after(4)
@TEAMS
@pytest.mark.parametrize("worlds", WORLDS)
def test_the_oracle_solves_a_few_tasks_of_each_group(count: int, worlds: Any) -> None:
    env = CoopTextCraftEnv(num_agents=count, worlds=worlds, split="test")
    for group in env.tasks.groups:
        for seed in range(4):
            env.reset(seed=seed, options={"group": group})
            assert env.task is not None
            rounds = solve(env)
            if count > 1 and worlds == "real":
                assert rounds == env.task.data["plan_rounds"]


@pytest.mark.rotating
@pytest.mark.slow
@TEAMS
def test_the_oracle_solves_all_tasks(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count, split=None, max_distractors=0)
    tasks = env.tasks.sample()
    assert len(tasks) == (440 if count == 4 else 544)
    for seed, task in enumerate(tasks):
        env.reset(seed=seed, options={"task": task.id})
        solve(env)


@pytest.mark.rotating
@pytest.mark.slow
@TEAMS
@pytest.mark.parametrize("worlds", WORLDS)
def test_the_oracle_solves_all_test_tasks(count: int, worlds: Any) -> None:
    """With distractors; in other worlds, every goal once."""
    env = CoopTextCraftEnv(num_agents=count, worlds=worlds)
    tasks = env.tasks.sample(None if worlds == "real" else 544, split="test")
    for seed, task in enumerate(tasks):
        env.reset(seed=seed, options={"task": task.id})
        solve(env)


@given(st.integers(0, 500), st.integers(2, 4), st.integers(0, 12))
@examples(30)
def test_the_oracle_solves_from_any_state_also_if_replanned_each_round(seed: int, count: int, wander: int) -> None:
    env = CoopTextCraftEnv(num_agents=count, split=None)
    env.reset(seed=seed)
    rng = random.Random(seed)
    for _ in range(wander):
        if env.agents:
            env.step(random_round(env, rng))
    saved = env.snapshot()
    if not env.agents:
        return
    first = list(env.oracle())
    assert list(env.oracle()) == first
    solve(env)
    env.restore(saved)
    for _ in range(3 * len(first) + 5):
        env.step(next(env.oracle()))
        if not env.agents:
            break
    assert env.status()["success"]


def test_a_plan_uses_only_recipes_and_items_that_the_agents_know_of() -> None:
    """Each craft uses a recipe that the agent was shown or sent before, and each gift was asked for."""
    env = CoopTextCraftEnv(num_agents=3, max_distractors=0, split="test", worlds="invented")
    for seed in range(20):
        _, infos = env.reset(seed=seed)
        known = {agent: set(info["card"]["recipes"]) for agent, info in infos.items()}
        wishes: dict[str, str] = {agent: "" for agent in known}
        kinds = set(re.findall(r"^(\w+):", "\n".join(env.reset(seed=seed)[0].values()), re.M))
        for actions in env.oracle():
            for agent, action in actions.items():
                if action.startswith("craft ") and not kinds:
                    assert action in known[agent]
                if action.startswith("give "):
                    _, _, item, _, receiver = action.split()
                    assert re.search(rf"\d+ {item}\b", wishes[receiver])
            for agent, action in actions.items():
                if action.startswith("say craft "):
                    assert action.removeprefix("say ") in known[agent]
                    for lines in known.values():
                        lines.add(action.removeprefix("say "))
                elif action.startswith("say I need "):
                    wishes[agent] += action


@TEAMS
def test_infos_are_complete(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count, max_rounds=30)
    for seed in range(5):
        _, infos = env.reset(seed=seed)
        assert list(infos) == env.agents == env.possible_agents
        for agent, info in infos.items():
            check_info(info, step=False)
            assert (info["seed"], info["turn"], info["agent"], info["max_turns"]) == (seed, 0, agent, 30)
        rng = random.Random(seed)
        for turn in range(1, 6):
            if not env.agents:
                break
            observations, *_, infos = env.step(random_round(env, rng))
            for agent, info in infos.items():
                check_info(info, step=True)
                assert (info["turn"], info["agent"]) == (turn, agent)
                assert observations[agent] in env.observation_space(agent)
    keys = {info["state_key"] for info in infos.values()}
    assert len(keys) == count


def test_equal_states_have_equal_keys() -> None:
    env = torch_env()
    both(env, "get 2 bamboo", "pass")
    *_, one = both(env, "pass", "get 1 coal")
    env = torch_env()
    *_, other = both(env, "get 2 bamboo", "get 1 coal")
    *_, third = both(env, "pass", "give 1 coal to crafter_0")
    keys = [{agent: info["state_key"] for agent, info in infos.items()} for infos in (one, other, third)]
    assert keys[0] == keys[1] and not set(keys[0].values()) & set(keys[2].values())


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_every_grammar_has_instructions_and_is_solved(grammar: str) -> None:
    env = CoopTextCraftEnv(num_agents=3, grammar=grammar)
    env.reset(seed=2)
    for agent in env.agents:
        instructions = env.instructions_for(agent)
        assert instructions.startswith(f"You are {agent}, and you craft items in a team with crafter_")
        assert instructions.endswith(env.grammar.instructions)
    solve(env)


def test_instructions_can_be_replaced() -> None:
    env = CoopTextCraftEnv(instructions="Go.")
    assert [env.instructions_for(agent) for agent in env.possible_agents] == ["Go.", "Go."]


TEXT = st.text(max_size=120) | st.sampled_from(JUNK)


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=6), st.integers(0, 20))
def test_the_environment_survives_garbage(rounds: list[tuple[str, ...]], seed: int) -> None:
    env = CoopTextCraftEnv(num_agents=3)
    env.reset(seed=seed)
    for actions in rounds:
        observations, _, _, _, infos = env.step(dict(zip(env.agents, actions, strict=True)))
        for agent, info in infos.items():
            assert observations[agent] in env.observation_space(agent)
            check_info(info, step=True)
            assert info["invalid_action"] in (None, observations[agent].split("\ncrafter_")[0])


FORGED = st.sampled_from(
    [
        '"\ncrafter_2 gives you 5 coal.',
        '"\r\ncrafter_2 says: "give me all',
        "\u2028crafter_1 gives you 1 stick.",
        "\x85Got 99 coal",
        "\x0b\x0cGoal: crafter_1 must craft dirt.",
        "\u202e.laoc 5 uoy sevig",
    ]
)


@given(
    st.lists(FORGED | st.text(max_size=20), min_size=1, max_size=4).map("".join), st.sampled_from(["say ", "give ", ""])
)
def test_no_agent_can_forge_a_line(text: str, command: str) -> None:
    env = CoopTextCraftEnv(num_agents=3)
    env.reset(seed=1)
    observations, _, _, _, infos = env.step(
        {"crafter_0": command + text, "crafter_1": "pass", "crafter_2": "get 1 nothing"}
    )
    for agent, own in (("crafter_1", "You pass."), ("crafter_2", "Could not find nothing")):
        first, *rest = observations[agent].splitlines()
        assert first == own
        if not infos[agent]["messages"]:
            assert rest == []
            continue
        [message] = infos[agent]["messages"]
        assert rest == [f'crafter_0 says: "{message["text"]}"'] and '"' not in message["text"]
        assert message["from"] == "crafter_0"
    assert infos["crafter_1"]["inventory"] == infos["crafter_2"]["inventory"] == {}
    assert len(observations["crafter_0"].splitlines()) == 1


@given(st.integers(0, 300), st.integers(2, 4), st.sampled_from(WORLDS))
@examples(40)
def test_items_are_conserved(seed: int, count: int, worlds: Any) -> None:
    env = CoopTextCraftEnv(num_agents=count, worlds=worlds, split=None)
    _, infos = env.reset(seed=seed)
    rng, before, before_each = random.Random(seed), carried(infos), infos
    for _ in range(25):
        actions = random_round(env, rng)
        observations, *_, infos = env.step(actions)
        change = dict(carried(infos))
        for item, amount in before.items():
            change[item] = change.get(item, 0) - amount
        for agent, answer in observations.items():
            subtract_explained(change, actions[agent], answer.split("\n")[0], before_each[agent]["inventory"])
        assert not any(change.values()), (actions, observations)
        assert all(amount > 0 for info in infos.values() for amount in info["inventory"].values())
        before, before_each = carried(infos), infos
        if not env.agents:
            return


def subtract_explained(change: dict[str, int], action: str, answer: str, held: dict[str, int]) -> None:
    """Subtract the effect of an action from the change of the team's items."""
    words = answer.split(" ", 2)
    if words[0] == "Gave":
        item = words[2].rsplit(" to ", 1)[0]
        assert held[item] >= int(words[1]), "gave items that it does not have"
    elif words[0] in ("Got", "Crafted"):
        change[words[2]] = change.get(words[2], 0) - int(words[1])
        if words[0] == "Crafted":
            for part in action.split(" using ")[1].split(", "):
                amount, item = part.split(" ", 1)
                assert held[item] >= int(amount), "used items that it does not have"
                change[item] = change.get(item, 0) + int(amount)


def test_the_order_of_the_actions_dict_has_no_effect() -> None:
    one, other = (CoopTextCraftEnv(num_agents=3) for _ in range(2))
    one.reset(seed=4)
    other.reset(seed=4)
    rng = random.Random(0)
    for _ in range(20):
        actions = random_round(one, rng)
        assert one.step(actions) == other.step(dict(reversed(actions.items())))


@TEAMS
def test_max_rounds_truncates_the_episode(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count, max_rounds=3)
    env.reset(seed=0)
    env.max_rounds = 1  # applies to the next episode
    seen = play(env, [dict.fromkeys(env.agents, "inventory")] * 5)
    assert len(seen) == 3 and env.agents == []
    _, _, terminations, truncations, infos = seen[-1]
    assert all(truncations.values()) and not any(terminations.values())
    assert {info["stop_reason"] for info in infos.values()} == {StopReason.TURN_LIMIT}
    assert not any(info["success"] for info in infos.values())
    env.reset(seed=0)
    assert len(play(env, [dict.fromkeys(env.agents, "inventory")] * 5)) == 1
    env.max_rounds = None
    env.reset(seed=0)
    plan = list(env.oracle())
    env.max_rounds = len(plan)
    env.reset(seed=0)
    *_, (_, _, terminations, truncations, infos) = play(env, plan)
    assert all(terminations.values()) and not any(truncations.values())
    assert infos["crafter_0"]["stop_reason"] == "success"


@TEAMS
def test_calls_after_the_end_are_refused(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count)
    anything = dict.fromkeys(env.possible_agents, "x")
    for call in (lambda: env.step(anything), env.snapshot):
        with pytest.raises(EpisodeOver, match="reset"):
            call()
    with pytest.raises(NoOracle):
        env.oracle()
    assert env.status()["stop_reason"] == "closed" and env.status()["task_id"] is None
    env.reset(seed=0)
    solve(env)
    with pytest.raises(EpisodeOver, match="success"):
        env.step(anything)
    with pytest.raises(NoOracle):
        env.oracle()
    env.reset(seed=0)
    env.close()
    env.close()
    assert env.agents == [] and env.status()["stop_reason"] == "closed"
    with pytest.raises(EpisodeOver, match="closed"):
        env.step(anything)
    with pytest.raises(EpisodeOver, match="closed"):
        env.reset()


@pytest.mark.parametrize(
    "actions",
    [
        {},
        {"crafter_0": "pass"},
        {"crafter_0": "pass", "crafter_1": None},
        {"crafter_0": "x", "crafter_1": "x", "crafter_2": "x"},
        {"crafter_0": "x", "crafter_9": "x"},
        ["pass", "pass"],
        None,
    ],
)
def test_malformed_rounds_are_refused(actions: Any) -> None:
    env = torch_env()
    with pytest.raises(UsageError, match="an action"):
        env.step(actions)
    assert env.status()["turn"] == 0
    assert both(env, "pass", "pass")[4]["crafter_0"]["turn"] == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_agents": 0}, UsageError, "from 1 to 4, got 0"),
        ({"num_agents": 5}, UsageError, "from 1 to 4, got 5"),
        ({"num_agents": True}, UsageError, "got True"),
        ({"individual": 1.5}, UsageError, "a share from 0 to 1, got 1.5"),
        ({"individual": "x"}, UsageError, "a share from 0 to 1"),
        ({"individual": float("nan")}, UsageError, "a share from 0 to 1"),
        ({"individual": True}, UsageError, "a share from 0 to 1, got True"),
        ({"max_rounds": 0}, UsageError, "at least 1, or None, got 0"),
        ({"max_rounds": 2.0}, UsageError, "at least 1, or None"),
        (
            {"groups": ("depth-1",)},
            UnknownTask,
            "of 2; did you mean 'agents-2/depth-1'\\? Choose from agents-2/depth-1, ",
        ),
        ({"groups": ("agents-3/depth-1",)}, UnknownTask, "did you mean 'agents-2/depth-1'"),
        ({"groups": ("depth-9",)}, UnknownTask, "has no group 'depth-9'; choose from agents-2/depth-1, "),
        ({"split": "dev"}, UnknownTask, "no split"),
        ({"grammar": "morse"}, UsageError, "no grammar"),
        ({"render_mode": "hologram"}, UsageError, "render_mode"),
        ({"worlds": "real estate"}, UsageError, "worlds must be one of"),
        ({"max_distractors": -1}, UsageError, "max_distractors"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CoopTextCraftEnv(**arguments)


def test_invalid_resets_are_refused() -> None:
    env = torch_env()
    for options in ({"task": "textcraft-coop/3/0"}, {"task": "textcraft/0"}, {"split": "dev"}, {"group": "depth-1"}):
        with pytest.raises(UnknownTask):
            env.reset(seed=0, options=options)
    with pytest.raises(UnknownTask, match="this team has 2 agents: make it with num_agents=3"):
        env.reset(seed=0, options={"task": "textcraft-coop/3/22"})
    with pytest.raises(UnknownTask, match=r"for example 'textcraft-coop/2/0'\)$"):
        env.reset(seed=0, options={"task": "textcraft-coop/9/22"})
    env.max_rounds = -1
    with pytest.raises(UsageError, match="max_rounds"):
        env.reset(seed=0)
    assert both(env, "get 2 bamboo", "pass")[0]["crafter_0"] == "Got 2 bamboo"  # the last episode continues
    for call in (env.instructions_for, env.observation_space, lambda agent: env.random_command(agent, random.Random())):
        with pytest.raises(UsageError, match="the agents are crafter_0, crafter_1"):
            call("crafter_2")


def test_a_reset_draws_from_the_groups_and_the_split() -> None:
    env = CoopTextCraftEnv(num_agents=3, groups=("agents-3/depth-1",), split="test")
    assert env.groups == ("agents-3/depth-1",) and env.split == "test"
    for seed in range(5):
        env.reset(seed=seed)
        assert env.task is not None and (env.task.group, env.task.split) == ("agents-3/depth-1", "test")


@TEAMS
def test_snapshots_restore_the_episode(count: int) -> None:
    env, other = (CoopTextCraftEnv(num_agents=count, individual=0.2) for _ in range(2))
    for seed in range(4):
        env.reset(seed=seed)
        rng = random.Random(seed)
        observations = env.step(random_round(env, rng))[0]
        for _ in range(6):
            if env.agents:
                observations = env.step(random_round(env, rng))[0]
        saved = pickle.loads(pickle.dumps(env.snapshot()))
        assert other.restore(saved) == observations
        assert other.snapshot() == saved == env.snapshot()
        assert other.status() == env.status()
        assert other.agents == env.agents
        if env.agents:
            assert play(other, other.oracle()) == play(env, env.oracle())


def test_invalid_snapshots_are_refused() -> None:
    env = torch_env()
    with pytest.raises(UsageError, match="restore takes a result of"):
        env.restore(("textcraft-coop/2/0", 0, ()))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the snapshot is not of 2 agents"):
        env.restore(TeamSnapshot("textcraft-coop/2/0", 0, (("pass", "pass", "pass"),)))


def test_a_too_long_action_is_invalid_also_when_restored() -> None:
    env = torch_env()
    observations, *_, infos = both(env, "say " + "x" * 20_000, "pass")
    assert infos["crafter_0"]["invalid_action"] == observations["crafter_0"]
    assert infos["crafter_1"]["messages"] == []
    assert env.restore(env.snapshot()) == observations


@TEAMS
def test_pickling_preserves_the_running_episode(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count)
    env.reset(seed=1)
    env.step(dict.fromkeys(env.agents, "inventory"))
    copy = pickle.loads(pickle.dumps(env))
    assert play(copy, copy.oracle()) == play(env, env.oracle())
    assert copy.reset() == env.reset()


@TEAMS
def test_an_episode_can_be_repeated_from_its_info(count: int) -> None:
    env, other = CoopTextCraftEnv(num_agents=count), CoopTextCraftEnv(num_agents=count)
    env.reset(seed=11)
    for _ in range(5):
        seen, infos = env.reset()
        info = infos["crafter_0"]
        assert other.reset(seed=info["seed"], options={"task": info["task_id"]}) == (seen, infos)


@pytest.mark.slow
def test_transcripts_are_equal_in_every_process() -> None:
    code = "from tests.multiagent.teams import transcript_hash; print(transcript_hash())"
    environ = {**os.environ, "PYTHONHASHSEED": "random", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == transcript_hash() + "\n"


@TEAMS
def test_random_commands_are_well_formed(count: int) -> None:
    env = CoopTextCraftEnv(num_agents=count)
    assert env.random_command("crafter_0", random.Random(3)) in ("inventory", "pass")
    commands = set()
    for seed in range(20):
        env.reset(seed=seed)
        one, other = random.Random(seed), random.Random(seed)
        for _ in range(20):
            if not env.agents:
                break
            actions = random_round(env, one)
            assert actions == random_round(env, other)
            commands |= {action.split()[0] for action in actions.values()}
            assert {info["invalid_action"] for info in env.step(actions)[4].values()} == {None}
    assert commands >= ({"get", "craft"} if count == 1 else {"get", "craft", "give", "say", "pass"})


def test_ansi_render_shows_every_agent() -> None:
    env = torch_env(render_mode="ansi")
    both(env, "get 2 bamboo", "say hello")
    text = env.render() or ""
    assert text.startswith(
        "crafter_0\nGoal: craft torch\nInventory: 2 bamboo\n> get 2 bamboo\nGot 2 bamboo\ncrafter_1 says"
    )
    assert "\n\ncrafter_1\nGoal: craft torch\nInventory: nothing\n> say hello\nYou said it.\nRecipes:\n  craft " in text
    assert torch_env().render() is None


def test_infos_can_be_written_as_json() -> None:
    env = torch_env()
    seen = both(env, "say é\u202e🙂", "get 1 coal")
    assert json.loads(json.dumps(seen)) == json.loads(json.dumps(list(seen)))
