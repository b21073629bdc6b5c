import json
import pickle
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.task import SPLITS, TaskSet
from agentgym_envs.textcraft.names import Worlds
from agentgym_envs.textcraft.recipes import RecipeBook, load_recipe_book
from agentgym_envs.textcraft.tasks import FROZEN, derive_tasks, make_tasks

DIGESTS: dict[Worlds, str] = {
    "real": "42a7d86a3a601683d34c4c7a666e8a123cafd550301f68b208485a17b74cbfc4",
    "fictional": "8cb485b4de0a8c48bb276d9094d299374d983bd6469e00b09811e95c2604f702",
    "invented": "10b2bd439f40a83843ba5712c685edec776bf99c41fcfe3b0eb3423849d52292",
}


@pytest.mark.parametrize("worlds", DIGESTS)
def test_digests_are_frozen(worlds: Worlds, recipe_book: RecipeBook) -> None:
    """If this fails, tasks have changed: raise the version of the table, and say so in CHANGELOG.md."""
    assert make_tasks(recipe_book, worlds).digest == DIGESTS[worlds]


def test_the_frozen_tasks_equal_the_derived_ones(recipe_book: RecipeBook) -> None:
    rows = [json.loads(line) for line in FROZEN.read_text().splitlines()]
    assert rows == [asdict(task) for task in derive_tasks(recipe_book)]


def test_goals_are_in_table_order(raw: Any, recipe_book: RecipeBook) -> None:
    goals = [goal for depth in ("1", "2", "3", "4") for goal in raw["goals"][depth]]
    assert [task.data["item"] for task in make_tasks(recipe_book, "real").sample()] == goals
    assert [task.id for task in make_tasks(recipe_book, "real").sample()] == [f"textcraft/{n}" for n in range(544)]


def test_an_example_task_has_the_expected_fields(recipe_book: RecipeBook) -> None:
    task = make_tasks(recipe_book, "real").get("textcraft/0")
    assert (task.group, task.goal) == ("depth-1", "craft acacia planks")
    assert task.data == {"item": "acacia_planks", "depth": 1, "plan_length": 2}


def test_splits_are_disjoint_and_contain_every_depth(recipe_book: RecipeBook) -> None:
    tasks = make_tasks(recipe_book, "real").sample()
    items = {split: {task.data["item"] for task in tasks if task.split == split} for split in SPLITS}
    assert (
        not items["train"] & items["test"] | items["train"] & items["validation"] | items["test"] & items["validation"]
    )
    assert Counter((task.group, task.split) for task in tasks) == {
        ("depth-1", "train"): 88,
        ("depth-1", "validation"): 12,
        ("depth-1", "test"): 25,
        ("depth-2", "train"): 204,
        ("depth-2", "validation"): 29,
        ("depth-2", "test"): 58,
        ("depth-3", "train"): 82,
        ("depth-3", "validation"): 12,
        ("depth-3", "test"): 23,
        ("depth-4", "train"): 8,
        ("depth-4", "validation"): 1,
        ("depth-4", "test"): 2,
    }


@pytest.fixture(params=["fictional", "invented"])
def tasks(request: pytest.FixtureRequest, recipe_book: RecipeBook) -> TaskSet:
    return make_tasks(recipe_book, request.param)


def world_of(task_id: str) -> int:
    return int(task_id.split("/")[1])


@pytest.mark.slow_after(1)
def test_worlds_of_different_splits_are_disjoint(tasks: TaskSet) -> None:
    for index, split in enumerate(SPLITS):
        drawn = [tasks.draw(key * 7919, split=split) for key in range(500)]
        taken = tasks.sample(500, split=split, seed=3)
        assert {task.split for task in [*drawn, *taken]} == {split}
        worlds = {world_of(task.id) for task in [*drawn, *taken]}
        assert index * 1_000_000 <= min(worlds) and max(worlds) < (index + 1) * 1_000_000
        assert len(worlds) > 980


def test_sample_uses_distinct_worlds_and_all_goals(tasks: TaskSet) -> None:
    taken = tasks.sample(600, split="test", groups=("depth-1",), seed=5)
    assert len({world_of(task.id) for task in taken}) == 600
    assert {task.group for task in taken} == {"depth-1"}
    uses = Counter(task.id.split("/")[2] for task in taken)
    assert len(uses) == 125 and set(uses.values()) == {4, 5}
    assert tasks.sample(600, split="test", groups=("depth-1",), seed=5) == taken
    assert tasks.sample(600, split="test", groups=("depth-1",), seed=6) != taken
    assert tasks.sample(0, split="train") == []


def test_a_very_large_set_cannot_be_sampled_completely(tasks: TaskSet) -> None:
    with pytest.raises(UsageError, match="all tasks were asked for"):
        tasks.sample(split="test")
    with pytest.raises(UsageError, match="1000001 tasks were asked for"):
        tasks.sample(1_000_001, split="test")
    with pytest.raises(UsageError, match="-1 tasks were asked for"):
        tasks.sample(-1)


@pytest.mark.slow
def test_draw_is_uniform_over_worlds_and_goals(tasks: TaskSet) -> None:
    drawn = [tasks.draw(key, split="train") for key in range(5_000)]
    assert len({task.id for task in drawn}) > 4_990
    assert len({task.id.split("/")[2] for task in drawn}) > 540
    assert {task.split for task in (tasks.draw(key) for key in range(100))} == set(SPLITS)


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "/0",
        "/0/0/0",
        "/3000000/0",
        "/0/544",
        "/-1/0",
        "/0/-1",
        "/00/0",
        "/0/01",
        "/+1/0",
        "/1_0/0",
        "/٣/0",
        "/ 1/0",
    ],
)
def test_unknown_ids_are_refused(tasks: TaskSet, rest: str) -> None:
    with pytest.raises(UnknownTask, match=f"for example '{tasks.name}/0/0'"):
        tasks.get(tasks.name + rest)
    with pytest.raises(UnknownTask):
        tasks.get("textcraft/0/0")


@given(st.integers(0, 2_999_999), st.integers(0, 543), st.sampled_from(["fictional", "invented"]))
def test_a_task_keeps_the_structure_and_hides_the_real_name(world: int, goal: int, worlds: Worlds) -> None:
    recipe_book = load_recipe_book()
    real, tasks = make_tasks(recipe_book, "real").sample()[goal], make_tasks(recipe_book, worlds)
    task = tasks.get(f"textcraft-{worlds}/{world}/{goal}")
    assert tasks.get(task.id) == task
    assert task.group == real.group
    assert {**task.data, "item": "", "world": 0} == {**real.data, "item": "", "world": 0}
    assert task.goal == f"craft {task.data['item'].replace('_', ' ')}"
    assert tasks.names(task).name_of(recipe_book.goals[goal]) == task.goal.removeprefix("craft ")
    assert worlds == "fictional" or real.data["item"] not in json.dumps(asdict(task))


def test_tasks_are_pickled_by_name(recipe_book: RecipeBook) -> None:
    for worlds in DIGESTS:
        tasks = make_tasks(recipe_book, worlds)
        assert pickle.loads(pickle.dumps(tasks)) is tasks
        assert len(pickle.dumps(tasks)) < 400


def test_a_custom_table_has_its_own_tasks(table: Any, written: Any) -> None:
    recipe_book = load_recipe_book(written(table))
    tasks = make_tasks(recipe_book, "real")
    name = f"textcraft-{recipe_book.digest[:8]}"
    assert [task.id for task in tasks.sample()] == [f"{name}/{n}" for n in range(4)]
    assert [task.goal for task in tasks.sample()] == ["craft board", "craft plank", "craft tray", "craft cup"]
    assert [task.data["plan_length"] for task in tasks.sample()] == [2, 2, 2, 3]
    assert make_tasks(recipe_book, "invented").draw(0).id.startswith(f"{name}-invented/")
