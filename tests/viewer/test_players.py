"""The policy and agent of an episode, and filter fields that keep their input: the viewer's pages in Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.viewer.api import Viewer
from tests.viewer.records import record, save
from tests.viewer.showing import page_of, serving

PLANNER = {"policy": "openai:M", "agent": {"name": "plan", "plan": "First north, then <b>rest</b>.", "summaries": 2}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of one task: two seeds of a planner, and the first seed by another policy in another file."""
    path = tmp_path_factory.mktemp("viewer")
    save(path / "one.jsonl", *(record("t/1", "look", seed=seed, meta=PLANNER) for seed in (0, 1)))
    save(path / "two.jsonl", record("t/1", "wait", meta={"policy": "small"}))
    return path


def test_siblings_of_the_same_seed_come_first(folder: Path) -> None:
    rows = Viewer([folder]).episode(0)["siblings"]
    assert [(row["id"], row["seed"]) for row in rows] == [(2, 0), (1, 1)]


@pytest.mark.slow
def test_agent_and_source_are_shown_with_the_policy(browser: Any, address: str) -> None:
    with page_of(browser, address) as page:
        page.wait_for_selector(".row .goal")
        cells = page.locator(".row .policy").all_inner_texts()
        assert [cell.splitlines()[0] for cell in cells] == ["openai:M · plan", "openai:M · plan", "small"]
        assert ["one" in cell for cell in cells] == [True, True, False]
        page.goto(f"{address}#/episode/0")
        page.wait_for_selector(".siblings")
        assert "openai:M · plan" in page.locator(".summary").inner_text()
        first, second = page.locator(".siblings li").all_inner_texts()
        assert "small" in first and "two" in first and "plan" in second and "one" in second


@pytest.mark.slow
def test_plan_is_collapsed_and_summaries_are_counted(browser: Any, address: str) -> None:
    with page_of(browser, f"{address}#/episode/0") as page:
        page.get_by_text("Plan at the end").click()
        assert page.get_by_text("First north, then <b>rest</b>.", exact=True).is_visible()
        assert "2 summaries" in page.locator(".folds").inner_text()
        page.goto(f"{address}#/episode/2")
        page.get_by_role("heading", name="solve t/1").wait_for()
        assert page.get_by_text("Plan at the end").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "count"), [("0/1", 1), ("0/2", 0)])
def test_different_seeds_have_a_note(browser: Any, address: str, pair: str, count: int) -> None:
    with page_of(browser, f"{address}#/compare/{pair}") as page:
        page.wait_for_selector(".pair")
        assert page.get_by_text("Their seeds differ, so their initial states may differ").count() == count


@pytest.mark.slow
def test_cards_are_sorted_by_a_menu(browser: Any, address: str) -> None:
    with page_of(browser, address, viewport={"width": 360, "height": 740}) as page:
        page.wait_for_selector(".row .goal")
        assert not page.locator(".table .head").is_visible()
        page.get_by_label("Sort by").select_option(label="Number, high to low")
        page.wait_for_url("**/#/?sort=id&desc=1")
        page.wait_for_selector(".row >> nth=0 >> a[href='#/episode/2']")
        chosen = page.evaluate("() => [document.activeElement.name, document.activeElement.value]")
        assert chosen == ["sort", "id 1"]


@pytest.mark.slow
def test_filter_fields_keep_focus_and_input(browser: Any, address: str) -> None:
    with page_of(browser, address) as page:
        page.wait_for_selector(".row .goal")
        page.click(".toggle")
        page.focus("[name=min_turns]")
        for key in ("1", "Tab", "9", "Tab"):
            page.keyboard.press(key)
        assert page.evaluate("() => document.activeElement.name") == "min_score"
        assert "min_turns=1" in page.url and "max_turns=9" in page.url
        page.fill("[name=q]", "wait")
        page.select_option("[name=policy]", "small")
        page.wait_for_url(lambda url: "q=wait" in url and "policy=small" in url)
        assert page.locator("[name=q]").input_value() == "wait"
        page.get_by_role("button", name="Clear all").click()
        page.wait_for_url("**/#/")
        values = page.evaluate("() => [...document.querySelectorAll('.filters .field')].map((field) => field.value)")
        assert not any(values)


@pytest.mark.slow
def test_panel_title_is_shown_while_loading(browser: Any, tmp_path: Path) -> None:
    file = save(tmp_path / "a.jsonl", record("t/1", "look", env_id="AgentGym/TextCraft-v0"))
    with serving(file) as address, page_of(browser, "about:blank") as page:
        page.route("**/panels", lambda route: None)  # no response
        page.goto(f"{address}#/episode/0")
        page.get_by_text("The episode is being replayed").wait_for()
        assert page.locator(".panel h2").inner_text() == "Inventory and recipes before turn 1"
