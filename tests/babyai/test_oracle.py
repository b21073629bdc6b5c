"""The oracle in the real environment, and the proofs of unsolvable worlds."""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.infeasibility import why_unsolvable
from agentgym_envs.babyai.levels import LEVELS
from agentgym_envs.babyai.oracle import PlanSuffixes, solve
from agentgym_envs.babyai.tasks import unsolvable
from agentgym_envs.babyai.text_view import PRIMITIVES as PRIMITIVE_VERBS
from agentgym_envs.babyai.text_view import Actions, Numbering, ObjectNames
from agentgym_envs.babyai.world import GridAction, GridWorld, make_world
from agentgym_envs.errors import NoOracle
from tests.plugins.rotation import part
from tests.trying import examples

PRIMITIVES = {"turn left", "turn right", "move forward", "pickup", "drop", "toggle"}
VARIED = (
    *("GoToRedBall", "GoToObjMazeS7", "OpenDoorDebug", "PickupDist", "UnblockPickup", "PutNextS6N3Carrying"),
    *("KeyInBox", "BlockedUnlockPickup", "UnlockToUnlock", "OpenRedBlueDoorsDebug", "MoveTwoAcrossS5N2", "SynthSeq"),
)
PRIMITIVES_OF = {verb.value: action for verb, action in PRIMITIVE_VERBS.items()}
ENVS: dict[tuple[Actions, Numbering], BabyAIEnv] = {}
STATE = st.tuples(st.sampled_from(LEVELS), st.integers(0, 10_000), st.integers(0, 40), st.integers(0, 999))


def make(actions: Actions, numbering: Numbering = "nearest") -> BabyAIEnv:
    key = actions, numbering
    if key not in ENVS:
        env = gym.make("AgentGym/BabyAI-v0", actions=actions, numbering=numbering, split=None).unwrapped
        assert isinstance(env, BabyAIEnv)
        ENVS[key] = env
    return ENVS[key]


def begin(env: BabyAIEnv, level: str, seed: int) -> BabyAIEnv:
    env.reset(seed=0, options={"task": f"babyai/{level}/{seed}"})
    return env


def wander(env: BabyAIEnv, count: int, seed: int) -> None:
    """Play random commands that do not end the episode."""
    rng = random.Random(seed)
    for _ in range(count):
        before = env.snapshot()
        _, _, terminated, truncated, _ = env.step(env.random_command(rng))
        if terminated or truncated:
            env.restore(before)
            return


def everything(env: BabyAIEnv) -> tuple[Any, ...]:
    world = env.world
    agent = world.position, world.direction, world.steps
    return *agent, world.describe_things(), world.progress(), dict(env._names.known), env._names.copy()._last


def solve_in(env: BabyAIEnv) -> list[str]:
    """Play the oracle's plan; each command must be possible, and the last one must succeed."""
    before = everything(env)
    plan = list(env.oracle())
    assert everything(env) == before, "planning changed the state"
    for number, command in enumerate(plan, 1):
        steps = env.world.steps
        _, _, terminated, _, info = env.step(command)
        assert info["invalid_action"] is None
        assert info["steps"] > steps, f"{command} did nothing"
        assert terminated == (number == len(plan)), command
    assert info["success"], env.task
    assert info["score"] == pytest.approx(1 - 0.9 * info["steps"] / info["max_steps"])
    return plan


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("level", VARIED)
def test_a_variety_of_levels_is_solved(level: str) -> None:
    for seed in range(2):
        solve_in(begin(make("macro"), level, seed))
        assert set(solve_in(begin(make("primitive"), level, seed))) <= PRIMITIVES


@pytest.mark.parametrize(
    ("level", "seed"),
    [
        ("PickupDist", 7),  # "a grey object" matches walls
        ("SynthLoc", 105),  # what the thing goes next to lies in the way
        ("KeyInBox", 2),  # the box lies in the way
        ("Unlock", 1),  # one of two keys is behind the door that it opens
        ("KeyCorridorS3R3", 0),  # behind the door, the key is to be put down
    ],
)
def test_hard_worlds_are_solved(level: str, seed: int) -> None:
    solve_in(begin(make("macro"), level, seed))


@given(STATE)
@example(("KeyCorridorS3R1", 0, 32, 258))  # a corridor of one cell's width, where what is held must be put down
@examples(35)
def test_any_state_of_random_play_is_solved_or_proven_unsolvable(state: tuple[str, int, int, int]) -> None:
    level, seed, moves, rng = state
    for env in (make("macro", "stable"), make("primitive")):
        wander(begin(env, level, seed), moves, rng)
        try:
            solve_in(env)
        except NoOracle as none:
            few = "too few steps" in str(none) and env.world.max_steps - env.world.steps < 60
            assert few or why_unsolvable(env.world), (level, seed, str(none))


def test_a_plan_uses_macros_like_an_agent() -> None:
    env = make("macro")
    assert solve_in(begin(env, "KeyInBox", 0))[-1] == "toggle and go through purple locked door 1"
    plan = solve_in(begin(env, "UnlockToUnlock", 0))
    assert plan[-1] == "pickup red ball 1"
    assert "toggle and go through green locked door 1" in plan
    assert "pickup purple key 1" in plan
    assert solve_in(begin(env, "GoToLocal", 0)) == ["go to green ball 1"]


def test_planning_twice_gives_the_same_plan() -> None:
    world = make_world("BossLevel", 4)
    plans = [solve(world, ObjectNames("nearest"), "macro") for _ in range(2)]
    assert plans[0] == plans[1] == solve(world.copy(), ObjectNames("nearest"), "macro")


def test_macros_cost_hardly_more_steps_than_primitives() -> None:
    for seed in range(5):
        env = begin(make("macro"), "Unlock", seed)
        commands, primitives = solve_in(env), solve(make_world("Unlock", seed), ObjectNames("nearest"), "primitive")
        assert env.world.steps <= len(primitives) + 4
        assert len(commands) <= len(primitives) / 2


def test_an_object_that_is_already_held_is_put_down_and_picked_up_again() -> None:
    env = begin(make("macro"), "PickupDistDebug", 1)
    solve_in(env)
    world = make_world("PickupLoc", 0)
    target = world.level.instrs.desc.obj_set[0]
    world.level.grid.set(*target.cur_pos, None)
    world.level.carrying, world.level.instrs.preCarrying = target, target
    plan = solve(world, ObjectNames("nearest"), "primitive")
    assert plan[-2:] == ["drop", "pickup"]


def test_an_open_door_is_closed_first() -> None:
    world = make_world("OpenRedDoor", 0)
    world.level.instrs.desc.obj_set[0].is_open = True
    assert solve(world, ObjectNames("nearest"), "primitive")[-2:] == ["toggle", "toggle"]


def plan_within(world: GridWorld, most: int, suffixes: PlanSuffixes) -> list[str] | None:
    world.level.max_steps = world.steps + most
    try:
        return solve(world, ObjectNames("nearest"), "macro", suffixes)
    except NoOracle:
        return None


def test_a_known_suffix_keeps_the_limit_of_steps() -> None:
    world, suffixes = make_world("UnlockPickup", 0), PlanSuffixes()
    plan = plan_within(world, 200, suffixes)
    steps = max(suffix.ends[-1] for suffix in suffixes.values())
    found = [plan_within(world, steps + more, dict(suffixes)) for more in (-1, 0, 1)]
    assert found == [plan_within(world, steps + more, {}) for more in (-1, 0, 1)]
    assert found[1] == plan != found[0]


def test_a_known_suffix_that_returns_to_an_earlier_state_is_not_used() -> None:
    world, suffixes = make_world("UnlockLocal", 0), PlanSuffixes()
    plan = plan_within(world, 200, suffixes)
    whole = max(suffixes, key=lambda key: len(suffixes[key].commands))
    first = suffixes.pop(whole).states
    wrong = {key: suffix._replace(commands=("wrong",), ends=(1,)) for key, suffix in suffixes.items()}
    assert "wrong" in (plan_within(world, 200, dict(wrong)) or [])
    circle = {key: suffix._replace(states=suffix.states | first) for key, suffix in wrong.items()}
    assert plan_within(world, 200, circle) == plan


@pytest.mark.parametrize(("level", "seed", "commands"), [("MiniBossLevel", 4, 20), ("SynthSeq", 3, 25)])
def test_suffixes_of_other_choices_and_costs_are_not_used(level: str, seed: int, commands: int) -> None:
    assert len(solve(make_world(level, seed), ObjectNames("nearest"), "macro")) == commands


def test_suffixes_of_other_names_are_not_used() -> None:
    world, other, suffixes = make_world("UnlockLocal", 0), ObjectNames("stable"), PlanSuffixes()
    other.known = {thing.serial: 7 for _, _, thing in world.things()}
    plans = [solve(world, names, "macro", suffixes) for names in (ObjectNames("stable"), other)]
    assert plans[0] != plans[1] == solve(world, other, "macro")


def test_suffixes_of_another_state_of_the_verifier_are_not_used() -> None:
    world, suffixes = make_world("PutNextS5N2Carrying", 0), PlanSuffixes()
    for command in solve(world, ObjectNames("nearest"), "primitive")[:-1]:
        world.run([PRIMITIVES_OF[command]])
    plans = []
    for held in (world.carrying, None):
        world.level.instrs.preCarrying = held
        plans.append(solve(world, ObjectNames("nearest"), "primitive", suffixes))
    assert plans[0] == ["drop"] and plans[1][0] == "turn left"


def test_going_to_a_faced_object_takes_one_step() -> None:
    env = begin(make("primitive"), "GoToObj", 0)
    plan = list(env.oracle())
    for command in plan[:-1]:
        env.step(command)
    world = env.world.copy()
    world.level.step_count = 0
    world.level.agent_pos, world.level.agent_dir = after(world, plan[-1])
    assert solve(world, ObjectNames("nearest"), "primitive") == ["move forward"]
    assert solve(world, ObjectNames("nearest"), "macro")[0].startswith("pickup")


def after(world: GridWorld, command: str) -> tuple[tuple[int, int], int]:
    """Move the agent without checking the mission."""
    trial = world.copy()
    trial.step(
        {"turn left": GridAction.LEFT, "turn right": GridAction.RIGHT, "move forward": GridAction.FORWARD}[command]
    )
    return trial.position, trial.direction


def test_there_is_no_plan_without_steps_left() -> None:
    world = make_world("GoToLocal", 3)
    world.level.step_count = world.max_steps - 1
    with pytest.raises(NoOracle, match="too few steps are left"):
        solve(world, ObjectNames("nearest"), "macro")


def test_there_is_no_plan_when_the_goal_is_gone() -> None:
    world = make_world("FindObjS5", 0)
    target = world.level.instrs.desc.obj_set[0]
    assert target.type == "box"
    x, y = target.cur_pos
    world.level.agent_pos, world.level.agent_dir = (x - 1, y), 0
    world.step(GridAction.TOGGLE)
    with pytest.raises(NoOracle, match="is gone"):
        solve(world, ObjectNames("nearest"), "macro")


def outcomes(world: GridWorld) -> tuple[int, int]:
    """Count the successes and failures that are reachable from all states."""
    known, waiting, successes, failures = {state(world)}, [world], 0, 0
    while waiting:
        here = waiting.pop()
        for action in range(6):
            there = here.copy()
            outcome = there.step(action)
            if outcome.terminated:
                successes, failures = successes + (outcome.reward > 0), failures + (outcome.reward <= 0)
            elif state(there) not in known:
                known.add(state(there))
                waiting.append(there)
    return successes, failures


def state(world: GridWorld) -> tuple[Any, ...]:
    return world.position, world.direction, world.describe_things(), world.progress()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("level", ["OpenDoorsOrderN2Debug", "OpenDoorsOrderN4Debug"])
def test_two_strict_doors_are_unsolvable(level: str) -> None:
    worlds = [make_world(level, seed) for seed in range(6)]
    hard = [world for world in worlds if unsolvable(world)]
    assert len(hard) >= 2
    for world in hard:
        successes, failures = outcomes(world)
        assert successes == 0
        assert failures > 0
        with pytest.raises(NoOracle, match="failure"):
            solve(world, ObjectNames("nearest"), "macro")
    for world in worlds:
        if world not in hard:
            assert outcomes(world)[0] > 0


@pytest.mark.parametrize(("level", "seed"), [("Unlock", 63), ("GoToImpUnlock", 6), ("GoToImpUnlock", 14)])
def test_a_room_with_its_only_key_inside_is_unsolvable(level: str, seed: int) -> None:
    world = make_world(level, seed)
    assert unsolvable(world)
    locked = [thing for _, _, thing in world.things() if thing.type == "door" and thing.is_locked]
    assert len(locked) == 1
    keys = [(x, y) for x, y, thing in world.things() if fits(thing, locked[0])]
    rooms = {world.level.room_from_pos(*cell).top for cell in keys}
    assert len(rooms) == 1
    room = world.level.room_from_pos(*keys[0])
    assert [door.serial for door in room.doors if door] == [locked[0].serial]
    assert not room.pos_inside(*world.position)
    with pytest.raises(NoOracle, match="behind locked doors"):
        solve(world, ObjectNames("nearest"), "macro")


def fits(key: Any, door: Any) -> bool:
    things = [key, key.contains]
    return any(thing and thing.type == "key" and thing.color == door.color for thing in things)


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 20_000])
@pytest.mark.parametrize("actions", ["macro", "primitive"])
def test_every_level_is_solved(first: int, actions: Actions) -> None:
    env, tried, failed = make(actions), 0, []
    for level in LEVELS:
        for seed in part(range(first, first + 10), f"babyai oracle {level}"):
            begin(env, level, seed)
            if env.task is None or not env.task.data["solvable"]:
                continue
            tried += 1
            try:
                solve_in(env)
            except (NoOracle, AssertionError) as error:
                failed.append(f"{level} {seed}: {error}"[:200])
    assert tried > 85
    assert not failed, "\n".join(failed)
