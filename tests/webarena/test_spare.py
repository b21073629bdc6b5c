"""A session is prepared while an episode plays; the next one takes it and finds no trace of another episode."""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from agentgym_envs.task import Task
from agentgym_envs.webarena.actions import GoBack
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.execute import execute, goto
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions, BrowserPool, pool_for
from agentgym_envs.webarena.browser.session import BrowserSession, show_nothing
from agentgym_envs.webarena.browser.view import ViewOptions
from agentgym_envs.webarena.env import WebArenaEnv
from agentgym_envs.webarena.sites.episodes import episodes
from tests.children import kill
from tests.waiting import until
from tests.webarena.conftest import HOME, Agent, MakeAgent, Site, html
from tests.webarena.test_faults import processes_of

pytestmark = pytest.mark.slow
STORE = """
<script>document.cookie = 'a=1'; localStorage.setItem('a', '1'); sessionStorage.setItem('a', '1');
indexedDB.open('a');</script><p>Warm</p>"""
LOOK = """(async () => [document.cookie, localStorage.length, (await indexedDB.databases()).length,
sessionStorage.length, history.length, document.referrer])()"""


async def warm_up(session: BrowserSession) -> None:
    await goto(session, HOME)
    await session.observe()


@pytest.fixture
def options(hosts: HostRules) -> BrowserOptions:
    """A browser of its own, so that no other test takes or drops its spare session."""
    return BrowserOptions(hosts=hosts, idle_seconds=2.0)


@pytest.fixture
def pool(options: BrowserOptions) -> BrowserPool:
    async def find() -> BrowserPool:
        return pool_for(options)

    return loop.run(find())


def prepare(agent: Agent, warm: Callable[[BrowserSession], Any] = warm_up) -> None:
    async def request() -> None:
        agent.session.prepare_next(warm)

    agent.run(request())
    until(lambda: spare_of(agent) is not None)


def spare_of(agent: Agent) -> BrowserSession | None:
    ready = agent.session._pool.spare._ready
    return ready and ready[1]


def is_closed(session: BrowserSession | None) -> bool:
    return session is not None and session._closed


def test_the_next_session_takes_the_spare_one(make_agent: MakeAgent, options: BrowserOptions, site: Site) -> None:
    site.put("/", html("<p>Home</p>"))
    first = make_agent(browser=options)
    prepare(first)
    spare = spare_of(first)
    second, third = make_agent(browser=options), make_agent(browser=options)
    assert second.session is spare and third.session is not spare
    assert not second.session.is_spare and second.session._chromium.spares == 0
    assert second.session._chromium.episodes == 3
    assert second.see().tree == third.see().tree and "Home" not in second.tree


def test_a_prepared_session_has_no_traces(make_agent: MakeAgent, options: BrowserOptions, site: Site) -> None:
    site.put("/", html(STORE))
    first = make_agent(browser=options)
    prepare(first)
    spare = spare_of(first)
    site.put("/look", html("<p>Look</p>"))
    prepared, fresh = make_agent(browser=options), make_agent(browser=options)
    assert prepared.session is spare
    looks = []
    for agent in (prepared, fresh):
        agent.goto("/look")
        looks.append((agent.js(LOOK), agent.see(), agent.run(agent.session.screenshot())))
        assert agent.run(agent.session.har()) == []
        with pytest.raises(Exception, match="no page to go back to"):
            agent.run(execute(agent.session, GoBack()))
    assert looks[0] == looks[1]
    assert looks[0][0][:4] == ["", 0, 0, 0]


def test_a_spare_session_needs_equal_options(make_agent: MakeAgent, options: BrowserOptions, site: Site) -> None:
    first = make_agent(browser=options)
    options_of_context: list[dict[str, Any]] = [
        {"size": (800, 600)},
        {"headers": {"x-a": "1"}},
        {"storage_state": {"cookies": [], "origins": []}},
    ]
    for others in options_of_context:
        prepare(first, show_nothing)
        spare = spare_of(first)
        agent = make_agent(browser=options, **others)
        assert agent.session is not spare
        agent.show("<p>Other</p>")
        until(partial(is_closed, spare))
    prepare(first, show_nothing)
    spare = spare_of(first)
    view = ViewOptions(viewport=False, max_chars=300)
    agent = make_agent(browser=options, view=view, record=True, call_seconds=7.0)
    assert agent.session is spare and agent.session.options.view == view
    agent.show("<p>Recorded</p>")
    assert [entry["request"]["url"] for entry in agent.run(agent.session.har())] == [HOME]


def test_the_last_episode_closes_the_spare_session(
    make_agent: MakeAgent, options: BrowserOptions, pool: BrowserPool, site: Site
) -> None:
    first, second = make_agent(browser=options), make_agent(browser=options)
    prepare(first, show_nothing)
    chromium = first.session._chromium
    first.close()
    assert spare_of(second) is not None
    second.close()
    assert spare_of(second) is None
    until(lambda: not chromium.browser.contexts)
    until(lambda: not chromium.browser.is_connected())
    assert pool._all == set()


def test_a_crash_of_the_browser_breaks_the_spare_session(
    make_agent: MakeAgent, options: BrowserOptions, site: Site
) -> None:
    first = make_agent(browser=options)
    prepare(first, show_nothing)
    spare = spare_of(first)
    kill(processes_of("chrom"))
    until(lambda: first.session._broken.done())
    second = make_agent(browser=options)
    assert second.session is not spare
    assert "Works" in second.show("<p>Works</p>").tree
    prepare(second, show_nothing)
    spare = spare_of(second)
    third = make_agent(browser=options)
    assert third.session is spare and "Too" in third.show("<p>Too</p>").tree


def test_a_warm_up_that_fails_leaves_nothing(make_agent: MakeAgent, options: BrowserOptions, site: Site) -> None:
    first = make_agent(browser=options)
    failed = []

    async def fail(session: BrowserSession) -> None:
        failed.append(session)
        await goto(session, "http://elsewhere.test/")

    async def request() -> None:
        first.session.prepare_next(fail)

    first.run(request())
    until(lambda: bool(failed) and failed[0]._closed)
    assert spare_of(first) is None
    chromium = first.session._chromium
    until(lambda: (chromium.episodes, chromium.spares) == (1, 0))
    assert "On" in make_agent(browser=options).show("<p>On</p>").tree


def test_nothing_is_prepared_while_calls_run(make_agent: MakeAgent, options: BrowserOptions, site: Site) -> None:
    first = make_agent(browser=options)
    spare = first.session._pool.spare
    spare._most_calls = 0

    async def wait() -> None:
        first.session.prepare_next(show_nothing)
        await first.session.guarded(asyncio.sleep(0.5))

    first.run(wait())
    assert spare._ready is None and spare._preparing is None
    until(lambda: spare_of(first) is not None)


def test_a_browser_that_is_replaced_takes_its_spare_session_along(
    make_agent: MakeAgent, hosts: HostRules, site: Site
) -> None:
    options = BrowserOptions(hosts=hosts, recycle_after=2, idle_seconds=97)
    first = make_agent(browser=options)
    prepare(first, show_nothing)
    old, spare = first.session._chromium, spare_of(first)
    assert old.retired
    second = make_agent(browser=options)
    assert second.session is not spare and second.session._chromium is not old
    first.close()
    until(lambda: not old.browser.is_connected())
    second.close()


@pytest.fixture
def env() -> Iterator[WebArenaEnv]:
    made = WebArenaEnv()
    yield made
    made.close()


async def drop(env: WebArenaEnv) -> None:
    env.session._pool.spare.drop()


def ready(env: WebArenaEnv) -> BrowserSession:
    spare = env.session._pool.spare
    until(lambda: spare._ready is not None)
    assert spare._ready is not None
    return spare._ready[1]


def test_a_prepared_session_gives_the_same_bytes() -> None:
    env = WebArenaEnv(record_screenshots=True)
    tasks: list[Task] = [next(iter(env.tasks.sample(1, seed=7, groups=(group,)))) for group in ("shopping", "maps")]
    for task, earlier in ((tasks[0], tasks[0]), (tasks[0], tasks[1])):
        seen = []
        for prepared in (False, True):
            env.reset(seed=1, options={"task": earlier.id})
            spare = ready(env)
            if not prepared:
                loop.run(drop(env))
            seen.append([env.reset(seed=1, options={"task": task.id}), env.step("scroll [down]"), env.step("go_back")])
            assert (env.session is spare) == prepared
        assert seen[0] == seen[1]
    env.close()


def test_the_warm_up_uses_data_of_its_own(env: WebArenaEnv) -> None:
    before = set(episodes()._running)
    env.reset(seed=1)
    spare, own = ready(env), env.session.state["episode"]
    assert set(episodes()._running) - before == {own.token}
    assert not own.database.total_changes and spare.url == "about:blank" and spare.state == {}
    env.reset(seed=2)
    assert env.session is spare and env.session.state["episode"] is not own


def test_an_idle_environment_prepares_one_session(env: WebArenaEnv) -> None:
    env.reset(seed=1)
    spare = ready(env)
    contexts = len(env.session._chromium.browser.contexts)
    time.sleep(0.5)
    assert ready(env) is spare and len(env.session._chromium.browser.contexts) == contexts
