"""The comparison of two episodes in a real Chromium: alignment, folds and differences; and the notes of an episode."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.notes import read_notes
from tests.viewer.records import record, save
from tests.viewer.showing import page_of
from tests.viewer.test_pages import reaches, shown, until

SAME = [f"step {n}" for n in range(6)]
LONG = "a wall\na door\na lamp\na rug\na chair\n"


def pair() -> list[Trajectory]:
    """Two episodes: six equal turns, one that only A has, another observation, then the same actions."""
    one = record("t/1", *SAME, "extra", "join", "end", goal="find the lamp")
    other = record("t/1", *SAME, "join", "end", "more", seed=1, goal="find the lamp")
    return [one, other, record("t/2", "x", "y" * 9)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("viewer") / "run.jsonl", *pair())


@pytest.fixture(scope="module")
def scripts(browser: Any, address: str) -> Iterator[Any]:
    """A page with the viewer's scripts, to call them."""
    with page_of(browser, address) as page:
        yield page


def longest_common(one: list[int], other: list[int]) -> int:
    row = [0] * (len(other) + 1)
    for item in one:
        before = row[:]
        for k, wanted in enumerate(other, 1):
            row[k] = before[k - 1] + 1 if item == wanted else max(before[k], row[k - 1])
    return row[-1]


@pytest.mark.slow
def test_alignment_is_a_longest_common_subsequence(scripts: Any) -> None:
    rng = random.Random(0)
    cases = [[[rng.randrange(4) for _ in range(rng.randrange(9))] for _ in range(2)] for _ in range(150)]
    found = scripts.evaluate(
        """(cases) => cases.map(([one, other]) => {
          const pairs = Viewer.diff.align(one.length, other.length, (i, j) => (one[i] === other[j] ? 2 : 0));
          return [pairs, Viewer.diff.rowsOf(one.length, other.length, pairs)];
        })""",
        cases,
    )
    for (one, other), (pairs, rows) in zip(cases, found, strict=True):
        assert all(one[i] == other[j] for i, j in pairs) and pairs == sorted(pairs)
        assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs) == longest_common(one, other)
        assert [row["a"] for row in rows if row["a"] is not None] == list(range(len(one)))
        assert [row["b"] for row in rows if row["b"] is not None] == list(range(len(other)))


@pytest.mark.slow
def test_text_difference_marks_words_and_leaves_out_equal_lines(scripts: Any) -> None:
    before, after = LONG + "You see 3 red balls.\n" + LONG, LONG + "You see 4 red balls.\n" + LONG
    show = "([a, b]) => { const made = Viewer.diff.textDiff(a, b); return made && made.outerHTML; }"
    html = scripts.evaluate(show, [before, after])
    assert "<del>3</del>" in html and "<ins>4</ins>" in html
    assert html.count("equal lines") == 2 and html.count("a lamp") == 0  # two lines around a change are kept
    hostile = "<img src=x onerror=alert(1)>"
    assert "<img" not in scripts.evaluate(show, [f"a {hostile}", f"b {hostile}"])
    unlike = [" ".join(str(n) for n in range(k, k + 20)).replace(" ", "\n") for k in (0, 100)]
    assert scripts.evaluate(show, unlike) is None


@pytest.mark.slow
def test_two_episodes_are_aligned_and_equal_turns_are_folded(browser: Any, address: str) -> None:
    with shown(browser, address, "#/compare/0/1") as page:
        fold = page.get_by_role("button", name="equal turns")
        assert fold.inner_text() == "6 equal turns (1–6): show"
        rows = page.locator(".pairs > .pair")
        assert [rows.nth(n).get_attribute("aria-label") for n in range(rows.count())] == [
            "Turn 7, different",  # only A has it
            "Turn 8",  # the same action after another observation
            "Turn 9",
            "Turn 9, different",
            "End",
        ]
        assert page.locator(".parting").count() == 1
        assert "Only in A." in rows.nth(0).inner_text() and "The episode had ended." in rows.nth(3).inner_text()
        assert page.locator(".seen-diff").count() == 1
        page.keyboard.press("d")
        reaches(page, "Turn 7 | –")
        assert re.search(r"#/compare/0~[0-9a-f]{16}/1~[0-9a-f]{16}\?row=7$", page.url)
        page.keyboard.press("ArrowRight")
        reaches(page, "Turn 8 | 7")
        fold.click()
        reaches(page, "Turn 1")
        assert rows.count() == 11
        page.keyboard.press("End")
        reaches(page, "End")


@pytest.mark.slow
def test_goal_stays_in_sight_and_help_closes(browser: Any, address: str) -> None:
    with shown(browser, address, "#/episode/0", viewport={"width": 900, "height": 500}) as page:
        goal = page.locator(".floating-goal")
        assert not goal.is_visible()
        page.keyboard.press("End")
        until(page, "getComputedStyle(document.querySelector('.floating-goal')).visibility === 'visible'")
        assert "find the lamp" in goal.inner_text()
        help = page.locator("#help")
        page.keyboard.press("?")
        assert help.is_visible()
        page.keyboard.press("Escape")
        assert not help.is_visible()
        page.keyboard.press("?")
        page.evaluate("() => { location.hash = '#/runs'; }")
        page.wait_for_selector(".runs-table")
        assert not help.is_visible()
        page.keyboard.press("?")
        page.keyboard.press("?")
        assert not help.is_visible()


@pytest.mark.slow
def test_note_is_written_on_the_page(browser: Any, tmp_path: Path) -> None:
    from tests.viewer.showing import serving

    hostile = "<b>hm</b> <img src=x onerror=alert(1)>"
    path = save(tmp_path / "run.jsonl", *pair())
    with serving(path) as address, shown(browser, address, "#/episode/1") as page:
        page.get_by_role("button", name="Add a note or tags").click()
        page.get_by_label("Note", exact=True).last.fill(hostile)
        page.get_by_label("Tags, separated by commas").fill("good, odd")
        page.get_by_role("button", name="Save", exact=True).click()
        page.wait_for_selector(".note-text")
        assert page.locator(".note-text").inner_text() == hostile and page.locator(".note-text img").count() == 0
        assert [(note.text, note.tags) for note in read_notes(path).values()] == [(hostile, ("good", "odd"))]
        page.get_by_role("link", name="odd").click()
        page.wait_for_selector(".row .goal")
        assert page.locator(".row .id").all_inner_texts() == ["1"]


@pytest.mark.slow
def test_runs_are_sorted_and_lead_to_their_episodes(browser: Any, tmp_path: Path) -> None:
    from tests.viewer.showing import serving

    save(tmp_path / "bad.jsonl", record("t/1", "x", group="g"))
    save(tmp_path / "good.jsonl", record("t/1", "x", group="g", score=1.0, success=True), record("t/2", "x", group="h"))
    with serving(tmp_path) as address, page_of(browser, address + "#/runs") as page:
        names = page.locator(".runs-table tbody .col-name a")
        names.first.wait_for()
        assert names.all_inner_texts() == ["good.jsonl", "bad.jsonl"]  # by success
        page.get_by_role("button", name="Success").click()
        assert names.all_inner_texts() == ["bad.jsonl", "good.jsonl"]
        assert page.url.endswith("#/runs?sort=success&desc=0")
        page.reload()
        names.first.wait_for()
        assert names.all_inner_texts() == ["bad.jsonl", "good.jsonl"]
        names.nth(1).click()
        page.wait_for_selector(".big-figures")
        groups = page.locator(".runs-table tbody .col-group a")
        assert groups.all_inner_texts() == ["g", "h"]
        assert page.locator(".big-figures").inner_text().split("\n")[1].startswith("50")
        groups.nth(1).click()
        page.wait_for_selector(".row .goal")
        assert page.locator(".row .id").count() == 1
