"""Browsers start on demand, are shared, replaced and closed, and leave no processes behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions, pool_for
from tests.children import ended
from tests.waiting import until
from tests.webarena.conftest import MakeAgent

pytestmark = pytest.mark.slow
BEGIN = """
import os, signal, sys, threading, time
from tests.webarena.conftest import *
from agentgym_envs.webarena.browser.pool import pool_for, shut_down
site = Site()
site.put("/", html("<p>Home</p>"))
local_sites().mount("a.test", site)
options = BrowserOptions(hosts=HostRules.of(mapped={"a.test": local_sites().address}))

def open_one():
    agent = Agent(SessionOptions(browser=options), site)
    agent.goto("/")
    assert "Home" in agent.see().tree
    return agent

def say(word):
    print(word, flush=True)
"""


@pytest.fixture
def run() -> Iterator[list[subprocess.Popen[str]]]:
    begun: list[subprocess.Popen[str]] = []
    yield begun
    for process in begun:
        process.kill()
        process.communicate()


def begin(program: str, run: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    code = BEGIN + textwrap.dedent(program)
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    # SIGINT may be ignored in this process, and a child would inherit that.
    run.append(
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
        )
    )
    return run[-1]


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


@pytest.mark.rotating(always=2)
@pytest.mark.parametrize("end", ["exit", "SIGKILL", "SIGINT", "SIGTERM", "group SIGINT", "error"])
def test_no_process_is_left_behind(run: list[subprocess.Popen[str]], end: str) -> None:
    ending = {"exit": "sys.exit(0)", "error": "raise RuntimeError"}.get(end, "time.sleep(60)")
    process = begin(
        f"agent = open_one(); say('open'); sys.stdin.readline(); {ending}".replace("sys.stdin.readline();", ""), run
    )
    assert process.stdout is not None
    if "time.sleep" not in ending:
        process.wait(30)
        assert process.stdout.readline() == "open\n"
        left = [p for p in psutil.process_iter() if _session(p) == process.pid]
        until(lambda: ended(left))
        return
    assert process.stdout.readline() == "open\n"
    children = family(process)
    assert any("chrom" in child.name() for child in children)
    if end.startswith("group"):
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(getattr(signal, end))
    process.wait(30)
    until(lambda: ended(children))


def _session(process: psutil.Process) -> int:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return 0


@pytest.mark.rotating
def test_a_fork_has_its_own_browser(run: list[subprocess.Popen[str]]) -> None:
    process = begin(
        """
        agent = open_one()
        child = os.fork()
        if not child:
            local_sites().mount("a.test", site)
            options = BrowserOptions(hosts=HostRules.of(mapped={"a.test": local_sites().address}))
            open_one()
            shut_down()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        agent.goto("/")
        assert "Home" in agent.see().tree
        say("well")
        """,
        run,
    )
    assert process.communicate(timeout=60)[0] == "well\n"


def test_concurrent_threads_share_one_browser(run: list[subprocess.Popen[str]]) -> None:
    process = begin(
        """
        sys.setswitchinterval(1e-6)
        agents, barrier = [], threading.Barrier(6)

        def go():
            barrier.wait()
            agents.append(open_one())

        threads = [threading.Thread(target=go) for _ in range(6)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len({agent.session._chromium for agent in agents}) == 1 and len(agents) == 6
        say("well")
        """,
        run,
    )
    assert process.communicate(timeout=60)[0] == "well\n"


def test_the_browser_survives_ctrl_c(run: list[subprocess.Popen[str]]) -> None:
    """The whole process group receives the signal, as in a terminal."""
    process = begin(
        """
        open_one().close()
        site.put("/slow", Reply("", seconds=30))
        agent = open_one()
        say("open")
        try:
            agent.goto("/slow")
        except KeyboardInterrupt:
            say("interrupted")
        agent.close()
        open_one()
        say("well")
        """,
        run,
    )
    assert process.stdout is not None and process.stdout.readline() == "open\n"
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\nwell\n"


@pytest.mark.rotating
def test_a_browser_is_replaced_after_enough_episodes(make_agent: MakeAgent, hosts: HostRules) -> None:
    options = BrowserOptions(hosts=hosts, recycle_after=2, idle_seconds=99)
    first, second, third = (make_agent(browser=options) for _ in range(3))
    old, new = first.session._chromium, third.session._chromium
    assert second.session._chromium is old and new is not old
    first.close()
    second.show("<p>Goes on</p>")
    assert old.browser.is_connected()
    second.close()
    assert not old.browser.is_connected() and new.browser.is_connected()
    fourth = make_agent(browser=options)
    assert fourth.session._chromium is new
    for agent in (third, fourth):
        agent.close()
    assert not new.browser.is_connected()


@pytest.mark.rotating
def test_an_idle_browser_is_closed(make_agent: MakeAgent, hosts: HostRules) -> None:
    options = BrowserOptions(hosts=hosts, idle_seconds=1.0)
    agent = make_agent(browser=options)
    chromium = agent.session._chromium
    time.sleep(1.2)
    assert chromium.browser.is_connected()  # it has an episode
    agent.close()
    agent = make_agent(browser=options)
    assert agent.session._chromium is chromium
    agent.close()
    until(lambda: not chromium.browser.is_connected())
    again = make_agent(browser=options)
    again.show("<p>Again</p>")
    assert again.session._chromium is not chromium and "Again" in again.tree


def test_a_program_that_is_not_a_browser(make_agent: MakeAgent, tmp_path: Path, hosts: HostRules) -> None:
    script = tmp_path / "chromium"
    script.write_text("#!/bin/sh\necho I am none >&2\nexit 3\n")
    script.chmod(0o755)
    with pytest.raises(EnvError, match="does not start"):
        make_agent(browser=BrowserOptions(str(script), hosts))
    with pytest.raises(UsageError, match="which is no program"):
        make_agent(browser=BrowserOptions(str(tmp_path / "none"), hosts))
    make_agent().show("<p>Others work</p>")


def test_warm_starts_the_browser(hosts: HostRules, make_agent: MakeAgent) -> None:
    options = BrowserOptions(hosts=hosts, idle_seconds=98)

    async def warm() -> object:
        await pool_for(options).warm()
        return pool_for(options)._running

    assert loop.run(warm(), 60) is make_agent(browser=options).session._chromium


def test_contexts_share_nothing(make_agent: MakeAgent) -> None:
    one, two = make_agent(), make_agent()
    one.show("<p>One</p>")
    one.js("document.cookie = 'x=1'; localStorage.setItem('x', '1')")
    two.show("<p>Two</p>")
    assert two.js("document.cookie + localStorage.length") == "0"
    assert one.js("document.cookie + localStorage.length") == "x=11"
