"""The viewer's pages in a real Chromium: the list, an episode, the comparison, and the exported file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.export import export_html
from tests.viewer.panel_episodes import nothing, play
from tests.viewer.records import record, save
from tests.viewer.showing import NAMED, page_of, roles_and_names, serving

PHONE = {"viewport": {"width": 360, "height": 740}}
CONTRAST = """() => {
  const luminance = (colour) => {
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
    const linear = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const probe = document.body.appendChild(document.createElement("i"));
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return luminance(getComputedStyle(probe).color);
  };
  const ratio = (a, b) => (Math.max(colour(a), colour(b)) + 0.05) / (Math.min(colour(a), colour(b)) + 0.05);
  const pairs = ["text bg", "text panel", "text soft", "text wash", "dim bg", "dim panel", "dim soft", "accent panel",
    "accent wash", "on-accent accent", "good panel", "good good-wash", "bad panel", "bad bad-wash", "warn panel",
    "warn warn-wash", "text heat-0", "text heat-1", "text heat-2", "text heat-3", "text heat-4", "text heat-5"];
  return Object.fromEntries(pairs.map((pair) => [pair, ratio(...pair.split(" "))]));
}"""


def scored(episode: Trajectory, *rewards: float) -> Trajectory:
    """The episode with rewards, and their sum as the score."""
    turns, score = [], 0.0
    for turn, reward in zip(episode.turns, rewards, strict=True):
        score += reward
        turns.append(replace(turn, reward=reward, info={**turn.info, "score": score}))
    success = score >= 1
    stop = "success" if success else episode.stop_reason
    return replace(episode, turns=tuple(turns), score=score, success=success, stop_reason=stop)


def episodes() -> list[Trajectory]:
    """Nine episodes of two environments, with several stop reasons; two share a task."""
    wrong = record("t/9", "fly", "walk", env_id="B-v0", stop_reason="turn_limit", group="hard", meta={"max_turns": 2})
    reason = {"invalid_action": "Nobody can fly.", "score": 0.0, "finish": "length"}
    wrong = replace(wrong, turns=(replace(wrong.turns[0], info=reason), wrong.turns[1]))
    react = "Thought: north looks right.\nAction: go north"
    return [
        *(record(f"t/{n}", "look", seed=n, stop_reason="failure") for n in range(4)),
        scored(record("t/4", "go north", "take lamp", "light lamp", meta={"policy": "small"}), 0.25, 0, 0.75),
        scored(record("t/4", "go north", "take rope", seed=1, meta={"policy": "large", "step": 20}), 0.25, 0),
        scored(record("t/7", react, env_id="B-v0", env_kwargs={"grammar": "react"}, meta={"step": 40}), 0.5),
        record("t/8", env_id="B-v0", stop_reason="env_error", error="the disk is full"),
        wrong,
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("viewer") / "run.jsonl", *episodes())


@pytest.fixture(scope="module")
def textcraft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    played, _ = play("AgentGym/TextCraft-v0", nothing)
    return save(tmp_path_factory.mktemp("textcraft") / "run.jsonl", played)


@contextmanager
def shown(browser: Any, address: str, where: str = "#/", **options: Any) -> Iterator[Any]:
    """Open a page that may request only the viewer's own files and must leave the console empty."""
    with page_of(browser, "about:blank", **options) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: asked.append("a dialog was opened"))
        page.goto(address + where)
        page.wait_for_selector(".row .goal, .turn, .segment, .rawbox, .empty h2, .problem")
        yield page
        assert all(url.startswith((address, "data:")) for url in asked)


def ids(page: Any) -> list[int]:
    """The numbers of the episodes in the table, after it is updated."""
    page.wait_for_selector(".table:not(.busy)", state="attached")
    return [int(text) for text in page.locator(".row .id").all_inner_texts()]


def until(page: Any, truth: str) -> None:
    """Wait for an expression to be true. (The page's security policy forbids Playwright's `wait_for_function`.)"""
    for _ in range(1200):
        if page.evaluate(truth):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it never became true: {truth}")


def status(page: Any) -> str:
    text: str = page.locator(".where").inner_text()
    return text


def reaches(page: Any, expected: str) -> None:
    """Wait for a status: a click ends before the page has answered it if the machine is busy."""
    until(page, f"document.querySelector('.where')?.textContent === '{expected}'")


def test_list_opens(browser: Any, address: str) -> None:
    with shown(browser, address) as page:
        assert ids(page) == list(range(9))
        assert page.locator(".count").inner_text() == "9 episodes"
        assert page.locator("[role=table]").get_attribute("aria-rowcount") == "10"
        first, good, lost = (page.locator(".row").nth(n).inner_text() for n in (0, 4, 7))
        assert "solve t/0" in first and "Failed" in first
        assert "Success" in good and "No result" in lost and "Environment error" in lost


@pytest.mark.slow
def test_filters_narrow_the_list_and_are_in_the_url(browser: Any, address: str) -> None:
    with shown(browser, address) as page:
        page.select_option("[name=env]", "B-v0")
        until(page, "document.querySelectorAll('.row').length === 3")
        assert ids(page) == [6, 7, 8] and page.url.endswith("#/?env=B-v0")
        assert page.locator(".count").inner_text() == "3 of 9 episodes"
        page.click(".toggle")
        page.fill("[name=min_turns]", "2")
        page.press("[name=min_turns]", "Enter")
        until(page, "document.querySelectorAll('.row').length === 1")
        assert ids(page) == [8]
        page.reload()
        page.wait_for_selector(".row .goal")
        assert ids(page) == [8] and page.locator("[name=env]").input_value() == "B-v0"
        page.click("text=Clear all")
        until(page, "document.querySelectorAll('.row').length === 9")


@pytest.mark.slow
def test_column_headers_sort(browser: Any, address: str) -> None:
    with shown(browser, address) as page:
        header = page.get_by_role("columnheader", name="Score")
        header.get_by_role("button").click()
        page.wait_for_selector(".score[aria-sort=ascending]")
        page.get_by_role("columnheader", name="Score").get_by_role("button").click()
        page.wait_for_selector(".score[aria-sort=descending]")
        until(page, "document.querySelector('.row .id')?.textContent === '4'")
        assert ids(page)[:3] == [4, 6, 5]
        assert page.evaluate("document.activeElement.closest('.score') !== null")


@pytest.mark.slow
def test_search_matches_are_highlighted(browser: Any, address: str) -> None:
    with shown(browser, address) as page:
        page.keyboard.press("/")
        page.keyboard.type("LIGHT lamp")
        until(page, "document.querySelectorAll('.row').length === 1")
        assert ids(page) == [4]
        page.click(".row .goal")
        page.wait_for_selector(".turn")
        assert set(page.locator("mark").all_inner_texts()) == {"light lamp"}
        page.go_back()
        page.wait_for_selector(".row .goal")
        assert ids(page) == [4] and page.locator("[name=q]").input_value() == "LIGHT lamp"
        page.fill("[name=q]", "no such words")
        page.wait_for_selector("text=No matching episode")


@pytest.mark.slow
def test_keys_select_and_open_episodes(browser: Any, address: str) -> None:
    with shown(browser, address, "#/?env=B-v0") as page:
        for key in ("ArrowDown", "j", "j", "k"):
            page.keyboard.press(key)
        page.keyboard.press("Enter")
        page.wait_for_selector(".episode-head")
        assert "#/episode/7" in page.url
        page.keyboard.press("]")
        until(page, "location.hash === '#/episode/8'")
        page.wait_for_selector(".turn")
        page.keyboard.press("[")
        until(page, "location.hash === '#/episode/7'")
        page.wait_for_selector(".turn")
        page.keyboard.press("g")
        page.wait_for_selector(".row .goal")
        assert page.url.endswith("#/?env=B-v0")
        page.keyboard.press("?")
        assert page.get_by_role("dialog", name="Keys").is_visible()


@pytest.mark.slow
def test_keys_step_through_an_episode(browser: Any, address: str) -> None:
    with shown(browser, address, "#/episode/4") as page:
        reaches(page, "Turn 1 of 3")
        slider = page.get_by_role("slider", name="Turn")
        for key, expected, value in [
            ("ArrowRight", "Turn 2 of 3", "2"),
            ("j", "Turn 3 of 3", "3"),
            ("ArrowRight", "End of 3 turns", "4"),
            ("ArrowRight", "End of 3 turns", "4"),
            ("ArrowLeft", "Turn 3 of 3", "3"),
            ("Home", "Turn 1 of 3", "1"),
            ("End", "End of 3 turns", "4"),
            ("k", "Turn 3 of 3", "3"),
        ]:
            page.keyboard.press(key)
            assert (status(page), slider.get_attribute("aria-valuenow")) == (expected, value)
        assert slider.get_attribute("aria-valuetext") == "Turn 3 of 3, reward +0.75"
        assert re.search(r"#/episode/4~[0-9a-f]{16}\?turn=3$", page.url)
        assert page.locator("[aria-current=step]").get_attribute("aria-label") == "Turn 3"
        page.keyboard.press("Space")
        page.get_by_role("button", name="Pause").wait_for()
        until(page, "document.querySelector('.where').textContent.startsWith('End')")
        assert page.get_by_role("button", name="Play").is_visible()


@pytest.mark.slow
def test_deep_link_opens_at_its_turn(browser: Any, address: str) -> None:
    with shown(browser, address, "#/episode/4?turn=3") as page:
        reaches(page, "Turn 3 of 3")
        page.locator(".no").nth(1).click()
        reaches(page, "Turn 2 of 3")
        strip = page.locator(".strip")
        strip.click(position={"x": strip.bounding_box()["width"] - 5, "y": 10})
        reaches(page, "End of 3 turns")


@pytest.mark.slow
def test_turn_shows_thought_action_reward_and_errors(browser: Any, address: str) -> None:
    with shown(browser, address, "#/episode/6") as page:
        turn = page.get_by_role("article", name="Turn 1")
        assert turn.locator(".thought .body").inner_text() == "north looks right."
        assert turn.locator(".act > .body").inner_text() == "go north"
        assert "+0.5" in turn.locator(".marks").inner_text()
    with shown(browser, address, "#/episode/8") as page:
        text = page.get_by_role("article", name="Turn 1").inner_text()
        assert "Nobody can fly." in text and "truncated by the token limit" in text
        assert "It was 2 turns." in page.get_by_role("article", name="End").inner_text()
    with shown(browser, address, "#/episode/7") as page:
        assert "the disk is full" in page.locator(".problem").inner_text()
        assert page.locator(".turn").count() == 1 and status(page) == "End of 0 turns"


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_panel_follows_the_turn(browser: Any, textcraft: Path, options: dict[str, Any]) -> None:
    with serving(textcraft) as address, shown(browser, address, "#/episode/0", **options) as page:
        panel = page.get_by_role("complementary", name="State of the environment")
        panel.locator("text=before turn 1").wait_for()
        before = panel.inner_text()
        page.keyboard.press("End")
        assert "at the end" in panel.inner_text()
        assert panel.inner_text().replace("at the end", "") != before.replace("before turn 1", "")
        page.get_by_role("tab", name="Raw").click()
        assert not panel.is_visible()
        page.get_by_role("tab", name="Turns").click()
        assert "at the end" in panel.inner_text()


@pytest.mark.slow
def test_raw_record_is_shown(browser: Any, address: str) -> None:
    with shown(browser, address, "#/episode/4?tab=raw") as page:
        shown_json = json.loads(page.get_by_role("region", name="JSON of the episode").inner_text())
        assert shown_json["row"]["task"] == "t/4" and len(shown_json["turns"]) == 3
        page.get_by_role("tab", name="Raw").press("ArrowLeft")
        assert page.get_by_role("tab", name="Turns").get_attribute("aria-selected") == "true"
        assert page.locator(".turn").count() == 4


@pytest.mark.slow
def test_earlier_attempts_are_shown(browser: Any, tmp_path: Path) -> None:
    tried = {"turns": [{"observation": "Begin.", "action": "jump", "reward": 0.0, "info": {}}], "score": 0.0}
    attempts = [{**tried, "success": False, "stop_reason": "failure", "lesson": "Do not jump."}]
    made = scored(record("t/1", "walk", "rest", meta={"attempts": attempts}), 0.5, 0.5)
    with serving(save(tmp_path / "a.jsonl", made)) as address, shown(browser, address, "#/episode/0") as page:
        reaches(page, "Turn 1 of 2")
        page.get_by_role("button", name="Attempt 1").click()
        reaches(page, "Turn 1 of 1")
        assert "Do not jump." in page.get_by_role("article", name="End").inner_text()


@pytest.mark.slow
def test_unknown_pages_and_episodes_are_reported(browser: Any, address: str, tmp_path: Path) -> None:
    with page_of(browser, address + "#/nowhere") as page:
        page.wait_for_selector("text=There is no page “nowhere”.")
    (tmp_path / "broken.jsonl").write_text('{"schema": 1, "turns": 3}\n')
    with serving(tmp_path) as address, shown(browser, address) as page:
        assert page.locator(".problem").is_visible() or page.locator(".empty").is_visible()


@pytest.mark.slow
def test_growing_file_is_followed(browser: Any, tmp_path: Path) -> None:
    path = save(tmp_path / "run.jsonl", *episodes())
    with serving(path) as address, shown(browser, address) as page:
        save(path, record("t/new", "look"))
        until(page, "document.querySelectorAll('.row').length === 10")
        assert page.locator(".live").inner_text() == "Following 10 episodes"


@pytest.mark.slow
def test_list_of_ten_thousand_rows_is_virtual(browser: Any, tmp_path: Path) -> None:
    line = record("t/1", "look").to_json()
    path = tmp_path / "many.jsonl"
    path.write_text("".join(line.replace('"seed": 0', f'"seed": {n}') + "\n" for n in range(10_000)))
    with serving(path) as address, shown(browser, address) as page:
        most = 0
        for share in (0.13, 0.5, 0.51, 0.9, 1):
            page.evaluate("(share) => scrollTo(0, share * document.body.scrollHeight)", share)
            until(page, "document.querySelector('.row') && !document.querySelector('.row.coming')")
            most = max(most, page.evaluate("document.getElementsByTagName('*').length"))
        until(page, "[...document.querySelectorAll('.row .id')].pop().textContent === '9999'")
        assert most < 1200
        order = page.evaluate("[...document.querySelectorAll('.row')].map((row) => Number(row.ariaRowIndex))")
        assert order == sorted(order)


HOSTILE = {
    "markup": "<script>document.title='bad'</script><img src=x onerror=alert(1)></script><!--",
    "long": "x" * 1_000_000 + "<b>end",
    "hidden": "abc \u202eevil\u202c \u2066in\u2069 \x1b[31mred \x00 \ud800 \ufeff\u200b",
    "many": "\x00" * 300_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["markup", *(pytest.param(one, marks=pytest.mark.rotating) for one in [*HOSTILE][1:])])
@pytest.mark.parametrize("exported", [False, True], ids=["served", "exported"])
def test_hostile_text_is_escaped(browser: Any, tmp_path: Path, kind: str, exported: bool) -> None:
    text = HOSTILE[kind]
    made = record("t/1", text, goal=text, meta={"policy": text})
    made = replace(made, turns=(Turn(text, text, 0.0, {"invalid_action": text}),), final_observation=text)
    path = save(tmp_path / "a.jsonl", made)
    with opened(browser, path, exported, "#/episode/0") as page:
        assert not page.title().startswith("bad") and page.locator("#main script, #main img, #main b").count() == 0
        body = page.locator(".turn .seen .body").first
        if kind == "markup":
            assert body.inner_text() == text
        if kind == "hidden":
            boxes = body.locator(".odd").all_inner_texts()
            assert boxes == ["RLO", "PDF", "LRI", "PDI", "ESC", "NUL", "U+D800", "BOM", "ZWSP"]
        if kind in ("long", "many"):
            assert page.evaluate("document.getElementById('main').textContent.length") < 200_000
            body.get_by_role("button", name="Show all").click()
            assert page.evaluate("document.querySelector('.turn .seen .body').textContent.length") >= 300_000
            assert page.evaluate("document.getElementsByTagName('*').length") < 20_000
        page.keyboard.press("g")
        page.wait_for_selector(".row .goal")


@pytest.mark.slow
def test_long_observations_are_folded(browser: Any, tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(100)]
    made = record("t/1", "\n".join(lines), "\n".join(lines[:30]))
    with serving(save(tmp_path / "a.jsonl", made)) as address, shown(browser, address, "#/episode/0") as page:
        body = page.locator(".act > .body").first
        assert body.inner_text().split("\n")[:24] == lines[:24] and "line 24" not in body.inner_text()
        body.get_by_role("button", name="Show all, 76 more lines").click()
        assert body.inner_text().split("\n") == lines
        assert page.locator(".act > .body").nth(1).inner_text().split("\n") == lines[:30]


@contextmanager
def opened(browser: Any, path: Path, exported: bool, where: str) -> Iterator[Any]:
    """Open the episodes of a file, from the server or as one exported file."""
    if not exported:
        with serving(path) as address, shown(browser, address, where) as page:
            yield page
        return
    viewer = Viewer([path])
    viewer.summary()
    file = path.with_suffix(".html")
    file.write_text(export_html(viewer, viewer.index.snapshot.entries), "utf-8")
    with shown(browser, file.as_uri(), where) as page:
        yield page


@pytest.fixture(scope="module")
def both(browser: Any, folder: Path) -> Iterator[list[Any]]:
    with opened(browser, folder, True, "#/") as file, opened(browser, folder, False, "#/") as served:
        yield [file, served]


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"env": "B-v0"},
        {"success": "0", "sort": "turns", "desc": "1"},
        {"success": "1"},
        {"stop": "turn_limit"},
        {"policy": "small"},
        {"step": "20"},
        {"task": "t/4", "sort": "score"},
        {"min_turns": "1", "max_turns": "2", "sort": "task", "desc": "1"},
        {"min_score": "0.2", "max_score": "0.9"},
        {"q": "NORTH", "sort": "env"},
        {"q": "t/9"},
        {"q": "disk"},
        {"group": "hard"},
        {"sort": "step"},
        {"sort": "step", "desc": "1"},
        {"sort": "stop", "offset": "2", "limit": "3"},
    ],
    ids=urlencode,
)
def test_exported_file_answers_like_the_server(both: list[Any], query: dict[str, str]) -> None:
    ask = "(query) => Viewer.api('episodes', query).then(({ total, rows }) => [total, rows.map((row) => row.id)])"
    file, served = (page.evaluate(ask, query) for page in both)
    assert file == served


@pytest.mark.slow
def test_exported_file_has_all_pages(browser: Any, folder: Path) -> None:
    with opened(browser, folder, True, "#/") as page:
        assert ids(page) == list(range(9))
        page.select_option("[name=env]", "B-v0")
        until(page, "document.querySelectorAll('.row').length === 3")
        page.click(".row .goal >> nth=0")
        page.wait_for_selector(".turn")
        page.keyboard.press("ArrowRight")
        reaches(page, "End of 1 turn")
        assert page.locator(".live").inner_text() == "9 episodes in this file"


PAGES = ["#/", "#/episode/4?turn=2", "#/episode/8", "#/episode/4?tab=raw", "#/compare/4/5"]


@pytest.mark.rotating(always=2)
@pytest.mark.slow
@pytest.mark.parametrize("where", PAGES)
def test_every_control_has_an_accessible_name(browser: Any, address: str, where: str) -> None:
    with shown(browser, address, where) as page:
        if where == "#/":
            page.click(".toggle")
        names = roles_and_names(page)
        assert {"banner", "main", "navigation"} <= {role for role, _ in names}
        assert not [role for role, name in names if role in NAMED and not name]
        assert page.locator("h1").count() == 1


@pytest.mark.rotating(always=2)
@pytest.mark.slow
@pytest.mark.parametrize("where", PAGES)
def test_pages_fit_a_phone_without_horizontal_scrolling(browser: Any, address: str, where: str) -> None:
    with shown(browser, address, where, **PHONE) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colour_contrast_is_sufficient(browser: Any, address: str, scheme: str) -> None:
    with shown(browser, address, color_scheme=scheme) as page:
        found = page.evaluate(CONTRAST)
        assert {pair: round(ratio, 1) for pair, ratio in found.items() if ratio < 4.5} == {}
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 21, 25)"
        assert dark == (scheme == "dark")


@pytest.mark.slow
def test_colour_scheme_is_chosen_and_saved(browser: Any, address: str) -> None:
    with shown(browser, address, color_scheme="light") as page:
        page.keyboard.press("t")
        page.keyboard.press("t")
        page.reload()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 21, 25)"
        assert page.get_by_role("button", name="Dark colours").is_visible()


@pytest.mark.slow
def test_exported_file_searches_earlier_attempts(browser: Any, tmp_path: Path) -> None:
    turn = {"observation": "A red door.", "action": "knock", "reward": 0.0, "info": {}}
    made = record("t/1", meta={"attempts": [{"turns": [turn], "lesson": "Knock twice."}]})
    with opened(browser, save(tmp_path / "a.jsonl", made, record("t/2")), True, "#/") as page:
        ask = "(q) => Viewer.api('episodes', {q}).then(({ total }) => total)"
        assert [page.evaluate(ask, q) for q in ("RED DOOR", "twice", "brief", "gone")] == [1, 1, 2, 0]
