"""Datasets of tasks: which, how often, in which order, and what a row carries."""

from __future__ import annotations

import pytest

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_trl.dataset import make_dataset
from agentgym_trl.columns import spec_of
from tests.adapters.trl.small import DEPTH, craft
from tests.toy import CountEnv


def test_equal_seeds_make_equal_datasets() -> None:
    env = text_env(craft())
    one, same, other = (make_dataset(env, 20, groups=DEPTH, seed=seed).to_list() for seed in (1, 1, 2))
    assert one == same
    assert [row["task"] for row in one] != [row["task"] for row in other]


def test_a_table_gives_each_task_once() -> None:
    rows = make_dataset(CountEnv(), split=None, seed=5).to_list()
    assert sorted(row["task"] for row in rows) == sorted(task.id for task in CountEnv.tasks)
    assert [row["task"] for row in rows] != [task.id for task in CountEnv.tasks]
    assert {row["task"] for row in make_dataset(CountEnv())} == {"count/2", "count/3", "count/9"}
    assert {row["task"] for row in make_dataset(CountEnv(), groups=["large"])} == {"count/9"}


def test_more_rows_than_tasks_repeat_them_with_new_seeds() -> None:
    rows = make_dataset(CountEnv(), 50).to_list()
    assert len(rows) == 50
    assert {row["task"] for row in rows} == {"count/2", "count/3", "count/9"}
    assert len({row["seed"] for row in rows}) == 50


def test_a_set_without_end_needs_a_count() -> None:
    env = text_env(craft())
    with pytest.raises(UsageError, match="all tasks were asked for"):
        make_dataset(env)
    rows = make_dataset(env, 30).to_list()
    assert len(rows) == len({row["task"] for row in rows}) == 30


def test_a_row_carries_task_and_seed() -> None:
    env = text_env(craft())
    for row in make_dataset(env, 5, groups=DEPTH):
        spec = spec_of(row["prompt"], {"step": 3})
        assert (spec.task, spec.seed, spec.meta) == (row["task"], row["seed"], {"step": 3})
        task = env.tasks.get(row["task"])
        assert (task.group, task.split) == (row["group"], "train") == ("depth-1", "train")
        assert row["prompt"][0]["content"] == task.goal


@pytest.mark.parametrize("kind", [{"split": "dev"}, {"groups": ["depth-9"]}])
def test_unknown_splits_and_groups_are_refused(kind: dict) -> None:
    with pytest.raises(UsageError):
        make_dataset(text_env(craft()), 3, **kind)
