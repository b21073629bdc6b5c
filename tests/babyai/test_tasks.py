import json
import os
import pickle
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentgym_envs.babyai.levels import AGENTGYM_LEVELS, GROUP_OF, GROUPS, LEVELS, agentgym_task, choose_levels
from agentgym_envs.babyai.tasks import SEEDS, BabyTasks, unsolvable
from agentgym_envs.babyai.world import generated_world, make_world
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.task import SPLITS, Task
from tests.babyai.tools import random_actions, search
from tests.trying import examples

DIGESTS = {
    "all": "6784bea6865bf3b954b6f14efb7112803183bb243617109761dfa3b469fbb20d",
    "agentgym": "0c03316a1370515b26f1b3b26b65cda64274fdf5fc909d8aa6fec521d96fcbb6",
}
CHEAP = ("GoToObj", "OpenDoor", "PickupDist", "PutNextS4N1", "UnlockLocal")
"""Levels of five groups that are generated quickly."""
SOMETIMES_UNSOLVABLE = ("OpenDoorsOrderN2Debug", "OpenDoorsOrderN4Debug")
ELSEWHERE = """
import json
from dataclasses import asdict
from agentgym_envs.babyai.levels import choose_levels
from agentgym_envs.babyai.tasks import BabyTasks
tasks = BabyTasks()
drawn = [tasks.draw(key, groups=("Sequence", "Synth")) for key in range(20)]
drawn += tasks.sample(30, split="test", seed=1)
print(json.dumps([tasks.digest, BabyTasks(choose_levels("agentgym")).digest, [asdict(task) for task in drawn]]))
"""


@pytest.fixture(scope="module")
def tasks() -> BabyTasks:
    return BabyTasks()


@pytest.fixture(scope="module")
def cheap() -> BabyTasks:
    return BabyTasks(CHEAP)


def seed_of(task: Task) -> int:
    return int(task.id.split("/")[2])


def level_of(task: Task) -> str:
    return task.id.split("/")[1]


@pytest.mark.parametrize("levels", DIGESTS)
def test_digests_are_frozen(levels: str) -> None:
    """If this fails, tasks have changed: raise their version, put the new digest here, and say so in CHANGELOG.md."""
    assert BabyTasks(choose_levels(levels)).digest == DIGESTS[levels]


def test_a_digest_is_computed_once() -> None:
    """A server reports the digest for every environment."""
    digest = BabyTasks(CHEAP).digest
    assert digest != BabyTasks(CHEAP[1:]).digest
    before = generated_world.cache_info()
    assert BabyTasks(CHEAP).digest == digest and generated_world.cache_info() == before


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_another_process_has_the_same_tasks(tasks: BabyTasks, hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, env=environment, check=True
    )
    drawn = [tasks.draw(key, groups=("Sequence", "Synth")) for key in range(20)]
    drawn += tasks.sample(30, split="test", seed=1)
    assert json.loads(done.stdout) == [*DIGESTS.values(), [asdict(task) for task in drawn]]


def test_a_task_has_the_expected_fields(tasks: BabyTasks) -> None:
    task = tasks.get("babyai/GoToSeqS5R2/1")
    goal = "go to a key and go to the ball after you go to the red ball and go to a key"
    assert (task.id, task.split, task.group, task.goal) == ("babyai/GoToSeqS5R2/1", "test", "Sequence", goal)
    assert task.data == {"level": "GoToSeqS5R2", "seed": 1, "max_steps": 400, "solvable": True}


def test_a_task_describes_its_world(tasks: BabyTasks) -> None:
    for level in LEVELS:
        task, world = tasks.get(f"babyai/{level}/20000"), make_world(level, 20_000)
        assert task.goal == world.mission and task.group == GROUP_OF[level] and task.split == "train"
        assert task.data["solvable"] is not unsolvable(world)
        assert json.loads(json.dumps(asdict(task))) == asdict(task)
        assert {key: type(value) for key, value in task.data.items()} == {
            "level": str,
            "seed": int,
            "max_steps": int,
            "solvable": bool,
        }
        assert task.data["max_steps"] == world.max_steps > 0


def test_every_task_of_agentgym_exists(tasks: BabyTasks) -> None:
    for data_idx in (0, 3, 15, 40, 41, 799):
        task = tasks.get(agentgym_task(data_idx))
        assert level_of(task) == AGENTGYM_LEVELS[data_idx % 40] and seed_of(task) == data_idx // 40
        assert task.split == "test"


def test_seeds_of_splits_are_disjoint_and_cover_all(tasks: BabyTasks) -> None:
    assert set(SEEDS) == set(SPLITS)
    ranges = sorted(SEEDS.values(), key=lambda seeds: seeds.start)
    assert ranges[0].start == 0
    assert all(seeds.stop == after.start for seeds, after in pairwise(ranges))
    for split, seeds in SEEDS.items():
        for seed in (seeds.start, seeds.stop - 1):
            assert tasks.get(f"babyai/GoToObj/{seed}").split == split


@pytest.mark.parametrize(
    "task_id",
    [
        *("babyai", "babyai/", "babyai/GoToObj", "babyai/GoToObj/", "babyai/GoToObj/0/0", "/babyai/GoToObj/0"),
        *("babyai/GoToObj/-1", "babyai/GoToObj/+1", "babyai/GoToObj/01", "babyai/GoToObj/00", "babyai/GoToObj/1_0"),
        *("babyai/GoToObj/1020000", "babyai/GoToObj/99999999999999999999", "babyai/GoToObj/1.0", "babyai/GoToObj/1e3"),
        *("babyai/GoToObj/ 1", "babyai/GoToObj/1 ", "babyai/GoToObj/1\n", "babyai/GoToObj/٣", "babyai/GoToObj/²"),
        *("babyai/gotoobj/1", "babyai/BabyAI-GoToObj-v0/1", "babyai/GoToObjS2/1", "babyai//1", "BabyAI/GoToObj/1"),
        *("textcraft/1", "textcraft/GoToObj/1", "", "babyai/all/1", "babyai/GoToObj/x" * 100),
    ],
)
def test_unknown_ids_are_refused(tasks: BabyTasks, task_id: str) -> None:
    with pytest.raises(UnknownTask, match="a seed below 1020000, for example 'babyai/GoToRedBall/0'"):
        tasks.get(task_id)


@pytest.mark.parametrize("task_id", [None, 3, ["babyai/GoToObj/1"], b"babyai/GoToObj/1"])
def test_malformed_ids_are_refused(tasks: BabyTasks, task_id: str) -> None:
    with pytest.raises(UnknownTask, match="there is no task"):
        tasks.get(task_id)


@examples(50)
@given(st.text(max_size=12))
def test_any_junk_is_refused_as_an_id(junk: str) -> None:
    assume(junk not in LEVELS)
    for task_id in (junk, f"babyai/{junk}/1"):
        with pytest.raises(UnknownTask):
            BabyTasks().get(task_id)


@examples(50)
@given(st.text("0123456789+-_.e ٣²", max_size=8))
def test_a_seed_has_one_spelling(text: str) -> None:
    if re.fullmatch("0|[1-9][0-9]*", text) and int(text) < 1_020_000:
        task = BabyTasks().get(f"babyai/GoToObj/{text}")
        assert task.id == f"babyai/GoToObj/{text}" and task.data["seed"] == int(text)
    else:
        with pytest.raises(UnknownTask):
            BabyTasks().get(f"babyai/GoToObj/{text}")


@examples(40)
@given(
    st.integers(0, 2**64 - 1),
    st.sampled_from([None, *SPLITS]),
    st.none() | st.sets(st.sampled_from(list(GROUPS)), min_size=1).map(sorted),
)
def test_a_draw_is_pure_and_respects_its_selection(key: int, split: str | None, groups: list[str] | None) -> None:
    task = BabyTasks().draw(key, split=split, groups=groups)
    assert task == BabyTasks().draw(key, split=split, groups=groups) == BabyTasks().get(task.id)
    assert split in (None, task.split)
    assert groups is None or task.group in groups
    assert task.data["solvable"] is True


def test_draws_spread_over_levels_seeds_and_splits(cheap: BabyTasks) -> None:
    drawn = [cheap.draw(key, split="train") for key in range(200)]
    assert len({seed_of(task) for task in drawn}) > 195
    assert set(Counter(map(level_of, drawn))) == set(CHEAP)
    assert min(Counter(map(level_of, drawn)).values()) > 20
    one = BabyTasks(CHEAP[:1])
    assert {one.draw(key, split=None).split for key in range(300)} == set(SPLITS)
    assert cheap.draw(0, split="train") != cheap.draw(0, split="test")


def test_unsolvable_tasks_are_never_drawn_or_sampled() -> None:
    tasks = BabyTasks(SOMETIMES_UNSOLVABLE)
    there = [tasks.get(f"babyai/{level}/{seed}") for level in SOMETIMES_UNSOLVABLE for seed in range(12)]
    assert Counter(task.data["solvable"] for task in there).keys() == {True, False}
    assert all((", then " in task.goal or " after you " in task.goal) != task.data["solvable"] for task in there)
    chosen = [tasks.draw(key) for key in range(30)] + tasks.sample(30, split="test")
    assert all(task.data["solvable"] for task in chosen)
    assert len({task.id for task in chosen}) > 50


def test_a_strict_second_door_cannot_be_opened() -> None:
    """minigrid ends the episode whichever door is opened first."""
    tasks = BabyTasks(("OpenDoorsOrderN2Debug",))
    seeds = [seed for seed in range(12) if not tasks.get(f"babyai/OpenDoorsOrderN2Debug/{seed}").data["solvable"]]
    assert len(seeds) >= 4
    for seed in seeds[:2]:
        assert search(make_world("OpenDoorsOrderN2Debug", seed), 10**9) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "level",
    [
        "PutNextS4N1",
        *(pytest.param(level, marks=pytest.mark.rotating) for level in ("PutNextLocalS5N3", "MoveTwoAcrossS5N2")),
    ],
)
def test_proven_unsolvable_states_have_no_plan(level: str) -> None:
    """The proofs are also checked in random play, where objects of the mission may be gone."""
    proven = 0
    for seed in range(60):
        world, rng = make_world(level, seed), random.Random(seed)
        plays = [world.step(action) for action in random_actions(rng, rng.randint(0, 150))]
        if any(outcome.terminated or outcome.truncated for outcome in plays) or not unsolvable(world):
            continue
        proven += 1
        assert search(world, 1_000) is None, (level, seed)
    assert proven > 1, "nothing to try"


def test_samples_are_repeatable_and_distinct(tasks: BabyTasks) -> None:
    taken = tasks.sample(100, split="test", seed=5)
    assert len({seed_of(task) for task in taken}) == 100
    assert {task.split for task in taken} == {"test"}
    counts = Counter(map(level_of, taken))
    assert len(counts) == 96 and set(counts.values()) == {1, 2}
    assert tasks.sample(20, split="test", seed=5) == taken[:20]
    assert tasks.sample(20, split="test", seed=6) != taken[:20]
    assert tasks.sample(0) == []
    assert len({task.id for task in BabyTasks(("GoToObj",)).sample(400, split="test")}) == 400


def test_samples_from_groups(cheap: BabyTasks) -> None:
    taken = cheap.sample(41, split="validation", groups=["Unlock", "GoTo"], seed=2)
    assert Counter(map(level_of, taken)).most_common() in (
        [("GoToObj", 21), ("UnlockLocal", 20)],
        [("UnlockLocal", 21), ("GoToObj", 20)],
    )
    assert len({seed_of(task) for task in taken}) == 41
    assert {task.split for task in cheap.sample(80)} >= {"train"}


@pytest.mark.slow
@pytest.mark.parametrize("level", ["GoToObjS4", pytest.param("OpenDoorsOrderN4Debug", marks=pytest.mark.rotating)])
def test_the_largest_sample_has_distinct_tasks(level: str) -> None:
    """This also holds if half of the worlds are unsolvable."""
    taken = BabyTasks((level,)).sample(2_500, split="test")
    assert len({task.id for task in taken}) == 2_500
    assert all(task.data["solvable"] for task in taken)


@pytest.mark.parametrize("count", [None, -1, 2_501, 10_000])
def test_larger_samples_are_refused(cheap: BabyTasks, count: int | None) -> None:
    asked = "all" if count is None else count
    with pytest.raises(UsageError, match=f"{asked} tasks were asked for; 'babyai' returns at most 2500"):
        cheap.sample(count, split="test")


def test_invalid_selections_are_refused(cheap: BabyTasks) -> None:
    with pytest.raises(UnknownTask, match="no split 'dev'"):
        cheap.draw(0, split="dev")
    with pytest.raises(UnknownTask, match="no group 'Boss'; choose from GoTo, Open, PickUp, PutNext, Unlock"):
        cheap.sample(1, groups=("Boss",))
    with pytest.raises(UnknownTask, match="no group of 'babyai' was named; choose from"):
        cheap.draw(0, groups=())


@pytest.mark.parametrize("groups", ["GoTo", 5, [3], {"GoTo": 1}])
def test_groups_are_a_list_of_names(cheap: BabyTasks, groups: Any) -> None:
    with pytest.raises(UsageError, match="as a list of names"):
        cheap.draw(0, groups=groups)


def test_groups_are_those_of_the_levels(tasks: BabyTasks) -> None:
    assert tasks.groups == tuple(GROUPS)
    assert BabyTasks(("BossLevel", "GoToObj", "GoToSeq")).groups == ("GoTo", "Sequence", "Boss")
    assert BabyTasks(("GoToObj",)).get("babyai/BossLevel/3").group == "Boss"


def test_pickled_sets_are_small(tasks: BabyTasks) -> None:
    tasks.sample(3)
    copied = pickle.loads(pickle.dumps(tasks))
    assert copied.levels == tasks.levels and copied.digest == tasks.digest
    assert len(pickle.dumps(tasks)) < 4_000


def test_few_worlds_are_cached(cheap: BabyTasks) -> None:
    for seed in range(80):
        cheap.get(f"babyai/GoToObj/{seed}")
    assert generated_world.cache_info().currsize <= 64
