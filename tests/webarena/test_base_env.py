"""The base class, tested with a small scenario: clicks raise a counter to a number."""

import asyncio
import contextlib
import copy
import gc
import os
import pickle
import random
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
import psutil
import pytest

from agentgym_envs.core import MAX_ACTION_CHARS, StopReason
from agentgym_envs.errors import EpisodeOver, NoOracle, UsageError
from agentgym_envs.grammar import tools_of
from agentgym_envs.task import Task, TaskTable
from agentgym_envs.vector.runner import EnvRunner
from agentgym_envs.vector.vector_env import TextVectorEnv
from agentgym_envs.webarena import base_env
from agentgym_envs.webarena.actions import FORMS, Click, StopTask, format_command
from agentgym_envs.webarena.base_env import WebEnv
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.execute import goto
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.browser.sites import local_sites
from agentgym_envs.webarena.browser.tab import SettleTimeouts
from agentgym_envs.webarena.browser.view import elements
from agentgym_envs.webarena.evaluators.base import Verdict
from tests.waiting import until
from tests.webarena.conftest import Site, html

PAGE = html(
    """<p id=out>0</p><button onclick="out.textContent = +out.textContent + 1">More</button>
    <button onclick="for (;;);">Hang</button><a href=http://evil.test/>Out</a><a href=/other>Other</a>
    <a href=/ target=_blank>Window</a><input aria-label=Field>""",
    title="Counter",
)
TASKS = [Task(f"counter/{n}", "train", "counter", f"Bring it to {n} and stop", {"goal": n}) for n in (1, 2, 3)]


class CounterEnv(WebEnv):
    tasks = TaskTable("counter", 1, TASKS)

    def _browser_options(self) -> BrowserOptions:
        return BrowserOptions(hosts=HostRules.of(mapped={"count.test": local_sites().address}))

    def _session_options(self, task: Task) -> SessionOptions:
        """Wait longer for pages to settle, since the test machine may be busy."""
        return replace(super()._session_options(task), timeouts=SettleTimeouts(busy=15.0))

    async def _open(self, session: BrowserSession, task: Task, rng: np.random.Generator) -> str:
        await goto(session, "http://count.test/")
        session.state["goal"] = task.data["goal"]
        return f"{task.goal} ({rng.integers(1000)})"

    async def _judge(self, session: BrowserSession, task: Task, answer: str) -> Verdict:
        right = await session.evaluate("out.textContent") == str(task.data["goal"])
        return Verdict(float(right), "" if right else "the number is another")

    async def _after_action(self, session: BrowserSession, task: Task) -> Verdict | None:
        return Verdict(0.0, "too much") if session.view.title == "Counter" and await self._count(session) > 3 else None

    async def _oracle_command(self, session: BrowserSession, task: Task) -> str:
        if session.view.title != "Counter":
            raise NoOracle("not on the counter")
        done = await self._count(session) == session.state["goal"]
        return format_command(StopTask()) if done else format_command(Click(find(session.view.tree, "More")))

    async def _count(self, session: BrowserSession) -> int:
        return int(await session.evaluate("window.out ? +out.textContent : 0"))


def find(tree: str, name: str) -> int:
    found = next(element.id for element in elements(tree) if element.name == name)
    assert found is not None
    return found


@pytest.fixture(autouse=True, scope="module")
def counter() -> Iterator[None]:
    site = Site()
    local_sites().mount("count.test", site)
    site.put("/", PAGE)
    site.put("/other", html("", title="Other"))
    yield


@pytest.fixture
def env() -> Iterator[CounterEnv]:
    made = CounterEnv(call_seconds=5)
    yield made
    made.close()


def click(env: CounterEnv, name: str) -> str:
    return format_command(Click(find(env.session.view.tree, name)))


def start(env: CounterEnv, goal: int = 2, seed: int = 0) -> tuple[str, dict[str, Any]]:
    return env.reset(seed=seed, options={"task": f"counter/{goal}"})


@pytest.mark.slow
def test_a_typed_action_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse_again(*_: object) -> NoReturn:
        raise AssertionError("the action was parsed from its command text")

    monkeypatch.setattr(base_env, "parse_command", parse_again)
    env = CounterEnv(grammar="browsergym", call_seconds=5)
    start(env, goal=1)
    element = find(env.session.view.tree, "More")
    observation, *_, info = env.step(f"click('{element}')")
    assert f"PREVIOUS ACTION: click [{element}]" in observation and info["invalid_action"] is None
    *_, info = env.step("send_msg_to_user('')")
    assert info["success"] is True
    env.close()


def test_typed_actions_must_be_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CounterEnv, "forms", {"click": FORMS["click"]})
    env = CounterEnv(grammar="tool_call", call_seconds=5)
    start(env)
    call = '<tool_call>{"name": "go_back", "arguments": {}}</tool_call>'
    assert env.step(call)[0] == "go_back cannot be done here. The actions are: click."
    too_long = env.step(call + " " * MAX_ACTION_CHARS)[0]
    assert too_long == f"The action is too long (at most {MAX_ACTION_CHARS} characters)."
    env.close()


def test_native_tools_are_the_actions_of_the_environment() -> None:
    env = CounterEnv(grammar="tools", call_seconds=5)
    assert "ive up" not in env.instructions and env.instructions.endswith("Answer with one call of a tool.")
    assert [tool["function"]["name"] for tool in tools_of(env.grammar)] == list(env.forms)
    start(env)
    assert env.step('{"name": "go_back", "parameters": {}}')[0].endswith("There is no page to go back to.")
    assert "Answer with one call of a tool (click, " in env.step("go back")[0]
    env.close()


@pytest.mark.slow
def test_the_observation_shows_the_page_and_the_objective(env: CounterEnv) -> None:
    observation, info = start(env)
    first, *tree, url, objective, previous = observation.splitlines()
    assert first == "OBSERVATION:" and tree[0] == "Tab 0 (current): Counter" and tree[2].startswith("[1] RootWebArea")
    assert url == "URL: http://count.test/" and previous == "PREVIOUS ACTION: None"
    assert objective == f"OBJECTIVE: {info['objective']}" and "Bring it to 2" in objective
    assert (info["url"], info["tab"], info["tabs"], info["settled"], info["page_truncated"]) == (
        "http://count.test/",
        0,
        1,
        True,
        False,
    )
    more = click(env, "More")
    observation, reward, terminated, truncated, info = env.step(more)
    assert "StaticText '1'" in observation and f"PREVIOUS ACTION: {more}" in observation and "NOTE" not in observation
    assert (reward, terminated, truncated, info["invalid_action"]) == (0.0, False, False, None)
    observation, *_, info = env.step("click [999]")
    assert "no element [999]" in observation and info["invalid_action"] == observation
    observation, *_ = env.step(click(env, "Out"))
    assert (
        "NOTE: That led to 'http://evil.test/'" in observation and "StaticText '1'" not in observation
    )  # the page was loaded again
    env.step(more)
    env.step(more)
    _, reward, terminated, _, info = env.step("stop []")
    assert (reward, terminated, info["success"], info["stop_reason"]) == (1.0, True, True, "success")


@pytest.mark.slow
def test_the_observation_lists_tabs(env: CounterEnv) -> None:
    start(env)
    observation, *_, info = env.step(click(env, "Window"))
    assert observation.splitlines()[1] == "Tab 0: Counter | Tab 1 (current): Counter" and (
        info["tab"],
        info["tabs"],
    ) == (1, 2)


@pytest.mark.slow
def test_episodes_end_with_score_and_reason(env: CounterEnv) -> None:
    start(env)
    *_, info = env.step("stop [2]")
    assert (info["score"], info["stop_reason"], info["reason"]) == (0.0, "failure", "the number is another")
    start(env)
    for _ in range(3):
        env.step(click(env, "More"))
    _, reward, terminated, _, info = env.step(click(env, "More"))
    assert (reward, terminated, info["reason"]) == (0.0, True, "too much")


@pytest.mark.slow
def test_equal_states_have_equal_keys(env: CounterEnv) -> None:
    other = CounterEnv()
    keys = []
    for one in (env, other):
        _, info = start(one)
        keys.append(
            [info["state_key"], one.step(click(one, "More"))[4]["state_key"], one.step("stop []")[4]["state_key"]]
        )
    other.close()
    assert keys[0] == keys[1] and len(set(keys[0])) == 3


@pytest.mark.slow
def test_a_page_that_hangs_is_an_env_error(env: CounterEnv) -> None:
    other = CounterEnv()
    start(other)
    env.call_seconds = 1.0
    start(env)
    _, reward, terminated, truncated, info = env.step(click(env, "Hang"))
    assert (reward, terminated, truncated, info["stop_reason"]) == (0.0, False, True, StopReason.ENV_ERROR)
    assert "did not answer within 1 s" in info["error"]
    assert "StaticText '1'" in other.step(click(other, "More"))[0]
    start(env)
    assert "StaticText '1'" in env.step(click(env, "More"))[0]
    other.close()


@pytest.mark.slow
def test_failures_leave_no_page_open(env: CounterEnv) -> None:
    start(env)
    context = env.session.context
    assert context.browser is not None
    browser = context.browser
    assert env.step(click(env, "Hang"))[-1]["stop_reason"] == "env_error"
    until(lambda: context not in browser.contexts)
    with pytest.raises(UsageError):
        _ = env.session


@pytest.mark.slow
def test_cancelled_resets_leave_no_page_open() -> None:
    env = CounterEnv()
    start(env)
    browser = env.session.context.browser
    assert browser is not None

    async def give_up(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await env.areset(seed=0, options={"task": "counter/1"})

    for number in range(12):
        asyncio.run(give_up(0.01 * number))
    env.close()
    until(lambda: not browser.contexts)


@pytest.mark.slow
def test_a_cancelled_step_ends_the_episode(env: CounterEnv) -> None:
    start(env)

    async def give_up() -> None:
        async with asyncio.timeout(0.3):
            await env.astep(click(env, "Hang"))

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    until(lambda: env.status()["stop_reason"] == "closed")
    with pytest.raises(EpisodeOver):
        env.step("wait")
    assert start(env)[1]["stop_reason"] is None


@pytest.mark.slow
def test_pickling_works_with_the_cdp_backend() -> None:
    env = CounterEnv(obs_backend="cdp")
    start(env)
    other = pickle.loads(pickle.dumps(env))
    try:
        assert other.step(click(other, "More"))[0] == env.step(click(env, "More"))[0]
    finally:
        env.close()
        other.close()


@pytest.mark.slow
def test_the_oracle_plays_ahead(env: CounterEnv) -> None:
    start(env, goal=3)
    env.step(click(env, "More"))
    plan = list(env.oracle())
    assert len(plan) == 3 and plan[-1] == "stop []" and "StaticText '1'" in env.session.view.tree
    for command in plan:
        *_, info = env.step(command)
    assert info["success"]
    start(env)
    env.step(click(env, "Other"))
    with pytest.raises(NoOracle, match="not on the counter"):
        env.oracle()


@pytest.mark.slow
def test_snapshots_and_pickles_restore_the_session(env: CounterEnv) -> None:
    _, before = start(env, goal=2, seed=5)
    env.step("click [999]")
    observation, *_ = env.step(click(env, "More"))
    snapshot = env.snapshot()
    other = CounterEnv()
    assert other.restore(snapshot) == observation and other.status() == env.status()
    for restored in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env), other):
        assert restored.session is not env.session
        restored.step(click(restored, "More"))
        *_, end = restored.step("stop []")
        assert end["success"] and end["objective"] == before["objective"]
        restored.close()
    assert "StaticText '1'" in env.session.view.tree
    env.step("stop []")
    ended = pickle.loads(pickle.dumps(env))
    assert ended.status() == env.status() and not ended._open_sessions


@pytest.mark.slow
def test_async_steps_do_not_block_another_event_loop(env: CounterEnv) -> None:
    async def play() -> tuple[int, bool]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        await env.areset(seed=0, options={"task": "counter/1"})
        await env.astep(click(env, "More"))
        *_, info = await env.astep("stop []")
        ticking.cancel()
        return ticks, info["success"]

    ticks, success = asyncio.run(play())
    assert success and ticks > 10


@pytest.mark.slow
def test_a_vector_environment_steps_every_page(env: CounterEnv) -> None:
    envs = TextVectorEnv([EnvRunner(CounterEnv) for _ in range(4)])
    assert not any(slot.runner.inline for slot in envs._slots) and envs._slots[0].runner._mode == "async"
    try:
        _, infos = envs.reset(seed=0)
        goals = [int(task.rpartition("/")[2]) for task in infos["task_id"]]
        start(env)
        more = click(env, "More")
        done = np.zeros(4, bool)
        for turn in range(4):
            actions = [more if turn < goal else "stop []" for goal in goals]
            _, rewards, terminated, _, infos = envs.step(actions)
            done |= (rewards == 1.0) & terminated
            if done.all():
                break
            goals = [99 if ended else goal for goal, ended in zip(goals, done, strict=True)]
        assert done.all()
    finally:
        envs.close()


@pytest.mark.slow
def test_garbage_collected_environments_leave_no_page() -> None:
    env = CounterEnv()
    start(env)
    session, reference = env.session, weakref.ref(env)
    del env
    gc.collect()
    assert reference() is None
    until(lambda: session._closed)


@pytest.mark.slow
def test_reset_and_close_free_the_last_page(env: CounterEnv) -> None:
    start(env)
    first = env.session
    start(env)
    second = env.session
    env.close()
    until(lambda: first._closed and second._closed)
    with pytest.raises(UsageError, match="no page"):
        _ = env.session


@pytest.mark.slow
def test_threads_can_reset_concurrently() -> None:
    envs = [CounterEnv() for _ in range(4)]
    observation: list[str] = []
    threads = [threading.Thread(target=lambda e=e: observation.append(start(e)[0])) for e in envs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(observation)) == 1 and len(observation) == 4
    for env in envs:
        env.close()


@pytest.mark.slow
def test_ctrl_c_interrupts_a_hanging_step(env: CounterEnv) -> None:
    start(env)
    hang = click(env, "Hang")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            env.step(hang)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 12  # a page has 15 s to load
    start(env)
    assert "StaticText '1'" in env.step(click(env, "More"))[0]


@pytest.mark.slow
def test_screenshots_are_png_and_random_commands_vary(env: CounterEnv) -> None:
    with pytest.raises(UsageError, match="before the first reset"):
        env.screenshot()
    start(env)
    assert env.screenshot().startswith(b"\x89PNG")
    rng = random.Random(0)
    commands = {env.random_command(rng).partition(" ")[0] for _ in range(60)}
    assert commands >= {"click", "type", "scroll"}


@pytest.mark.parametrize(
    "options", [{"max_chars": 0}, {"max_chars": True}, {"obs_backend": "x"}, {"call_seconds": 0}, {"call_seconds": "1"}]
)
def test_invalid_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        CounterEnv(**options)


def test_no_browser_starts_before_the_first_reset() -> None:
    env = CounterEnv(chromium="/none")
    assert isinstance(env, gym.Env) and not env._open_sessions
    env.close()


@pytest.mark.slow
def test_a_missing_chromium_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHROMIUM_PATH", str(tmp_path / "none"))
    monkeypatch.setattr(
        CounterEnv,
        "_browser_options",
        lambda self: BrowserOptions(hosts=HostRules.of(mapped={"x.test": "127.0.0.1:1"})),
    )
    env = CounterEnv()
    with pytest.raises(UsageError, match="CHROMIUM_PATH names"):
        env.reset(seed=0)
    with pytest.raises(UsageError, match="CHROMIUM_PATH names"):
        env.prepare()
    env.close()


def browser_processes() -> set[int]:
    """The ids of this process's browsers, without the processes of their pages."""
    return {child.pid for child in psutil.Process().children(recursive=True) if is_browser(child)}


def is_browser(child: psutil.Process) -> bool:
    try:
        return "chrom" in child.name() and "--type=" not in " ".join(child.cmdline())
    except psutil.Error:  # it has just ended
        return False


@pytest.mark.slow
def test_prepare_starts_the_browser(env: CounterEnv) -> None:
    env.prepare()
    prepared = browser_processes()
    start(env)
    assert prepared and browser_processes() == prepared and loop.loop().is_running()
