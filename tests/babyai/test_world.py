import copy
import hashlib
import json
import pickle
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.babyai import levels
from agentgym_envs.babyai import world as worlds
from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import LEVELS
from agentgym_envs.babyai.world import AHEAD, GridWorld, StepOutcome, make_world
from tests.babyai.tools import (
    ACTIONS,
    behaviour,
    bot_plan,
    code,
    key,
    layout,
    random_actions,
    reference,
    search,
    worlds_of_every_level,
)
from tests.plugins.rotation import part
from tests.trying import examples

FROZEN_SEEDS = (0, 1, 2, 20_000)
PLANNED = [
    ("GoToSeqS5R2", 1, "go to a key and go to the ball after you go to the red ball and go to a key"),
    ("MoveTwoAcrossS5N2", 0, "put the yellow box next to the red ball, then put the yellow ball next to the green key"),
    ("BossLevel", 1, "pick up a purple ball and open a red door"),
    ("OpenDoorsOrderN4", 0, "open the purple door after you open the red door"),
    ("BlockedUnlockPickup", 0, "pick up the box"),
    ("UnlockToUnlock", 0, "pick up the ball"),
]
"""Missions that minigrid's bot solves."""
SEARCHED = [
    ("PutNextS5N2Carrying", 0, 3),
    ("PutNextS5N2Carrying", 1, 4),
    ("KeyInBox", 1, 10),
    ("OpenTwoDoors", 0, 13),
    ("OpenDoorsOrderN2", 3, 15),
]
"""Levels, seeds and the length of the shortest plan, by exhaustive search; the bot cannot solve the first three."""
Frozen = Callable[[str, Callable[[], str]], str]
RANDOM_PLAY = st.tuples(st.sampled_from(LEVELS), st.integers(0, 200), st.integers(0, 2**32))


def digest(world: GridWorld) -> str:
    mission, max_steps, _, position, direction, carrying, cells = layout(world.level)
    text = json.dumps([mission, max_steps, position, direction, carrying, cells])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def things_of(world: GridWorld) -> list[Any]:
    """Yield all objects: those in the grid, the carried one, and those in boxes."""
    found = [thing for _, _, thing in world.things()]
    found += [] if world.carrying is None else [world.carrying]
    return found + [thing.contains for thing in found if thing.contains is not None]


def digests_of(levels: Sequence[str]) -> dict[str, list[str]]:
    return {level: [digest(make_world(level, seed)) for seed in FROZEN_SEEDS] for level in levels}


@pytest.mark.parametrize("nth", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_the_generator_matches_the_task_ids(nth: int, frozen: Frozen) -> None:
    """If this fails, minigrid or numpy generates other worlds, and the tasks `babyai/...` have changed.

    `WRITE_GOLDEN=1 pytest tests/babyai/test_world.py` writes the file again; then raise the version of the tasks, and
    say so in CHANGELOG.md.
    """
    kept = json.loads(frozen("babyai_layouts.json", lambda: json.dumps(digests_of(LEVELS), indent=0) + "\n"))
    assert list(kept) == list(LEVELS)
    made = digests_of(LEVELS[::nth])
    assert [level for level in made if made[level] != kept[level]] == []
    assert len({text for texts in kept.values() for text in texts}) > 350, "too many worlds have equal digests"


def test_a_new_world_equals_minigrids() -> None:
    for world in worlds_of_every_level():
        assert layout(world.level) == layout(reference(world.levelname, 0)), world.levelname


@pytest.mark.slow
def test_new_worlds_equal_minigrids() -> None:
    seeds = [*part(range(1, 21), "babyai new worlds"), 20_000, 1_019_999, 2**32 - 1]
    for world in worlds_of_every_level(seeds):
        assert layout(world.level) == layout(reference(world.levelname, world.seed)), (world.levelname, world.seed)


def compare_in_play(level: str, seed: int, play: int) -> None:
    """Random actions must have the same outcome in our world and in minigrid's."""
    ours, theirs = make_world(level, seed), reference(level, seed)
    for action in random_actions(random.Random(play), 200):
        outcome = ours.step(action)
        _, reward, terminated, truncated, _ = theirs.step(action)
        assert outcome == (reward, terminated, truncated)
        assert (ours.position, ours.direction, ours.steps) == (
            tuple(theirs.agent_pos),
            theirs.agent_dir,
            theirs.step_count,
        )
        assert code(ours.carrying) == code(theirs.carrying)
        if terminated or truncated:
            break
    assert layout(ours.level) == layout(theirs)


@examples(20)
@given(RANDOM_PLAY)
def test_play_equals_minigrids(play: tuple[str, int, int]) -> None:
    compare_in_play(*play)


@pytest.mark.slow
@pytest.mark.rotating
@examples(150)
@given(RANDOM_PLAY)
def test_long_play_equals_minigrids(play: tuple[str, int, int]) -> None:
    compare_in_play(*play)


@pytest.mark.parametrize(("level", "seed", "mission"), PLANNED)
def test_rewards_equal_minigrids_and_copies_behave_equally(level: str, seed: int, mission: str) -> None:
    plan = bot_plan(level, seed)
    world = make_world(level, seed)
    assert world.mission == mission
    expected: Any = pytest.approx(1 - 0.9 * len(plan) / world.max_steps)
    for number, action in enumerate(plan):
        if number % 4 == 0:
            branch, before = world.copy(), behaviour(world)
            outcomes = [branch.step(action) for action in plan[number:]]
            assert outcomes[-1] == StepOutcome(expected, True, False)
            assert not any(outcome.terminated or outcome.reward for outcome in outcomes[:-1])
            assert behaviour(world) == before
        outcome = world.step(action)
    assert outcome == StepOutcome(expected, True, False)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("level", "seed", "fewest"), SEARCHED)
def test_plans_found_in_copies_work_in_minigrid(level: str, seed: int, fewest: int) -> None:
    world = make_world(level, seed)
    before = layout(world.level)
    plan = search(world, 20_000)
    assert plan is not None and len(plan) == fewest
    assert layout(world.level) == before == layout(make_world(level, seed).level)
    theirs = reference(level, seed)
    outcomes = [theirs.step(action)[1:4] for action in plan]
    assert outcomes == [world.step(action) for action in plan]
    assert outcomes[-1] == (pytest.approx(1 - 0.9 * fewest / world.max_steps), True, False)


@examples(40)
@given(RANDOM_PLAY, st.integers(0, 60))
def test_a_copy_is_independent_and_behaves_equally(play: tuple[str, int, int], before: int) -> None:
    level, seed, number = play
    rng = random.Random(number)
    world = make_world(level, seed)
    for action in random_actions(rng, before):
        world.step(action)
    copied, state = world.copy(), behaviour(world)
    assert behaviour(copied) == state and key(copied) == key(world)
    assert (copied.levelname, copied.seed, copied.mission) == (level, seed, world.mission)
    actions = random_actions(rng, 60)
    outcomes = [copied.step(action) for action in actions]
    assert behaviour(world) == state
    assert [world.step(action) for action in actions] == outcomes
    assert behaviour(copied) == behaviour(world) and layout(copied.level) == layout(world.level)


def test_a_copy_shares_no_mutable_state() -> None:
    for world in worlds_of_every_level((7,)):
        copied = world.copy()
        ours, theirs = ({id(thing) for thing in things_of(one)} for one in (world, copied))
        assert ours and len(ours) == len(theirs) and not ours & theirs, world.levelname
        assert copied.level.instrs is not world.level.instrs
        assert copied.level.instrs.env is copied.level


def test_a_copy_verifies_its_own_objects() -> None:
    world = make_world("GoToSeqS5R2", 1).copy()
    mine = {id(thing) for _, _, thing in world.things()}
    clauses = deque([world.level.instrs])
    described = 0
    while clauses:
        clause = clauses.popleft()
        assert clause.env is world.level
        if hasattr(clause, "desc"):
            described += 1
            assert clause.desc.obj_set and all(id(thing) in mine for thing in clause.desc.obj_set)
        else:
            clauses += [clause.instr_a, clause.instr_b]
    assert described == 4


def test_copies_keep_serial_numbers() -> None:
    world = make_world("KeyInBox", 1)
    numbers = [thing.serial for _, _, thing in world.things()]
    (box,) = [thing for _, _, thing in world.things() if thing.type == "box"]
    inside = box.contains
    assert inside.serial == box.serial + 1
    assert sorted([*numbers, inside.serial]) == list(range(len(numbers) + 1))
    plan = search(world, 20_000) or []
    copied = world.copy()
    for action in plan:
        copied.step(action)
        copied = copied.copy()
    assert copied.carrying is not None and copied.carrying.serial == inside.serial
    assert copied.carrying is not inside
    carrying = make_world("PutNextS5N2Carrying", 0)
    assert carrying.carrying is not None and carrying.carrying.serial == len(list(carrying.things()))


def test_the_cached_generated_world_is_never_changed() -> None:
    for level in ("KeyInBox", "BossLevel", "PutNextS7N4Carrying", "MoveTwoAcrossS8N9", "UnlockPickupDist"):
        kept = worlds.generated_world(level, 3)
        before = copy.deepcopy(behaviour(kept)), layout(kept.level)
        for number in range(3):
            world = make_world(level, 3)
            assert layout(world.level) == before[1]
            for action in random_actions(random.Random(number), 300):
                world.step(action)
            assert layout(world.level) != before[1]
        assert worlds.generated_world(level, 3) is kept
        assert (behaviour(kept), layout(kept.level)) == before


def test_threads_generate_the_same_worlds() -> None:
    wanted = [(level, seed) for seed in (40, 41) for level in LEVELS[::6]] * 4
    levels.blank_level.cache_clear()
    worlds.generated_world.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda pair: layout(make_world(*pair).level), wanted))
    worlds.generated_world.cache_clear()
    assert made == [layout(make_world(*pair).level) for pair in wanted]


def explore(world: GridWorld, most: int) -> dict[tuple, set]:
    """Return the state keys of each distinct behaviour, in a breadth-first search of at most `most` states."""
    found: dict[tuple, set] = {behaviour(world): {key(world)}}
    queue = deque([world])
    while queue and len(found) < most:
        state = queue.popleft()
        for action in ACTIONS:
            after = state.copy()
            if after.step(action).terminated:
                continue
            if (outcome := behaviour(after)) not in found:
                found[outcome] = set()
                queue.append(after)
            found[outcome].add(key(after))
    return found


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("level", "seed", "most"),
    [("PutNextS4N1", 0, 600), ("PutNextS5N2Carrying", 4, 300), ("GoToSeqS5R2", 1, 100), ("KeyInBox", 1, 100)],
)
def test_keys_are_equal_exactly_for_equal_states(level: str, seed: int, most: int) -> None:
    found = explore(make_world(level, seed), most)
    assert len(found) >= most
    assert all(len(keys) == 1 for keys in found.values())
    assert len({outcome for keys in found.values() for outcome in keys}) == len(found)


def test_a_door_is_open_or_closed_or_locked() -> None:
    outcome = set()
    for is_open, is_locked in ((True, False), (False, False), (False, True)):
        world = make_world("UnlockLocal", 0)
        (door,) = [thing for _, _, thing in world.things() if thing.type == "door"]
        door.is_open, door.is_locked = is_open, is_locked
        outcome.add(world.describe_things())
    assert len(outcome) == 3


def test_positions_assumed_by_a_verifier_are_part_of_the_state() -> None:
    """minigrid updates positions only at a drop, so it still finds a picked-up object at its old position."""
    world = make_world("GoToRedBlueBall", 0)
    there, elsewhere = world.copy(), world.copy()
    elsewhere.level.instrs.desc.obj_poss = [(1, 1)]
    assert there.describe_things() == elsewhere.describe_things()
    assert there.progress() != elsewhere.progress()


def test_a_running_world_can_be_pickled() -> None:
    plan = bot_plan("BossLevel", 1)
    world = make_world("BossLevel", 1)
    for action in plan[: len(plan) // 2]:
        world.step(action)
    copied = pickle.loads(pickle.dumps(world))
    assert (behaviour(copied), key(copied)) == (behaviour(world), key(world))
    rest = plan[len(plan) // 2 :]
    assert [copied.step(action) for action in rest] == [world.step(action) for action in rest]
    assert copied.copy().level.instrs.a_done == "success"


@pytest.mark.parametrize("numbering", ["nearest", "stable"])
def test_a_running_episode_can_be_pickled(numbering: str) -> None:
    rng = random.Random(5)
    env = BabyAIEnv(numbering=numbering)  # type: ignore[arg-type]
    for level in ("BossLevel", "KeyInBox", "PutNextS5N2Carrying", "GoToSeq"):
        env.reset(seed=1, options={"task": f"babyai/{level}/3"})
        for _ in range(6):
            env.step(env.random_command(rng))
        unpickled = pickle.loads(pickle.dumps(env))
        for _ in range(8):
            command = env.random_command(rng)
            ours, theirs = env.step(command), unpickled.step(command)
            assert ours == theirs
            if ours[2] or ours[3]:
                break


def test_a_world_exposes_its_properties() -> None:
    world = make_world("GoToObjS4", 0)
    assert (world.levelname, world.seed, world.size, world.max_steps, world.steps) == ("GoToObjS4", 0, (4, 4), 16, 0)
    assert len(world.cells) == 16 and world.carrying is None
    ((x, y, thing),) = world.things()
    assert world.mission == f"go to the {thing.color} {thing.type}"
    assert world.at(x, y) is thing
    assert code(world.at(0, 0)) == code(world.cells[15]) == (2, 5, 0), "a grey wall"
    for direction in range(4):
        world.level.agent_dir = direction
        dx, dy = AHEAD[direction]
        assert world.direction == direction
        assert world.in_front() is world.at(world.position[0] + dx, world.position[1] + dy)
    assert world.image(8).shape == (32, 32, 3)


@pytest.mark.slow
def test_a_mission_without_room_for_the_agent_is_rejected() -> None:
    # minigrid itself never returns from this reset.
    assert make_world("SynthS5R2", 9736).mission
