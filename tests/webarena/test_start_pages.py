"""Tasks that start on a deep page, and on several tabs."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

import gymnasium as gym
import pytest

from agentgym_envs.http.run import background_server
from agentgym_envs.task import Task, TaskTable
from agentgym_envs.viewer.panels.webarena import split_page
from agentgym_envs.webarena.env import WebArenaEnv
from agentgym_envs.webarena.tasks.scoring import start_urls, template_of
from agentgym_envs.webarena.tasks.table import load, templates
from tests import contract

THIS = re.compile(r"\b(this|here|page|tabs?|open|looking at|reading about)\b", re.IGNORECASE)
DEEP = {
    name: template
    for name, template in templates().items()
    if template.start is not None and inspect.signature(template.start).parameters
}
"""The templates whose start page shows what the intent means. The others start on the same page in every task."""


def is_deep(task: Task) -> bool:
    return any(urlsplit(url).path != "/" for url in start_urls(task))


@cache
def tasks_with_tabs() -> tuple[Task, ...]:
    return tuple(task for task in load(2) if "tabs" in task.data)


def make(**options: Any) -> WebArenaEnv:
    """Return an environment whose tasks all start on several tabs."""
    env = WebArenaEnv(split=None, table_version=2, **options)
    env.tasks = TaskTable("webarena", 2, tasks_with_tabs())
    return env


@pytest.fixture
def env() -> Iterator[WebArenaEnv]:
    env = make()
    yield env
    env.close()


def start(env: WebArenaEnv) -> tuple[Task, str]:
    """Begin a task with three tabs, and return its first observation."""
    task = next(task for task in tasks_with_tabs() if len(task.data["tabs"]) == 3)
    return task, env.reset(seed=0, options={"task": task.id})[0]


def shares(which: Callable[[Task], bool]) -> dict[Any, float]:
    """Return the share of some tasks of version 2 in each split, and on each site in each split."""
    every, some = Counter[Any](), Counter[Any]()
    for task in load(2):
        for key in (task.split, (task.split, task.data["sites"][0])):
            every[key] += 1
            some[key] += which(task)
    return {key: some[key] / count for key, count in every.items()}


def test_a_third_of_version_2_starts_deep() -> None:
    found = shares(is_deep)
    assert len(found) == 3 + 3 * 6
    assert min(found[split] for split in ("train", "validation", "test")) >= 0.33 and min(found.values()) >= 0.24, found
    assert not any(map(is_deep, load(1)))


def test_some_tasks_of_version_2_start_on_several_tabs() -> None:
    found = shares(lambda task: "tabs" in task.data)
    assert all(found[split] >= 0.02 for split in ("train", "validation", "test")), found
    assert {len(task.data["tabs"]) for task in tasks_with_tabs()} == {2, 3}
    assert all(task.data["tabs"][0] == task.data["start"] for task in tasks_with_tabs())


def test_intents_do_not_name_the_thing_on_the_start_page() -> None:
    for name, template in DEEP.items():
        assert all(THIS.search(intent) for intent in template.intents), name
    for task in (task for task in load(2) if is_deep(task) and template_of(task).name in DEEP):
        params = task.data["params"]
        shown = set(template_of(task).named)
        if "place" in params:  # a post of the forum can be about its town
            shown.add("town")
        hidden = [str(value) for key, value in params.items() if key not in shown]
        assert hidden, task.id
        assert not [value for value in hidden if len(value) > 3 and value in task.goal], task


def test_tasks_with_the_same_goal_have_different_start_pages() -> None:
    seen = Counter((task.data["world"], task.goal, *start_urls(task)) for task in load(2))
    assert not [key for key, count in seen.items() if count > 1 and is_deep_url(key[2])]


def is_deep_url(url: str) -> bool:
    return urlsplit(url).path != "/"


def test_a_variant_of_a_held_out_template_is_held_out() -> None:
    bases = {name: templates().get(re.sub("-(here|tabs)$", "", name)) for name in DEEP}
    assert sum(base is not None for base in bases.values()) > 100
    assert not [name for name, base in bases.items() if base is not None and base.held_out != DEEP[name].held_out]


@pytest.mark.slow
def test_an_episode_begins_with_all_tabs_and_shows_the_first(env: WebArenaEnv) -> None:
    task, observation = start(env)
    assert [tab.url for tab in env.session.tabs] == task.data["tabs"]
    assert env.session.url == task.data["start"]
    line = observation.splitlines()[1]
    names = [task.data["params"][name] for name in ("one", "two", "three")]
    assert [part.partition(": ")[2].startswith(name) for part, name in zip(line.split(" | "), names, strict=True)]
    assert line.startswith("Tab 0 (current): ") and line.count("(current)") == 1
    shown = split_page(observation)
    assert shown is not None and shown.tabs == line, "the viewer's panel shows the tabs"


@pytest.mark.slow
def test_the_oracle_returns_to_the_tabs_of_the_beginning(env: WebArenaEnv) -> None:
    start(env)
    for command in ("tab_focus [2]", "close_tab", "goto [http://shop.test/]", "new_tab", "goto [http://forum.test/]"):
        assert env.step(command)[-1]["invalid_action"] is None
    for command in env.oracle():
        *_, info = env.step(command)
    assert info["success"], info


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [
        contract.pickles_within_an_episode,
        contract.restores_a_snapshot,
        contract.replays_from_info,
        contract.instances_agree,
    ],
)
def test_several_start_tabs_keep_the_contract(check: Callable[[contract.Make], None]) -> None:
    check(make)


@pytest.mark.slow
def test_several_start_tabs_are_the_same_over_http() -> None:
    options: dict[str, Any] = {"split": None, "table_version": 2}
    task = tasks_with_tabs()[0]
    with (
        background_server(["AgentGym/WebArena-v0"]) as url,
        contract.opened(partial(gym.make, "AgentGym/WebArena-v0", **options)) as local,
        contract.opened(partial(gym.make, "AgentGym/WebArena-v0", base_url=url, **options)) as remote,
    ):
        actions = contract.known_actions(local, task.id)
        played = contract.play(local, task.id, 0, actions)
        assert played == contract.play(remote, task.id, 0, actions)
        assert local.snapshot() == remote.snapshot()
    assert played[-1][-1]["success"]
