"""The panel of pages: how observations are taken apart, and how one page differs from another."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.viewer.panels import panels_of
from agentgym_envs.viewer.panels.webarena import split_page
from tests.viewer.panel_episodes import episode, play, states_of, web_page

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def web(told: list[str], actions: list[str], infos: list[Any] | None = None, **fields: Any) -> dict[str, Any]:
    return json.loads(json.dumps(panels_of(episode("AgentGym/WebArena-v0", told, actions, infos, **fields))))


def lines_of(panel: dict[str, Any], number: int) -> list[str]:
    shared = panel["states"][0]["shared"]["lines"]
    return [shared[line] for line, _ in panel["states"][number]["lines"]]


trees = st.lists(
    st.sampled_from(["link 'a'", "\tlink 'b'", "button 'c'", "\t\tStaticText 'd'", "..."]), min_size=1, max_size=9
)


@given(trees, trees)
def test_what_is_new_and_what_is_gone_lead_from_page_to_page(old: list[str], new: list[str]) -> None:
    """Whatever the ids: the old lines, less those gone, and those new, are the new lines."""
    numbered = [f"{line[: len(line) - len(line.lstrip())]}[{n + 5}] {line.lstrip()}" for n, line in enumerate(new)]
    panel = web([web_page("\n".join(old)), web_page("\n".join(numbered))], ["click [1]"])
    before, after = panel["states"]
    assert lines_of(panel, 0) == old
    assert lines_of(panel, 1) == new
    assert [id for _, id in after["lines"]] == [n + 5 for n in range(len(new))]
    gone = Counter(panel["states"][0]["shared"]["lines"][line] for line in after["gone"])
    fresh = Counter(new[place] for place in after["fresh"])
    assert Counter(old) - gone + fresh == Counter(new)
    assert (before["fresh"], before["gone"], after["lost"]) == ([], [], len(after["gone"]))


def test_a_page_in_its_parts() -> None:
    tabs = "Tab 0: One | Tab 1 (current): Two | three"
    found = split_page(web_page("[1] RootWebArea 'Two'\n\t[2] link 'URL: no'", tabs=tabs, note="mind this"))
    assert found is not None
    assert (found.tabs, found.url, found.note) == (tabs, "http://shop.test/", "mind this")
    assert found.tree == "[1] RootWebArea 'Two'\n\t[2] link 'URL: no'"
    assert split_page("The task has ended.") is None
    assert split_page("") is None


def test_the_element_of_the_next_action_is_marked_and_the_end_keeps_the_last_page() -> None:
    told = [
        web_page("[1] RootWebArea 'a'\n\t[7] link 'b'"),
        web_page("[1] RootWebArea 'a'", note="No element 9."),
        "The task has ended.",
    ]
    panel = web(told, ["I see. ```click [7]```", "nothing"], env_kwargs={"grammar": "fenced"})
    first, second, last = panel["states"]
    assert (first["target"], first["command"]) == (1, "click [7]")
    assert (second["target"], second["command"], second["note"]) == (None, None, "No element 9.")
    assert (second["lost"], second["fresh"]) == (1, [])
    assert (last["lines"], last["page"], last["note"]) == (second["lines"], False, "The task has ended.")


def test_a_screenshot_is_shown_if_it_is_one() -> None:
    tree = web_page("[1] RootWebArea 'a'")
    infos = [
        {"screenshot": PIXEL},
        {"screenshot": "https://elsewhere.test/a.png"},
        {"screenshot": "data:image/svg+xml,x"},
    ]
    panel = web([tree] * 4, ["wait"] * 3, infos)
    assert [state["picture"] for state in panel["states"]] == [None, PIXEL, None, None]


def test_screenshots_that_are_too_many_are_left_out() -> None:
    picture = "data:image/png;base64," + "A" * 400_000
    panel = web([web_page("[1] RootWebArea 'a'")] * 5, ["wait"] * 4, [{"screenshot": picture}] * 4)
    assert sum(state["picture"] is not None for state in panel["states"]) == 2
    assert panel["note"] == "2 screenshots are left out, as they are too large together."


@pytest.mark.slow
def test_long_episodes_on_long_pages_stay_small() -> None:
    """Every page another one, as long as an observation may be."""
    told = [web_page("\n".join(f"[{n}] link 'turn {turn} number {n}'" for n in range(5000))) for turn in range(101)]
    panel = web(told, ["click [3]"] * 100)
    assert panel["kind"] == "webarena"
    assert len(json.dumps(panel, separators=(",", ":"))) < 2_500_000
    assert panel["states"][0]["omitted"] > 0


def test_a_hostile_page_takes_linear_time() -> None:
    told = web_page("\nURL: x\n\nOBJECTIVE: \nPREVIOUS ACTION: \n" * 4000)
    assert web([told, told], ["click [1]"])["kind"] == "webarena"


def test_a_record_without_pages_says_so() -> None:
    panel = web(["hello", "bye"], ["hi"])
    assert panel["note"] == "The record holds no page in a form that could be read."


@pytest.mark.slow
def test_pages_of_a_real_browser() -> None:
    def tree(env: Any) -> str:
        return str(env.session.view.tree) if env.status()["stop_reason"] is None else ""

    trajectory, seen = play("AgentGym/MiniWoB-v0", tree, task="miniwob/click-collapsible/1131", split=None)
    states, shared = states_of(trajectory, "webarena")
    for state, real in zip(states, seen, strict=True):
        told = [(shared["lines"][line], id) for line, id in state["lines"]]
        marked = [line.replace(line.lstrip("\t"), (f"[{id}] " if id else "") + line.lstrip("\t")) for line, id in told]
        assert not real or "\n".join(marked) == real
    assert all(state["target"] is not None for state in states[:-1])
