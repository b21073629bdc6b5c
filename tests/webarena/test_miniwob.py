import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from agentgym_envs.errors import NoOracle
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
TOLD = ("reward", "Last 10 average", "Time left", "Episodes done", "START")
"""What MiniWoB writes beside a task."""


class PatientEnv(MiniWoBEnv):
    """Waits longer until a page is at rest: on a busy machine a click may take a second to show."""

    def _session_options(self, task: Task) -> SessionOptions:
        return replace(super()._session_options(task), timeouts=SettleTimeouts(most=15.0))


@pytest.fixture(scope="module")
def env() -> Iterator[MiniWoBEnv]:
    with closing(PatientEnv(split=None, max_chars=60_000)) as made:
        yield made


def begin(env: MiniWoBEnv, page: str, seed: int = 1) -> tuple[str, dict[str, Any]]:
    observation, info = env.reset(options={"task": f"miniwob/{page}/{seed}"})
    assert info["stop_reason"] is None, info
    return observation, info


def find(env: MiniWoBEnv, role: str, name: str = "") -> int:
    """The id of the first element of that role whose name begins so."""
    seen = elements(env.session.view.tree)
    return next(e.id for e in seen if e.role == role and e.name.startswith(name) and e.id is not None)


def js(env: MiniWoBEnv, expression: str) -> Any:
    return loop.run(env.session.evaluate(expression), 30)


def solve(env: MiniWoBEnv, page: str, seed: int) -> dict[str, Any]:
    """The last info of an episode that follows the oracle's plan."""
    _, info = begin(env, page, seed)
    for command in env.oracle():
        *_, info = env.step(command)
        assert info["invalid_action"] is None, (page, seed, command, info)
    return info


async def play(env: MiniWoBEnv, pages: Iterator[tuple[str, int]]) -> list[str]:
    """What went wrong on the pages that are left."""
    return [f"{page}/{seed}: {wrong}" for page, seed in pages if (wrong := await trouble(env, page, seed))]


async def trouble(env: MiniWoBEnv, page: str, seed: int) -> str | None:
    observation, info = await env.areset(options={"task": f"miniwob/{page}/{seed}"})
    if len([element for element in elements(env.session.view.tree) if element.id is not None]) < 2:
        return f"there is nothing to act on: {observation}"
    async for command in commands(env, page):
        observation, _, terminated, _, info = await env.astep(command)
        if info["invalid_action"] or any(words in observation for words in TOLD):
            return f"{command}: {observation}"
        if terminated:
            break
    return None if info["success"] else f"{info}"


async def commands(env: MiniWoBEnv, page: str) -> AsyncIterator[str]:
    """The oracle is asked before each action, as an agent is; where it peeks at the page, only for a plan."""
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
def test_the_oracle_of_every_page_solves_it() -> None:
    """The seeds differ from page to page, in all three splits; four agents play at once, each run some of the pages."""
    every = [(page, (0, 10_000, 20_000)[place % 3] + place) for place, page in enumerate(PAGES)]
    pages = iter(part(every, "pages of MiniWoB"))
    envs = [PatientEnv(max_chars=60_000) for _ in range(4)]

    async def all_of_them() -> list[list[str]]:
        return await asyncio.gather(*(play(env, pages) for env in envs))

    wrong = [line for lines in asyncio.run(all_of_them()) for line in lines]
    for env in envs:
        env.close()
    assert not wrong, "\n".join(wrong)


def test_the_objective_is_what_the_page_asks_for(env: MiniWoBEnv) -> None:
    observation, info = begin(env, "click-button-sequence")
    assert info["objective"] == "Click button ONE, then click button TWO."
    assert f"OBJECTIVE: {info['objective']}\n" in observation and "[2] button 'ONE'" in observation
    assert info["raw_reward"] is None and info["url"] == "http://miniwob.test/miniwob/click-button-sequence.html"


@pytest.mark.slow
def test_pictures_are_told_in_words(env: MiniWoBEnv) -> None:
    """Also where the page asks for one: there it says nothing but "the item with the icon"."""
    goals = (begin(env, "click-menu-2", seed)[1]["objective"] for seed in range(20))
    assert next(goal for goal in goals if "with the" in goal).endswith(" icon.")
    observation, _ = begin(env, "email-inbox-important")
    assert "button 'trash'" in observation and "button 'star' pressed: false" in observation


@pytest.mark.slow
def test_the_same_task_is_the_same_text_and_another_seed_another(env: MiniWoBEnv) -> None:
    first, other, again = (begin(env, "order-food", seed) for seed in (7, 8, 7))
    assert first[0] == again[0] != other[0]
    assert first[1]["state_key"] == again[1]["state_key"] != other[1]["state_key"]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["terminal", "choose-date", "click-pie", "login-user-popup"])
def test_the_same_actions_lead_to_the_same_text(env: MiniWoBEnv, page: str) -> None:
    """On pages that know of time: a blinking cursor, calendars that open today, delays, animations."""
    played: list[list[str]] = []
    for _ in range(2):
        played.append([begin(env, page, 11)[0]])
        while env.status()["stop_reason"] is None:
            command = loop.run(env._oracle_command(env.session, env.tasks.get(f"miniwob/{page}/11")), 30)
            played[-1] += [command, env.step(command)[0]]
    assert played[0] == played[1] and len(played[0]) > 3


def test_a_model_is_told_only_of_what_can_be_done() -> None:
    for grammar in MiniWoBEnv.grammars:
        with closing(MiniWoBEnv(grammar=grammar)) as env:
            assert "give up: the task counts as failed." in env.instructions and "N/A" not in env.instructions
            assert not any(absent in env.instructions for absent in ("goto", "go_back", "tab_focus", "close"))


@pytest.mark.slow
def test_what_is_to_be_copied_is_told_with_the_spaces_around_it(env: MiniWoBEnv) -> None:
    observation, _ = begin(env, "copy-paste", 1)
    text = js(env, "document.querySelector('#area textarea').value")
    assert text.endswith(" ") and f"textbox '' value: '{text}'" in observation
    env.step(f"type [{find(env, 'textbox', '') + 1}] [{text}] [0]")
    *_, info = env.step(f"click [{find(env, 'button')}]")
    assert info["success"]


@pytest.mark.slow
def test_what_only_places_and_pictures_show_is_told(env: MiniWoBEnv) -> None:
    observation, _ = begin(env, "tic-tac-toe")
    assert "button 'row 1 column 1: empty'" in observation and "button 'row 3 column 2: empty'" in observation
    observation, *_ = env.step(f"click [{find(env, 'button', 'row 2 column 3')}]")
    assert "button 'row 2 column 3: X'" in observation and observation.count(": O'") == 1
    observation, _ = begin(env, "click-dialog")
    assert "button 'x'" in observation and "Close'" not in observation


@pytest.mark.slow
@pytest.mark.parametrize("page", ["click-menu-2", "use-autocomplete"])
def test_what_holds_the_items_of_a_menu_is_no_target(env: MiniWoBEnv, page: str) -> None:
    begin(env, page)
    env.step(next(env.oracle()))
    items = [e for e in elements(env.session.view.tree) if e.role == "menuitem"]
    assert items and not any("clickable" in e.properties for e in elements(env.session.view.tree))


def test_a_wrong_click_is_worth_nothing(env: MiniWoBEnv) -> None:
    begin(env, "click-test-2")
    _, reward, terminated, _, info = env.step(f"click [{find(env, 'button', 'TWO')}]")
    assert (reward, terminated, info["score"], info["raw_reward"]) == (0.0, True, 0.0, -1.0)
    assert (info["stop_reason"], info["reason"]) == ("failure", "MiniWoB's reward is -1")


def test_to_stop_is_to_give_up(env: MiniWoBEnv) -> None:
    begin(env, "click-test")
    _, reward, terminated, _, info = env.step("stop [done]")
    assert (reward, terminated, info["stop_reason"], info["raw_reward"]) == (0.0, True, "failure", None)


@pytest.mark.slow
def test_parts_are_paid_for(env: MiniWoBEnv) -> None:
    begin(env, "find-greatest")
    right = max((value, place) for place, value in enumerate(js(env, CARDS)))[1]
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
def test_there_is_nowhere_else_to_go(env: MiniWoBEnv, command: str) -> None:
    if env.task is None or env.status()["stop_reason"] is not None:
        begin(env, "focus-text")
    *_, info = env.step(command)
    assert "cannot be done here. The actions are: click, type" in info["invalid_action"]
    assert js(env, "'agentgymSeed' in core")


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["page", "site"])
def test_what_is_typed_runs_no_script(env: MiniWoBEnv, layer: str) -> None:
    begin(env, "terminal", 5)
    if layer == "site":  # as a page would that is less careful than the terminal is made here
        js(env, "generateTerminalLine = text => $('#terminal-contents, body').first().prepend(`<b>${text}</b>`)")
    attack = "<img src=x onerror='core.endEpisode(1)'>"
    *_, info = env.step(f"type [{find(env, 'textbox')}] [{attack}]")
    assert info["score"] == 0.0 and info["stop_reason"] is None


@pytest.mark.slow
def test_keys_do_not_load_the_page_anew(env: MiniWoBEnv) -> None:
    begin(env, "enter-text")
    for keys in ("F5", "Control+r", "Control+Shift+r", "Alt+ArrowLeft", "Alt+Home", "Escape"):
        *_, info = env.step(f"press [{keys}]")
        assert info["stop_reason"] is None and js(env, "'agentgymSeed' in core"), keys


def test_the_cover_of_a_finished_task_does_nothing(env: MiniWoBEnv) -> None:
    begin(env, "click-test")
    observation, *_ = env.step(f"click [{find(env, 'button')}]")
    assert js(env, "getComputedStyle(core.cover_div).display") == "block"
    assert js(env, "document.getElementById('reward-last').textContent") == "1.00"
    assert not any(words in observation for words in TOLD)
    js(env, "core.cover_div.click()")
    assert js(env, "[WOB_DONE_GLOBAL, WOB_EPISODE_ID]") == [True, 1]


@pytest.mark.slow
def test_who_leaves_the_page_has_failed(env: MiniWoBEnv) -> None:
    begin(env, "click-test")
    js(env, "location.reload()")
    _, reward, terminated, _, info = env.step("wait")
    assert (reward, terminated, info["reason"]) == (0.0, True, "the page of the task was left")


@pytest.mark.slow
def test_time_neither_ends_an_episode_nor_costs_anything(env: MiniWoBEnv) -> None:
    begin(env, "click-button")
    assert js(env, "core.EPISODE_MAX_TIME") > 20 * 86_400_000
    assert js(env, "new Date().getFullYear()") == 2020
    js(env, "core.ept0 -= 10 * core.EPISODE_MAX_TIME")
    for command in env.oracle():
        *_, info = env.step(command)
    assert info["score"] == info["raw_reward"] == 1.0 and js(env, "WOB_REWARD_GLOBAL") == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "seed", "role", "name"),
    [
        ("email-inbox-reply", 4, "generic", ""),
        ("order-food", 4, "button", "+"),
    ],
)
def test_an_oracle_goes_on_from_where_an_agent_is(env: MiniWoBEnv, page: str, seed: int, role: str, name: str) -> None:
    """The first of its kind was the wrong one."""
    begin(env, page, seed)
    env.step(f"click [{find(env, role, name)}]")
    assert [env.step(command)[4]["success"] for command in env.oracle()][-1]


@pytest.mark.slow
def test_an_oracle_says_so_where_nothing_helps_any_more(env: MiniWoBEnv) -> None:
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
def test_to_submit_at_once_is_worth_nothing(env: MiniWoBEnv) -> None:
    """But on pages where nothing to do may be right, or that pay for parts."""
    for page in ("click-option", "use-slider-2", "order-food", "copy-paste"):
        begin(env, page, 5)
        *_, terminated, _, info = env.step(
            f"click [{find(env, 'button', 'Order' if page == 'order-food' else 'Submit')}]"
        )
        assert (terminated, info["score"]) == (True, 0.0), page
