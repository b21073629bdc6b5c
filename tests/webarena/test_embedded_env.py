"""`AgentGym/WebArena-v0`: episodes on the embedded sites."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.core import StopReason
from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.rollout import Limits
from agentgym_envs.task import Task
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.env import WebArenaEnv
from agentgym_envs.webarena.evaluators.state import OnlyChanged
from agentgym_envs.webarena.sites.episodes import episodes
from agentgym_envs.webarena.sites.framework.site import HOSTS, ORIGINS
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.scoring import evaluators_for
from agentgym_envs.webarena.tasks.table import load
from agentgym_envs.webarena.tasks.template import GROUPS
from tests.rollout.forking import CODEC, PlanEngine, fork_every_turn


def a_task(kind: str, site: str = "shop") -> Task:
    """Return the first task of a kind on a site; a change must be possible."""
    tasks = (t for t in load() if t.data["kind"] == kind and t.data["sites"] == [site])
    return next(task for task in tasks if kind != "change" or _is_achievable(task))


def _is_achievable(task: Task) -> bool:
    return any(isinstance(one, OnlyChanged) and one.expected for one in evaluators_for(task))


@pytest.fixture
def env() -> Iterator[WebArenaEnv]:
    env = WebArenaEnv(split=None, table_version=2)
    yield env
    env.close()


def step_until_change(env: WebArenaEnv, plan: list[str]) -> list[str]:
    """Step until the database has changed, and return the rest of the plan."""
    while not env.session.state["episode"].database.total_changes:
        env.step(plan.pop(0))
    return plan


def test_the_environment_has_the_groups_of_the_paper() -> None:
    env: Any = gym.make("AgentGym/WebArena-v0")
    assert env.unwrapped.tasks.groups == GROUPS
    named = {site for site, origin in ORIGINS.items() if origin in env.unwrapped.instructions}
    assert named == ORIGINS.keys() - {"encyclopedia"}
    env.close()


@pytest.mark.slow
def test_the_second_version_of_the_table_has_tasks_with_the_encyclopedia() -> None:
    env: Any = gym.make("AgentGym/WebArena-v0", table_version=2)
    assert env.unwrapped.tasks.digest == load(2).digest
    assert all(origin in env.unwrapped.instructions for origin in ORIGINS.values())
    env.close()
    with pytest.raises(UsageError, match="version 9"):
        gym.make("AgentGym/WebArena-v0", table_version=9)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("site", HOSTS)
def test_an_episode_begins_on_its_site(env: WebArenaEnv, site: str) -> None:
    task = next(t for t in load(2) if t.data["sites"][0] == site)
    observation, info = env.reset(options={"task": task.id})
    assert f"URL: {task.data['start']}" in observation
    assert f"OBJECTIVE: {task.goal}" in observation
    assert info["url"].startswith(f"{ORIGINS[site]}/") and not info["page_truncated"]
    assert env.session.state["episode"].failures == []


@pytest.mark.slow
def test_only_the_sites_can_be_visited(env: WebArenaEnv) -> None:
    env.reset(seed=0)
    for url in ("http://example.com/", "http://127.0.0.1/", "http://shop.test:8080/", "file:///etc/passwd"):
        assert env.step(f"goto [{url}]")[4]["invalid_action"]
    for origin in ORIGINS.values():
        assert env.step(f"goto [{origin}/]")[4]["url"] == f"{origin}/"


@pytest.mark.slow
def test_closing_an_environment_ends_its_episode(env: WebArenaEnv) -> None:
    before = len(episodes())
    env.reset(seed=0)
    env.reset(seed=1)
    list(env.oracle())
    env.close()
    for _ in range(200):
        if len(episodes()) == before:
            break
        loop.run(asyncio.sleep(0.01))
    assert len(episodes()) == before


@pytest.mark.slow
def test_the_oracle_solves_the_task_from_any_page(env: WebArenaEnv) -> None:
    task = a_task("information")
    env.reset(options={"task": task.id})
    env.step(f"goto [{ORIGINS['forum']}/]")
    env.step("new_tab")
    for command in env.oracle():
        *_, info = env.step(command)
    assert info["success"]


@pytest.mark.rotating
@pytest.mark.slow
def test_the_oracle_raises_after_a_change_of_the_sites(env: WebArenaEnv) -> None:
    task = a_task("change")
    env.reset(options={"task": task.id})
    rest = step_until_change(env, list(env.oracle()))
    with pytest.raises(NoOracle, match="have changed since"):
        env.oracle()
    for command in rest:
        *_, info = env.step(command)
    assert info["success"]


@pytest.mark.slow
def test_a_reset_restores_the_world(env: WebArenaEnv) -> None:
    task = a_task("change")
    first, _ = env.reset(options={"task": task.id})
    plan = list(env.oracle())
    step_until_change(env, [*plan])
    assert env.reset(options={"task": task.id})[0] == first
    for command in plan:
        *_, info = env.step(command)
    assert info["success"]


def test_a_site_that_fails_ends_the_episode_without_a_reward(env: WebArenaEnv) -> None:
    env.reset(options={"task": a_task("information").id})
    episode = env.session.state["episode"]
    with episode.lock:
        for (table,) in episode.database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'forum_%'").fetchall():
            episode.database.execute(f"DROP TABLE IF EXISTS {table}")
    _, reward, terminated, truncated, info = env.step(f"goto [{ORIGINS['forum']}/]")
    assert (reward, terminated, truncated, info["stop_reason"]) == (0.0, False, True, StopReason.ENV_ERROR)
    assert "a site failed" in info["error"] and "OperationalError" in info["error"]


@pytest.mark.slow
def test_changes_of_the_sites_survive_pickling(env: WebArenaEnv) -> None:
    task = a_task("change")
    env.reset(options={"task": task.id})
    rest = step_until_change(env, list(env.oracle()))
    copy = pickle.loads(pickle.dumps(env))
    for command in rest:
        *_, info = copy.step(command)
    copy.close()
    assert info["success"]


@pytest.mark.rotating
@pytest.mark.slow
def test_a_fork_with_the_same_answers_is_the_same_episode(env: WebArenaEnv) -> None:
    """Also behind a change of the sites, which a fork makes again in a world of its own."""
    task = a_task("change")
    env.reset(options={"task": task.id})
    engine = PlanEngine(CODEC, list(env.oracle()))
    limits = Limits(max_turns=15, max_tokens=1_000_000, max_turn_tokens=200)
    played, forked = fork_every_turn(lambda: WebArenaEnv(split=None), engine, task=task.id, limits=limits)
    assert played.trajectory.success and forked == [played] * len(engine.texts)


@pytest.mark.slow
def test_the_reason_names_the_missing_part(env: WebArenaEnv) -> None:
    env.reset(options={"task": a_task("information").id})
    *_, info = env.step("stop [no idea]")
    assert "no idea" in info["reason"] and info["score"] == 0.0
    env.reset(options={"task": a_task("change").id})
    *_, info = env.step("stop")
    assert info["reason"].startswith("missing: ")


HOSTILE = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>'


@pytest.mark.slow
def test_scripts_in_an_agents_texts_never_run(env: WebArenaEnv) -> None:
    """A post appears on its own page, in lists and in search results."""
    env.reset(options={"task": next(t for t in load() if t.data["sites"] == ["forum"]).id})
    page = PageReader()

    def do(command: str) -> None:
        assert env.step(command)[4]["invalid_action"] is None
        page.look(env.session.view.tree, env.session.view.url)

    do(f"goto [{ORIGINS['forum']}/submit]")
    do(page.choose("Board", page.names("option")[1]))
    do(page.type("Title", HOSTILE))
    do(page.type("Text", HOSTILE))
    do(page.click("button", "Post"))
    assert HOSTILE in page.names("heading")
    for path in ("/all/new", "/search?q=onerror"):
        do(f"goto [{ORIGINS['forum']}{path}]")
        assert HOSTILE in page.texts()
        assert loop.run(env.session.evaluate("'hacked' in window")) is False
    planted = "(s => { s.textContent = 'window.hacked = 1'; document.head.append(s); return 'hacked' in window; })"
    assert loop.run(env.session.evaluate(f"{planted}(document.createElement('script'))")) is False
