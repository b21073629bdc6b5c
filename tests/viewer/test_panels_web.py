"""The panel of web pages: parsing of observations, and differences between pages."""

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


def web(observations: list[str], actions: list[str], infos: list[Any] | None = None, **fields: Any) -> dict[str, Any]:
    return json.loads(json.dumps(panels_of(episode("AgentGym/WebArena-v0", observations, actions, infos, **fields))))


def lines_of(panel: dict[str, Any], number: int) -> list[str]:
    shared = panel["states"][0]["shared"]["lines"]
    return [shared[line] for line, _ in panel["states"][number]["lines"]]


trees = st.lists(
    st.sampled_from(["link 'a'", "\tlink 'b'", "button 'c'", "\t\tStaticText 'd'", "..."]), min_size=1, max_size=9
)


@given(trees, trees)
def test_new_and_removed_lines_give_the_next_page(old: list[str], new: list[str]) -> None:
    """Old lines without the removed ones, plus the new ones, are the next page's lines, for any ids."""
    numbered = [f"{line[: len(line) - len(line.lstrip())]}[{n + 5}] {line.lstrip()}" for n, line in enumerate(new)]
    panel = web([web_page("\n".join(old)), web_page("\n".join(numbered))], ["click [1]"])
    before, after = panel["states"]
    assert lines_of(panel, 0) == old
    assert lines_of(panel, 1) == new
    assert [id for _, id in after["lines"]] == [n + 5 for n in range(len(new))]
    gone = Counter(panel["states"][0]["shared"]["lines"][line] for line in after["gone"])
    fresh = Counter(new[index] for index in after["fresh"])
    assert Counter(old) - gone + fresh == Counter(new)
    assert (before["fresh"], before["gone"], after["lost"]) == ([], [], len(after["gone"]))


def test_page_is_parsed() -> None:
    tabs = "Tab 0: One | Tab 1 (current): Two | three"
    found = split_page(web_page("[1] RootWebArea 'Two'\n\t[2] link 'URL: no'", tabs=tabs, note="mind this"))
    assert found is not None
    assert (found.tabs, found.url, found.note) == (tabs, "http://shop.test/", "mind this")
    assert found.tree == "[1] RootWebArea 'Two'\n\t[2] link 'URL: no'"
    assert split_page("The task has ended.") is None
    assert split_page("") is None


def test_target_is_marked_and_end_keeps_the_last_page() -> None:
    observations = [
        web_page("[1] RootWebArea 'a'\n\t[7] link 'b'"),
        web_page("[1] RootWebArea 'a'", note="No element 9."),
        "The task has ended.",
    ]
    panel = web(observations, ["I see. ```click [7]```", "nothing"], env_kwargs={"grammar": "fenced"})
    first, second, last = panel["states"]
    assert (first["target"], first["command"]) == (1, "click [7]")
    assert (second["target"], second["command"], second["note"]) == (None, None, "No element 9.")
    assert (second["lost"], second["fresh"]) == (1, [])
    assert (last["lines"], last["page"], last["note"]) == (second["lines"], False, "The task has ended.")


def test_only_png_screenshots_are_shown() -> None:
    tree = web_page("[1] RootWebArea 'a'")
    infos = [
        {"screenshot": PIXEL},
        {"screenshot": "https://elsewhere.test/a.png"},
        {"screenshot": "data:image/svg+xml,x"},
    ]
    panel = web([tree] * 4, ["wait"] * 3, infos)
    assert [state["image"] for state in panel["states"]] == [None, PIXEL, None, None]


def test_screenshots_beyond_the_limit_are_left_out() -> None:
    image = "data:image/png;base64," + "A" * 400_000
    panel = web([web_page("[1] RootWebArea 'a'")] * 5, ["wait"] * 4, [{"screenshot": image}] * 4)
    assert sum(state["image"] is not None for state in panel["states"]) == 2
    assert panel["note"] == "2 screenshots are left out: together, they are too large."


@pytest.mark.slow
def test_panel_size_is_limited_for_long_episodes() -> None:
    """All pages differ and have the maximum length of an observation."""
    observations = [
        web_page("\n".join(f"[{n}] link 'turn {turn} number {n}'" for n in range(5000))) for turn in range(101)
    ]
    panel = web(observations, ["click [3]"] * 100)
    assert panel["kind"] == "webarena"
    assert len(json.dumps(panel, separators=(",", ":"))) < 2_500_000
    assert panel["states"][0]["omitted"] > 0


def test_hostile_page_takes_linear_time() -> None:
    text = web_page("\nURL: x\n\nOBJECTIVE: \nPREVIOUS ACTION: \n" * 4000)
    assert web([text, text], ["click [1]"])["kind"] == "webarena"


def test_record_without_pages_has_a_note() -> None:
    panel = web(["hello", "bye"], ["hi"])
    assert panel["note"] == "The record contains no page in a known format."


@pytest.mark.slow
def test_panel_equals_the_pages_of_a_real_browser() -> None:
    def tree(env: Any) -> str:
        return str(env.session.view.tree) if env.status()["stop_reason"] is None else ""

    trajectory, seen = play("AgentGym/MiniWoB-v0", tree, task="miniwob/click-collapsible/1131", split=None)
    states, shared = states_of(trajectory, "webarena")
    for state, real in zip(states, seen, strict=True):
        lines = [(shared["lines"][line], id) for line, id in state["lines"]]
        marked = [line.replace(line.lstrip("\t"), (f"[{id}] " if id else "") + line.lstrip("\t")) for line, id in lines]
        assert not real or "\n".join(marked) == real
    assert all(state["target"] is not None for state in states[:-1])
