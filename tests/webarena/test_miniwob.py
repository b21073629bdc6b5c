import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from agentgym_envs.errors import NoOracle
from agentgym_envs.grammar import tools_of
from agentgym_envs.task import Task
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.session import SessionOptions
from agentgym_envs.webarena.browser.tab import SettleTimeouts
from agentgym_envs.webarena.browser.view import elements
from agentgym_envs.webarena.miniwob.env import MiniWoBEnv
from agentgym_envs.webarena.miniwob.oracle.solvers import PEEKS
from agentgym_envs.webarena.miniwob.pages import PAGES
from tests.plugins.rotation import part

CARDS = "[...document.querySelectorAll('.card-value')].map(card => Number(card.textContent))"
DISPLAYS = ("reward", "Last 10 average", "Time left", "Episodes done", "START")
"""Texts of MiniWoB's own displays around a task."""


class PatientEnv(MiniWoBEnv):
    """Waits longer until a page has settled: on a busy machine the effect of a click may take a second."""

    def _session_options(self, task: Task) -> SessionOptions:
        return replace(super()._session_options(task), timeouts=SettleTimeouts(busy=15.0))


@pytest.fixture(scope="module")
def env() -> Iterator[MiniWoBEnv]:
    with closing(PatientEnv(split=None, max_chars=60_000)) as made:
        yield made


def begin(env: MiniWoBEnv, page: str, seed: int = 1) -> tuple[str, dict[str, Any]]:
    observation, info = env.reset(options={"task": f"miniwob/{page}/{seed}"})
    assert info["stop_reason"] is None, info
    return observation, info


def find(env: MiniWoBEnv, role: str, name: str = "") -> int:
    """Return the id of the first element with this role whose name begins with `name`."""
    seen = elements(env.session.view.tree)
    return next(e.id for e in seen if e.role == role and e.name.startswith(name) and e.id is not None)


def js(env: MiniWoBEnv, expression: str) -> Any:
    return loop.run(env.session.evaluate(expression), 30)


def solve(env: MiniWoBEnv, page: str, seed: int) -> dict[str, Any]:
    """Play the oracle's plan and return the last info."""
    _, info = begin(env, page, seed)
    for command in env.oracle():
        *_, info = env.step(command)
        assert info["invalid_action"] is None, (page, seed, command, info)
    return info


async def play(env: MiniWoBEnv, pages: Iterator[tuple[str, int]]) -> list[str]:
    """Play the remaining pages and return the failures."""
    return [f"{page}/{seed}: {error}" for page, seed in pages if (error := await failure(env, page, seed))]


async def failure(env: MiniWoBEnv, page: str, seed: int) -> str | None:
    observation, info = await env.areset(options={"task": f"miniwob/{page}/{seed}"})
    if len([element for element in elements(env.session.view.tree) if element.id is not None]) < 2:
        return f"there is nothing to act on: {observation}"
    async for command in commands(env, page):
        observation, _, terminated, _, info = await env.astep(command)
        if info["invalid_action"] or any(words in observation for words in DISPLAYS):
            return f"{command}: {observation}"
        if terminated:
            break
    return None if info["success"] else f"{info}"


async def commands(env: MiniWoBEnv, page: str) -> AsyncIterator[str]:
    """Ask the oracle before each action, or for a whole plan if it peeks at the page."""
    if page in PEEKS:
        for command in await loop.run_async(env._play_ahead()):
            yield command
    assert env.task is not None
    while page not in PEEKS:
        yield await loop.run_async(env._oracle_command(env.session, env.task))


def test_an_oracle_solves_a_page(env: MiniWoBEnv) -> None:
    info = solve(env, "choose-list", 1)
    assert (info["score"], info["raw_reward"], info["stop_reason"], info["reason"]) == (1.0, 1.0, "success", "")


@pytest.mark.slow
def test_every_oracle_solves_its_page() -> None:
    """Pages have seeds of all three splits. Four agents play at once; each run covers some of the pages."""
    every = [(page, (0, 10_000, 20_000)[index % 3] + index) for index, page in enumerate(PAGES)]
    pages = iter(part(every, "pages of MiniWoB"))
    envs = [PatientEnv(max_chars=60_000) for _ in range(4)]

    async def play_all() -> list[list[str]]:
        return await asyncio.gather(*(play(env, pages) for env in envs))

    failures = [line for lines in asyncio.run(play_all()) for line in lines]
    for env in envs:
        env.close()
    assert not failures, "\n".join(failures)


def test_the_objective_is_the_text_of_the_page(env: MiniWoBEnv) -> None:
    observation, info = begin(env, "click-button-sequence")
    assert info["objective"] == "Click button ONE, then click button TWO."
    assert f"OBJECTIVE: {info['objective']}\n" in observation and "[2] button 'ONE'" in observation
    assert info["raw_reward"] is None and info["url"] == "http://miniwob.test/miniwob/click-button-sequence.html"


@pytest.mark.slow
def test_images_are_described_in_words(env: MiniWoBEnv) -> None:
    """Also in the objective: the page itself only says "the item with the icon"."""
    goals = (begin(env, "click-menu-2", seed)[1]["objective"] for seed in range(20))
    assert next(goal for goal in goals if "with the" in goal).endswith(" icon.")
    observation, _ = begin(env, "email-inbox-important")
    assert "button 'trash'" in observation and "button 'star' pressed: false" in observation


@pytest.mark.slow
def test_the_same_task_gives_the_same_text_and_another_seed_another_text(env: MiniWoBEnv) -> None:
    first, other, again = (begin(env, "order-food", seed) for seed in (7, 8, 7))
    assert first[0] == again[0] != other[0]
    assert first[1]["state_key"] == again[1]["state_key"] != other[1]["state_key"]


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize("page", ["terminal", "choose-date", "click-pie", "login-user-popup"])
def test_the_same_actions_give_the_same_text(env: MiniWoBEnv, page: str) -> None:
    """On pages that depend on time: a blinking cursor, calendars that open today, delays, animations."""
    played: list[list[str]] = []
    for _ in range(2):
        played.append([begin(env, page, 11)[0]])
        while env.status()["stop_reason"] is None:
            command = loop.run(env._oracle_command(env.session, env.tasks.get(f"miniwob/{page}/11")), 30)
            played[-1] += [command, env.step(command)[0]]
    assert played[0] == played[1] and len(played[0]) > 3


def test_the_instructions_list_only_available_commands() -> None:
    for grammar in MiniWoBEnv.grammars:
        with closing(MiniWoBEnv(grammar=grammar)) as env:
            shown = env.instructions + json.dumps(tools_of(env.grammar))  # native tools are not in the instructions
            assert "give up: the task counts as failed." in shown.lower() and "N/A" not in shown
            assert not any(absent in shown for absent in ("goto", "go_back", "tab_focus", "close"))


@pytest.mark.slow
def test_a_text_to_copy_keeps_its_spaces_in_the_observation(env: MiniWoBEnv) -> None:
    observation, _ = begin(env, "copy-paste", 1)
    text = js(env, "document.querySelector('#area textarea').value")
    assert text.endswith(" ") and f"textbox '' value: '{text}'" in observation
    env.step(f"type [{find(env, 'textbox', '') + 1}] [{text}] [0]")
    *_, info = env.step(f"click [{find(env, 'button')}]")
    assert info["success"]


@pytest.mark.slow
def test_positions_and_images_appear_in_the_observation(env: MiniWoBEnv) -> None:
    observation, _ = begin(env, "tic-tac-toe")
    assert "button 'row 1 column 1: empty'" in observation and "button 'row 3 column 2: empty'" in observation
    observation, *_ = env.step(f"click [{find(env, 'button', 'row 2 column 3')}]")
    assert "button 'row 2 column 3: X'" in observation and observation.count(": O'") == 1
    observation, _ = begin(env, "click-dialog")
    assert "button 'x'" in observation and "Close'" not in observation


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize("page", ["click-menu-2", "use-autocomplete"])
def test_the_container_of_menu_items_is_not_clickable(env: MiniWoBEnv, page: str) -> None:
    begin(env, page)
    env.step(next(env.oracle()))
    items = [e for e in elements(env.session.view.tree) if e.role == "menuitem"]
    assert items and not any("clickable" in e.properties for e in elements(env.session.view.tree))


def test_a_wrong_click_scores_zero(env: MiniWoBEnv) -> None:
    begin(env, "click-test-2")
    _, reward, terminated, _, info = env.step(f"click [{find(env, 'button', 'TWO')}]")
    assert (reward, terminated, info["score"], info["raw_reward"]) == (0.0, True, 0.0, -1.0)
    assert (info["stop_reason"], info["reason"]) == ("failure", "MiniWoB's reward is -1")


def test_stop_fails_the_task(env: MiniWoBEnv) -> None:
    begin(env, "click-test")
    _, reward, terminated, _, info = env.step("stop [done]")
    assert (reward, terminated, info["stop_reason"], info["raw_reward"]) == (0.0, True, "failure", None)


@pytest.mark.slow
def test_some_pages_give_partial_rewards(env: MiniWoBEnv) -> None:
    begin(env, "find-greatest")
    right = max((value, index) for index, value in enumerate(js(env, CARDS)))[1]
    cards = [e.id for e in elements(env.session.view.tree) if e.name == "hidden card"]
    env.step(f"click [{cards[right - 1]}]")
    _, reward, terminated, _, info = env.step(f"click [{find(env, 'button', 'Submit')}]")
    assert (reward, terminated, info["success"], info["raw_reward"]) == (0.1, True, False, 0.1)


@pytest.mark.parametrize(
    "command",
    [
        "goto [http://miniwob.test/miniwob/click-test.html]",
        "go_back",
        "go_forward",
        "new_tab",
        "tab_focus [0]",
        "close_tab",
    ],
)
def test_commands_for_other_pages_and_tabs_are_invalid(env: MiniWoBEnv, command: str) -> None:
    if env.task is None or env.status()["stop_reason"] is not None:
        begin(env, "focus-text")
    *_, info = env.step(command)
    assert "cannot be done here. The actions are: click, type" in info["invalid_action"]
    assert js(env, "'agentgymSeed' in core")


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["page", "site"])
def test_typed_text_runs_no_script(env: MiniWoBEnv, layer: str) -> None:
    begin(env, "terminal", 5)
    if layer == "site":  # an unsafe page, without the fix for the terminal
        js(env, "generateTerminalLine = text => $('#terminal-contents, body').first().prepend(`<b>${text}</b>`)")
    attack = "<img src=x onerror='core.endEpisode(1)'>"
    *_, info = env.step(f"type [{find(env, 'textbox')}] [{attack}]")
    assert info["score"] == 0.0 and info["stop_reason"] is None


@pytest.mark.slow
def test_keys_do_not_reload_the_page(env: MiniWoBEnv) -> None:
    begin(env, "enter-text")
    for keys in ("F5", "Control+r", "Control+Shift+r", "Alt+ArrowLeft", "Alt+Home", "Escape"):
        *_, info = env.step(f"press [{keys}]")
        assert info["stop_reason"] is None and js(env, "'agentgymSeed' in core"), keys


def test_the_cover_of_a_finished_task_does_nothing(env: MiniWoBEnv) -> None:
    begin(env, "click-test")
    observation, *_ = env.step(f"click [{find(env, 'button')}]")
    assert js(env, "getComputedStyle(core.cover_div).display") == "block"
    assert js(env, "document.getElementById('reward-last').textContent") == "1.00"
    assert not any(words in observation for words in DISPLAYS)
    js(env, "core.cover_div.click()")
    assert js(env, "[WOB_DONE_GLOBAL, WOB_EPISODE_ID]") == [True, 1]


@pytest.mark.slow
def test_leaving_the_page_fails_the_task(env: MiniWoBEnv) -> None:
    begin(env, "click-test")
    js(env, "location.reload()")
    _, reward, terminated, _, info = env.step("wait")
    assert (reward, terminated, info["reason"]) == (0.0, True, "the page of the task was left")


@pytest.mark.slow
def test_time_neither_ends_an_episode_nor_reduces_its_reward(env: MiniWoBEnv) -> None:
    begin(env, "click-button")
    assert js(env, "core.EPISODE_MAX_TIME") > 20 * 86_400_000
    assert js(env, "new Date().getFullYear()") == 2020
    js(env, "core.ept0 -= 10 * core.EPISODE_MAX_TIME")
    for command in env.oracle():
        *_, info = env.step(command)
    assert info["score"] == info["raw_reward"] == 1.0 and js(env, "WOB_REWARD_GLOBAL") == 0.0


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "seed", "role", "name"),
    [
        ("email-inbox-reply", 4, "generic", ""),
        ("order-food", 4, "button", "+"),
    ],
)
def test_an_oracle_continues_after_an_agents_mistake(
    env: MiniWoBEnv, page: str, seed: int, role: str, name: str
) -> None:
    """The agent clicked the first element of its kind, which was wrong."""
    begin(env, page, seed)
    env.step(f"click [{find(env, role, name)}]")
    assert [env.step(command)[4]["success"] for command in env.oracle()][-1]


@pytest.mark.slow
def test_an_oracle_raises_if_the_task_can_no_longer_be_solved(env: MiniWoBEnv) -> None:
    begin(env, "click-button-sequence")
    env.step(f"click [{find(env, 'button', 'TWO')}]")
    with pytest.raises(NoOracle, match="TWO was clicked first"):
        env.oracle()


@pytest.mark.slow
def test_a_lost_game_has_no_oracle(env: MiniWoBEnv) -> None:
    begin(env, "tic-tac-toe", 2)
    js(env, "gameState.fill(-1)")
    with pytest.raises(NoOracle):
        loop.run(env._oracle_command(env.session, env.tasks.get("miniwob/tic-tac-toe/2")), 30)


@pytest.mark.rotating
@pytest.mark.slow
def test_a_random_agent_solves_little_and_breaks_nothing(env: MiniWoBEnv) -> None:
    rng, scores = random.Random(0), []
    for task in env.tasks.sample(6, split="train"):
        env.reset(options={"task": task.id})
        for _ in range(6):
            *_, terminated, truncated, info = env.step(env.random_command(rng))
            assert info["stop_reason"] != "env_error" and "done here" not in str(info["invalid_action"]), info
            if terminated or truncated:
                break
        scores.append(info["score"])
    assert 0.0 <= sum(scores) / len(scores) < 0.6


@pytest.mark.slow
def test_submitting_at_once_scores_zero(env: MiniWoBEnv) -> None:
    """Except on pages where doing nothing may be right, or with partial rewards."""
    for page in ("click-option", "use-slider-2", "order-food", "copy-paste"):
        begin(env, page, 5)
        *_, terminated, _, info = env.step(
            f"click [{find(env, 'button', 'Order' if page == 'order-food' else 'Submit')}]"
        )
        assert (terminated, info["score"]) == (True, 0.0), page
