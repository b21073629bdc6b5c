"""A failure ends its own episode and no other."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable

import psutil
import pytest

from agentgym_envs.errors import EnvError
from agentgym_envs.webarena.actions import Click, Wait
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.execute import execute, goto
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.tab import SettleTimeouts
from tests.children import kill
from tests.ports import free_port
from tests.waiting import until
from tests.webarena.conftest import Agent, MakeAgent, Reply, Site, html

pytestmark = pytest.mark.slow
BUTTON = '<button onclick="{}">Go</button>'


async def crash(agent: Agent) -> None:
    command = asyncio.ensure_future(agent.session.tab.send("Page.crash"))  # never answered
    await asyncio.wait({agent.session._broken}, timeout=10)
    command.cancel()


def break_by(script: str) -> Callable[[Agent], None]:
    def go(agent: Agent) -> None:
        agent.show(BUTTON.format(script))
        agent.click("button", "Go")
        agent.act(Wait())

    return go


WAYS: dict[str, Callable[[Agent], None]] = {
    "crash": lambda agent: (agent.run(crash(agent)), agent.act(Wait()), None)[-1],
    "loop": break_by("for (;;);"),
    "loop later": break_by("setTimeout(() => { for (;;); }, 0)"),
    "dialogs": break_by("for (;;) alert('Again')"),
    "memory": break_by("const all = []; for (;;) all.push(new Array(1e6).fill(all.length))"),
    "deep": break_by(
        "let e = document.body; for (let i = 0; i < 5e4; i++) e = e.appendChild(document.createElement('b')); for (;;);"
    ),
}


@pytest.mark.rotating(always=2)
@pytest.mark.parametrize("way", WAYS)
def test_a_broken_page_ends_only_its_own_episode(make_agent: MakeAgent, way: str) -> None:
    neighbour, agent = make_agent(), make_agent(call_seconds=20 if way == "memory" else 1.5)
    neighbour.show("<button>Neighbour</button>", "/neighbour")
    agent.show("<p>Home</p>", "/home")
    with pytest.raises(EnvError, match=r"crash|did not answer|closed"):
        WAYS[way](agent)
    with pytest.raises(EnvError):  # the session stays broken
        agent.act(Wait())
    with pytest.raises(EnvError):
        agent.see()
    agent.close()
    neighbour.click("button", "Neighbour")
    after = make_agent()
    assert after.session._chromium is neighbour.session._chromium
    after.show("<p>After</p>", "/after")
    assert "After" in after.tree


def processes_of(name: str) -> list[psutil.Process]:
    """The descendant processes whose program has this name."""
    return [p for p in psutil.Process().children(recursive=True) if _runs(p, name)]


def _runs(process: psutil.Process, name: str) -> bool:
    try:
        return name in process.name() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it has ended since
        return False


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("name", ["chrom", "node"])
def test_a_killed_process_is_replaced(make_agent: MakeAgent, hosts: HostRules, name: str) -> None:
    agents = [make_agent(), make_agent()]
    for agent in agents:
        agent.show("<button>Go</button>")
    kill(processes_of(name))
    for agent in agents:
        with pytest.raises(EnvError):
            for _ in range(20):
                agent.act(Wait())
        agent.close()
    after = make_agent()
    after.show("<p>After</p>")
    assert "After" in after.tree
    drivers = processes_of("node")
    assert len(drivers) == 1 and all(p in drivers[0].children(recursive=True) for p in processes_of("chrom"))


def test_a_browser_crash_between_calls_is_repaired(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.show("<p>Home</p>")
    kill(processes_of("chrom"))
    until(lambda: agent.session._broken.done())
    after = make_agent()
    after.show("<p>After</p>")
    assert "After" in after.tree


def test_a_site_that_is_down_is_an_env_error(make_agent: MakeAgent, hosts: HostRules) -> None:
    rules = HostRules.of(mapped=dict(hosts.mapped) | {"down.test": f"127.0.0.1:{free_port()}"})
    options = BrowserOptions(hosts=rules)
    neighbour, agent = make_agent(browser=options), make_agent(browser=options)
    with pytest.raises(EnvError, match=r"down.test.*did not answer.*REFUSED"):
        agent.goto("http://down.test/")
    neighbour.show("<a href=http://down.test/x>Down</a>")
    with pytest.raises(EnvError, match=r"down.test/x did not answer.*REFUSED"):
        neighbour.click("link", "Down")


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("how", ["goto", "click"])
def test_a_site_that_hangs_is_an_env_error(make_agent: MakeAgent, how: str) -> None:
    agent = make_agent(timeouts=SettleTimeouts(load=0.5), call_seconds=2)
    agent.site.put("/hangs", Reply("", seconds=30))
    agent.show("<a href=/hangs>Go</a>")
    with pytest.raises(EnvError, match="did not answer"):
        agent.goto("/hangs") if how == "goto" else agent.click("link", "Go")


def test_a_malformed_reply_of_a_site_is_an_env_error(make_agent: MakeAgent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        rules = HostRules.of(mapped={"odd.test": f"127.0.0.1:{server.getsockname()[1]}"})
        agent = make_agent(browser=BrowserOptions(hosts=rules))
        going = asyncio.run_coroutine_threadsafe(goto(agent.session, "http://odd.test/"), loop.loop())
        server.settimeout(20)
        visitor, _ = server.accept()
        visitor.recv(1000)
        visitor.close()
        with contextlib.suppress(OSError):
            for _ in range(3):  # Chromium retries
                server.settimeout(1)
                server.accept()[0].close()
        with pytest.raises(EnvError, match=r"odd.test/ did not answer"):
            going.result(30)


def test_http_errors_are_shown_as_pages(make_agent: MakeAgent, site: Site) -> None:
    agent = make_agent()
    for status in (404, 500, 503):
        site.put("/bad", Reply(html(f"<h1>Sorry {status}</h1>"), status))
        agent.goto("/bad")
        assert f"Sorry {status}" in agent.see().tree


def test_a_hanging_page_does_not_block_other_episodes(make_agent: MakeAgent) -> None:
    stuck, agent = make_agent(call_seconds=3), make_agent()
    stuck.show(BUTTON.format("for (;;);"), "/stuck")
    agent.show("<button onclick=\"this.textContent = 'Done'\">Go</button>", "/free")
    hangs = asyncio.run_coroutine_threadsafe(execute(stuck.session, Click(stuck.find("button", "Go"))), loop.loop())
    agent.click("button", "Go")
    assert "button 'Done'" in agent.tree and not hangs.done()
    with pytest.raises(EnvError):
        hangs.result(30)


def test_a_stopped_browser_times_out(make_agent: MakeAgent) -> None:
    agent = make_agent(call_seconds=1.5)
    agent.show("<p>Home</p>")
    stopped = processes_of("chrom")
    for process in stopped:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EnvError, match=r"did not answer within 1.5 s"):
            agent.act(Wait())
    finally:
        for process in stopped:
            os.kill(process.pid, signal.SIGCONT)
