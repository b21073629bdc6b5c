"""Shortest commands with a proof: they agree with a brute-force search of the environment's states."""

import random
from itertools import islice

import gymnasium as gym
import pytest

from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.shortest import SearchCache, ShortestCommands, shortest_plan
from agentgym_envs.babyai.text_view import Numbering
from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import NoOracle
from tests.brute_force import brute_force_turns


def states(level: str, actions: str, seeds: range) -> list[TextEnv]:
    """Environments in random states of a level."""
    found = []
    for seed in seeds:
        env = text_env(gym.make("AgentGym/BabyAI-v0", levels=level, actions=actions))
        rng = random.Random(seed)
        env.reset(seed=seed, options={"task": f"babyai/{level}/{seed}"})
        for _ in range(seed % 4):
            if any(env.step(env.random_command(rng))[2:4]):
                env.reset(seed=seed, options={"task": f"babyai/{level}/{seed}"})
        found.append(env)
    return found


def turns(env: TextEnv) -> int:
    commands = env.solution().commands
    assert commands is not None
    return len(commands)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    "level", ["GoToRedBall", "GoToObjS4", "PickupLoc", "OpenRedDoor", "UnlockLocal", "PutNextS4N1"]
)
def test_proven_commands_are_as_few_as_brute_force_finds(level: str) -> None:
    proven = 0
    for env in states(level, "macro", range(8)):
        if env.solution().exact:
            proven += 1
            if turns(env) <= 3:  # deeper searches take seconds
                assert turns(env) == brute_force_turns(env, None, 4)
            else:
                assert brute_force_turns(env, None, 2) is None
            done = [env.step(command)[4]["success"] for command in env.solution().commands or ()]
            assert done[-1] and not any(done[:-1])
    assert proven >= (2 if level.startswith("PutNext") else 6)


@pytest.mark.parametrize("level", ["GoToRedBallGrey", "GoToObjS4", "OpenRedDoor"])
def test_proven_steps_are_as_few_as_brute_force_finds(level: str) -> None:
    proven = 0
    for env in states(level, "primitive", range(6)):
        if env.solution().exact and turns(env) <= 6:
            proven += 1
            commands = ["turn left", "turn right", "move forward", "pickup", "drop", "toggle"]
            assert turns(env) == brute_force_turns(env, commands, turns(env) + 1)
    assert proven >= 2


def test_a_search_leaves_the_state_and_the_step_limit_alone() -> None:
    env = next(iter(states("GoToLocal", "macro", range(1))))
    before, limit = env.status(), env.world.max_steps  # type: ignore[attr-defined]
    world = env.world  # type: ignore[attr-defined]
    things = world.describe_things(), world.progress(), world.position, world.direction
    env.solution()
    assert (world.describe_things(), world.progress(), world.position, world.direction) == things
    assert env.status() == before and world.max_steps == limit
    world.level.step_count = limit - 1  # too few steps are left for the oracle
    assert turns(env) >= 1


def test_a_small_budget_gives_the_oracles_plan_without_a_proof() -> None:
    for env in islice(states("PutNextLocal", "macro", range(4)), 4):
        found = shortest_plan(env.world, env._names, "macro", max_states=1)  # type: ignore[attr-defined]
        assert not found.proven and found.commands == list(env.oracle())


def test_missions_of_several_clauses_have_the_oracles_plan() -> None:
    env = states("BossLevel", "macro", range(1))[0]
    if hasattr(env.world.level.instrs, "instr_a"):  # type: ignore[attr-defined]
        assert env.solution() == (tuple(env.oracle()), False)


def test_a_state_that_returns_has_the_solution_of_a_new_search() -> None:
    env = states("PickupLoc", "macro", range(1))[0]
    env.step("turn left")
    first = env.solution()
    env.step("turn right")
    assert env.solution() is not first
    env.step("turn left")
    assert env.solution() is first
    found = shortest_plan(env.world, env._names, "macro")  # type: ignore[attr-defined]
    assert (found.commands, found.proven) == (list(first.commands or ()), first.exact)


@pytest.mark.parametrize("numbering", ["nearest", "stable"])
def test_solutions_of_another_world_are_not_used(numbering: str) -> None:
    env = text_env(gym.make("AgentGym/BabyAI-v0", levels="GoToLocal", numbering=numbering))
    for seed in (0, 1, 0):
        env.reset(seed=0, options={"task": f"babyai/GoToLocal/{seed}"})
        found = shortest_plan(env.world, env._names, "macro")  # type: ignore[attr-defined]
        assert env.solution() == (tuple(found.commands), found.proven)


def searched(env: BabyAIEnv, cache: SearchCache | None) -> ShortestCommands | None:
    try:
        return shortest_plan(env.world, env._names, env.actions, cache=cache)
    except NoOracle:
        return None


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("numbering", ["nearest", "stable"])
@pytest.mark.parametrize(
    "level", ["UnlockPickup", "PutNextLocal", "KeyCorridorS3R2", "GoToObjMazeS4", "MoveTwoAcrossS5N2"]
)
def test_a_cache_never_changes_a_result(level: str, numbering: Numbering) -> None:
    env, cache, rng = BabyAIEnv(levels=level, numbering=numbering), SearchCache(), random.Random(level)
    env.reset(seed=0, options={"task": f"babyai/{level}/2"})
    for _ in range(8):
        assert searched(env, cache) == searched(env, None) == searched(env, cache)
        if any(env.step(env.random_command(rng))[2:4]):
            break
    assert cache.suffixes or len(cache.states)


def test_a_full_cache_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentgym_envs.babyai.shortest._MAX_ENTRIES", 2)
    env = BabyAIEnv(levels="GoToLocal")
    env.reset(seed=0, options={"task": "babyai/GoToLocal/0"})
    kept = []
    for _ in range(4):
        env.solution()
        kept.append(len(env._cache.solutions))
        env.step("turn left")
    assert kept == [1, 2, 3, 1]
    monkeypatch.setattr("agentgym_envs.babyai.shortest._MAX_ARRANGEMENTS", 0)
    assert env.solution() is not env.solution()
