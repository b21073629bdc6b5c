"""The panels in Chromium, with the viewer's scripts and styles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer import panels
from agentgym_envs.viewer.panels import panels_of
from tests.viewer.panel_episodes import LOOK, episode, nothing, pages_episode, play, web_page
from tests.viewer.teams import hostile

pytestmark = pytest.mark.slow  # the fast browser tests are in test_pages.py

STATIC = Path(panels.__file__).parents[1] / "static"
HOSTILE = "<img src=x onerror=\"document.title='bad'\"> \u202egnp.exe \0"
TREE = f"[1] RootWebArea 'Shop'\n\t[2] link '{HOSTILE}'\n\t[3] textbox 'Find' focused: True"
Draw = Callable[..., Any]


@cache
def episodes() -> dict[str, Trajectory]:
    """One for each kind of panel; free text is hostile in part."""
    crafting = f"Crafting commands:\ncraft 1 stick using 2 {HOSTILE}\n\nGoal: craft stick."
    found = f'<information>Doc 1(Title: "A") {HOSTILE}\nDoc 2(Title: "{HOSTILE}") b</information>'
    search = episode(
        "AgentGym/Search-v0", ["Question: who?", found, "wrong"], ["<search>a</search>", "<answer>b</answer>"]
    )
    gold = replace(search.task, data={"passages": ["p1", "p9"], "answers": ["c"]})
    infos: list[dict[str, Any]] = [
        {"query": HOSTILE, "answer": None, "hits": ["p1", "p2"]},
        {"query": None, "answer": HOSTILE, "success": False},
    ]
    turns = tuple(replace(turn, info=info) for turn, info in zip(search.turns, infos, strict=True))
    return {
        "textcraft": episode(
            "AgentGym/TextCraft-v0", [crafting, f"Got 2 {HOSTILE}", "Got 1 log"], ["get 2 x", "get 1 log"]
        ),
        "textcraftcoop": hostile(),
        "babyai": play("AgentGym/BabyAI-v0", nothing, levels="KeyInBox", seed=2, turns=20)[0],
        "sciworld": episode(
            "AgentGym-RL/SciWorld", [LOOK.replace("a lighter", HOSTILE), "You move to the hallway."], ["go"]
        ),
        "search": replace(search, task=gold, turns=turns),
        "searchpages": replace(
            pages_episode(HOSTILE), task=replace(search.task, data={"passages": ["p1", "p9"], "answers": ["who"]})
        ),
        "webarena": episode(
            "AgentGym/WebArena-v0",
            [web_page("[1] RootWebArea 'Shop'"), web_page(TREE), "The task has ended."],
            ["wait", "click [3]"],
        ),
    }


@pytest.fixture
def draw(browser: Any) -> Iterator[Draw]:
    """Draw a panel at a state. Returns the page; its errors and warnings fail the test."""
    tab = browser.new_page(viewport={"width": 480, "height": 800})
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.set_content('<!doctype html><html lang="en"><title>test</title><main id="main"></main>')
    for style in ("base.css", "panels.css", "team.css"):
        tab.add_style_tag(path=str(STATIC / style))
    for script in ("theme.js", "dom.js", "text.js", "team.js", *(f"panels_{kind}.js" for kind in episodes())):
        tab.add_script_tag(path=str(STATIC / script))

    def one(kind: str, index: int, trajectory: Trajectory | None = None) -> Any:
        panel = json.loads(json.dumps(panels_of(trajectory or episodes()[kind])))
        assert panel["kind"] == kind
        states = panel["states"]
        tab.evaluate(
            "([kind, states, index]) => Viewer.fill(main, Viewer.panels[kind].draw(states, index, {}))",
            [kind, states, index % len(states)],
        )
        tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return tab

    yield one
    assert complaints == []
    tab.close()


@pytest.mark.rotating(always=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["textcraft", "textcraftcoop", "babyai", "sciworld", "search", "searchpages", "webarena"]
)
def test_every_state_fits_its_width_and_escapes_text(draw: Draw, kind: str) -> None:
    for index in range(len(episodes()[kind].turns) + 1):
        tab = draw(kind, index)
        assert tab.evaluate("main.innerText.length + main.querySelectorAll('[aria-label]').length") > 0
        assert tab.evaluate("main.querySelectorAll('img, script, [onerror]').length") == 0
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert tab.title() == "test"


def test_hostile_text_is_shown_literally(draw: Draw) -> None:
    for kind, index in (
        ("textcraft", 1),
        ("textcraftcoop", 1),
        ("search", 1),
        ("search", 2),
        ("searchpages", 1),
        ("searchpages", 2),
        ("webarena", 1),
        ("sciworld", 0),
    ):
        tab = draw(kind, index)
        assert "<img src=x" in tab.inner_text("main"), kind
        assert tab.locator(".odd").count() >= 1, kind


def test_recipe_tree_shows_the_next_steps(draw: Draw) -> None:
    trajectory, _ = play("AgentGym/TextCraft-v0", nothing, task="textcraft/22")  # 6 cobblestone make a wall
    tab = draw("textcraft", 0, trajectory)
    assert tab.inner_text(".p-empty") == "Nothing is carried."
    assert [chip.inner_text() for chip in tab.locator(".tc-tree .chip").all()] == ["take 6"]
    tab = draw("textcraft", 1, trajectory)
    assert [chip.inner_text() for chip in tab.locator(".tc-tree .chip").all()] == ["craft now"]
    assert "6" in tab.inner_text(".tc-item")
    assert tab.inner_text(".tc-change") == "+6"
    tab = draw("textcraft", 2)  # items of the previous state are not marked
    assert [mark.inner_text() for mark in tab.locator(".tc-change").all()] == ["+1"]
    tab = draw("textcraft", 2, trajectory)
    assert tab.locator(".tc-node.have").count() == 1
    assert tab.locator(".tc-node.done").count() == 1


def test_grid_has_a_text_description(draw: Draw) -> None:
    states = panels_of(episodes()["babyai"])["states"]
    tab = draw("babyai", len(states) - 1)
    picture = tab.get_by_role("img")
    x, y, face = states[-1]["agent"]
    label = picture.get_attribute("aria-label")
    assert f"column {x}, row {y}, and faces {['right', 'down', 'left', 'up'][face]}" in label
    assert ("It carries nothing." in label) == (states[-1]["carrying"] is None)
    titles = [title.text_content() for title in tab.locator(".ba-map .ba-thing:not(.ba-held) > title").all()]
    assert [title.partition(" with a ")[0] for title in titles] == [thing["name"] for thing in states[-1]["things"]]


def test_house_shows_the_agents_room(draw: Draw) -> None:
    tab = draw("sciworld", 1)
    assert tab.locator(".sw-room.here text").text_content() == "hallway"
    assert tab.locator(".sw-room.visited text").all_text_contents() == ["kitchen"]
    label = tab.get_by_role("img").get_attribute("aria-label")
    assert label == "The agent is in the hallway. It was in: kitchen. Open doors: hallway and kitchen."


def test_searches_mark_gold_passages(draw: Draw) -> None:
    tab = draw("search", 1)
    assert tab.locator(".se-passage.gold").count() == 1
    assert [row.inner_text() for row in tab.locator(".se-when").all()] == ["found in turn 1", "never found"]
    tab = draw("search", 2)
    assert "wrong" in tab.inner_text(".se-answer")
    tab.locator(".se-earlier summary").click()
    tab.locator(".se-earlier .se-passage").nth(1).wait_for()
    assert tab.locator(".se-earlier .se-passage").count() == 2


def test_page_marks_target_and_new_lines(draw: Draw) -> None:
    tab = draw("webarena", 1)
    assert "textbox" in tab.inner_text(".wa-line.target")
    assert tab.locator(".wa-line").count() == 3
    assert "2 lines new, 0 gone" in tab.inner_text(".wa-facts")
    tab = draw("webarena", 2)
    assert tab.inner_text(".wa-note") == "The task has ended."
    assert tab.locator(".wa-line").count() == 3


def test_long_page_is_scrolled_to_the_target(draw: Draw) -> None:
    tree = "\n".join(f"[{n}] link 'number {n}'" for n in range(1, 600))
    tab = draw("webarena", 0, episode("AgentGym/WebArena-v0", [web_page(tree), "x"], ["click [400]"]))
    box, line = tab.locator(".wa-tree").bounding_box(), tab.locator(".wa-line.target").bounding_box()
    assert box["y"] < line["y"] < box["y"] + box["height"]
