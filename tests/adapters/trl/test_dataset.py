"""Datasets of tasks: the selection, number, order and proportion of tasks, and the columns of a row."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.core import text_env
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.rollout.mixture import draw_tasks
from agentgym_trl.dataset import as_dataset, make_dataset
from agentgym_trl.trl_format import spec_of
from tests.adapters.trl.small import DEPTH, craft
from tests.toy import CountEnv
from tests.trying import examples

TRAIN = {"count/2", "count/3", "count/9"}


def test_equal_seeds_make_equal_datasets() -> None:
    env = text_env(craft())
    one, same, other = (make_dataset(env, 20, groups=DEPTH, seed=seed).to_list() for seed in (1, 1, 2))
    assert one == same
    assert [row["task"] for row in one] != [row["task"] for row in other]
    table = [make_dataset(CountEnv(), 7, seed=seed).to_list() for seed in (1, 1, 2)]
    assert table[0] == table[1] != table[2]


def test_a_finite_set_gives_each_task_once() -> None:
    rows = make_dataset(CountEnv(), split=None, seed=5).to_list()
    assert sorted(row["task"] for row in rows) == sorted(task.id for task in CountEnv.tasks)
    assert [row["task"] for row in rows] != [task.id for task in CountEnv.tasks]
    assert {row["task"] for row in make_dataset(CountEnv())} == TRAIN
    assert {row["task"] for row in make_dataset(CountEnv(), groups=["large"])} == {"count/9"}


@examples(25)
@given(count=st.integers(1, 20), seed=st.integers(0, 99))
def test_tasks_repeat_only_after_all_were_drawn(count: int, seed: int) -> None:
    rows = make_dataset(CountEnv(), count, seed=seed).to_list()
    assert len(rows) == count
    for first in range(0, count, 3):
        part = {row["task"] for row in rows[first : first + 3]}
        assert len(part) == min(3, count - first) and part <= TRAIN
    assert len({row["seed"] for row in rows}) == count


def test_a_larger_count_extends_the_same_rows() -> None:
    few, many = (make_dataset(CountEnv(), count, seed=3).to_list() for count in (2, 11))
    assert many[:2] == few


def test_an_endless_set_needs_a_count() -> None:
    env = text_env(craft())
    with pytest.raises(UsageError, match="all tasks were asked for"):
        make_dataset(env)
    rows = make_dataset(env, 30).to_list()
    assert len(rows) == len({row["task"] for row in rows}) == 30


def test_a_row_has_task_and_seed() -> None:
    env = text_env(craft())
    for row in make_dataset(env, 5, groups=DEPTH, name="craft"):
        spec = spec_of(row["prompt"], {"step": 3})
        assert (spec.task, spec.seed, spec.meta, spec.env) == (row["task"], row["seed"], {"step": 3}, "craft")
        task = env.tasks.get(row["task"])
        assert (task.group, task.split) == (row["group"], "train") == ("depth-1", "train")
        assert row["prompt"][0]["content"] == task.goal
        assert row["env"] == "craft"


@pytest.mark.parametrize("kind", [{"split": "dev"}, {"groups": ["depth-9"]}])
def test_unknown_splits_and_groups_are_refused(kind: dict) -> None:
    with pytest.raises(UnknownTask):
        make_dataset(text_env(craft()), 3, **kind)
    with pytest.raises(UnknownTask):
        make_dataset(CountEnv(), 3, **kind)


@pytest.mark.parametrize("count", [0, -3])
def test_no_tasks_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"tasks to train on must be at least 1; got {count}"):
        make_dataset(CountEnv(), count)


@pytest.mark.slow
def test_long_prompts_are_left_out() -> None:
    """`Count to 10.` is one character longer than `Count to 9.`; lucky numbers have up to nine digits."""
    assert {row["task"] for row in make_dataset(CountEnv(), 20, max_prompt_chars=40)} == TRAIN
    with pytest.raises(UsageError, match="no task has a prompt of at most 5 characters"):
        make_dataset(CountEnv(), max_prompt_chars=5)
    with pytest.raises(UsageError, match="10000 tasks in a row had a prompt of more than 5 characters"):
        make_dataset(CountEnv(), 3, max_prompt_chars=5)


def mixed(weights: dict[str, float], count: int | None = None, **more: object) -> Counter[str]:
    """The number of rows of each environment; environments with names that begin with `craft` are endless."""
    envs = {name: text_env(craft()) if name.startswith("craft") else CountEnv() for name in weights}
    rows = as_dataset(draw_tasks(envs, weights, count, enough=12, **more))  # type: ignore[arg-type]
    for row in rows:
        assert spec_of(row["prompt"], {}).env == row["env"]
        assert row["task"].startswith("textcraft" if row["env"].startswith("craft") else "count")
    return Counter(rows["env"])


def test_rows_are_in_proportion() -> None:
    assert mixed({"craft": 2, "count": 1}, 12) == {"craft": 8, "count": 4}
    assert mixed({"craft": 0.5, "count": 1.5}, 8) == {"craft": 2, "count": 6}
    assert mixed({"craft": 1, "count": 1}, 3).total() == 3
    assert mixed({"craft": 1000, "count": 1}, 5) == {"craft": 4, "count": 1}
    assert mixed({"count": 1}, 5) == {"count": 5}


def test_without_a_count_every_finite_set_is_used_whole() -> None:
    assert mixed({"craft": 2, "count": 1}) == {"craft": 6, "count": 3}
    assert mixed({"craft": 1, "craft again": 3}) == {"craft": 3, "craft again": 9}
    assert mixed({"count": 1}) == {"count": 3}
    rows = as_dataset(draw_tasks({"a": CountEnv(), "b": CountEnv()}, {"a": 1, "b": 3}, enough=1))
    assert {row["task"] for row in rows if row["env"] == "a"} == TRAIN
    assert Counter(rows["env"]) == {"a": 3, "b": 9}


@examples(25)
@given(weights=st.lists(st.integers(1, 9), min_size=1, max_size=4), count=st.integers(4, 40))
def test_any_count_is_met_in_proportion(weights: list[int], count: int) -> None:
    named = {f"count {number}": float(weight) for number, weight in enumerate(weights)}
    rows = mixed(named, count)
    assert rows.total() == count and all(rows[name] >= 1 for name in named)
    for name, weight in named.items():
        share = count * weight / sum(weights)
        assert abs(rows[name] - share) < len(weights) or rows[name] == 1


def test_environments_are_shuffled_by_the_seed() -> None:
    envs = {"craft": text_env(craft()), "count": CountEnv()}
    weights = {"craft": 1.0, "count": 1.0}
    one, same, other = (as_dataset(draw_tasks(envs, weights, 16, enough=1, seed=seed)).to_list() for seed in (1, 1, 2))
    assert one == same
    assert [row["env"] for row in one] != sorted(row["env"] for row in one)
    assert [row["env"] for row in one] != [row["env"] for row in other]


def test_groups_select_tasks_of_the_environments_that_have_them() -> None:
    envs = {"craft": text_env(craft()), "count": CountEnv()}
    rows = as_dataset(draw_tasks(envs, {"craft": 1, "count": 1}, 8, enough=1, groups=["depth-1", "large"]))
    assert {(row["env"], row["group"]) for row in rows} == {("craft", "depth-1"), ("count", "large")}
    rows = as_dataset(draw_tasks(envs, {"craft": 1, "count": 1}, 8, enough=1, groups=["depth-1"]))
    assert {row["group"] for row in rows if row["env"] == "count"} == {"small", "large"}
    with pytest.raises(UsageError, match="no environment of this run has the groups depth-9"):
        as_dataset(draw_tasks(envs, {"craft": 1, "count": 1}, 8, enough=1, groups=["depth-1", "depth-9"]))
    with pytest.raises(UsageError, match="must be at least 2, since each of 2 environments gives one; got 1"):
        as_dataset(draw_tasks(envs, {"craft": 1, "count": 1}, 1, enough=1))
