"""The training page in Chromium: curves, the turn limit as steps, and links to the episodes of a step."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.records import record, save
from tests.viewer.showing import page_of, serving

pytestmark = pytest.mark.slow  # the fast browser tests are in test_pages.py

LIMITS = {"TextCraft": (10, 20, 30), "BabyAI": (6, 13, 20)}
STEPS = range(1, 31)


def limit(env: str, step: int) -> int:
    """The turn limit, which changes after 10 and 20 steps."""
    return LIMITS[env][min(2, (step - 1) // 10)]


def row(step: int, shift: float = 0.0) -> dict[str, float]:
    found = {"step": step, "loss": 1 / step, "entropy": 0.5, "clip_ratio/low_mean": 0.1, "rollout/success": step / 40}
    for env, share in (("TextCraft", step / 30), ("BabyAI", step / 60 + shift)):
        own = {"success": share, "turns": limit(env, step) * 0.8, "max_turns": limit(env, step)}
        found |= {f"rollout/{env}/{name}": value for name, value in own.items()}
    return found


def write_run(path: Path, *rows: dict[str, Any]) -> Path:
    path.mkdir(parents=True)
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    evaluated = {"step": 10, "eval_rollout/TextCraft/success": 0.9, "eval_rollout/success": 0.9}
    path = write_run(tmp_path / "run", *map(row, STEPS), evaluated)
    save(path / "trajectories" / "step-4.jsonl", record("t/1", "go", env_id="AgentGym/TextCraft-v0"))
    return path


def open_page(browser: Any, address: str, **options: Any) -> Any:
    return page_of(browser, f"{address}#/training", **options)


def moves(page: Any, series: str, kind: str) -> list[str]:
    """The commands of the paths of a plot, without their numbers, by curve."""
    page.locator(f'[data-series="{series}"] .plot').wait_for()
    found = page.evaluate(
        "([series, kind]) => [...document.querySelectorAll(`[data-series='${series}'] .curve`)]"
        ".filter((line) => line.classList.contains(kind) || (kind === 'plain' && line.classList.length === 1))"
        ".map((line) => line.querySelector('.main').getAttribute('d'))",
        [series, kind],
    )
    return [re.sub(r"[^MLHV]", "", path) for path in found]


@pytest.mark.slow
def test_turn_limit_is_drawn_as_steps(browser: Any, run: Path) -> None:
    with serving(run) as address, open_page(browser, address) as page:
        limits = moves(page, "turns", "limit")
        assert limits == ["M" + "HV" * (len(STEPS) - 1)] * 2
        heights = page.evaluate(
            "() => [...document.querySelectorAll('[data-series=turns] .limit .main')]"
            ".map((line) => new Set(line.getAttribute('d').match(/(?<=[V,])[0-9.]+/g)).size)"
        )
        assert heights == [3, 3], "each of three limits has its height"
        assert moves(page, "turns", "plain") == ["M" + "L" * (len(STEPS) - 1)] * 2
        assert page.locator("[data-series=turns] .limit-name").count() == 1


def test_environments_are_drawn_separately_or_together(browser: Any, run: Path) -> None:
    with serving(run) as address, open_page(browser, address) as page:
        assert len(moves(page, "success", "plain")) == 2 and len(moves(page, "success", "eval")) == 1
        assert page.locator(".legend li").all_inner_texts() == ["BabyAI", "TextCraft", "evaluated", "turn limit"]
        dashes = page.evaluate(
            "[...document.querySelectorAll('[data-series=success] .curve:not(.eval) .main')]"
            ".map((line) => line.getAttribute('stroke-dasharray'))"
        )
        assert len(set(dashes)) == 2, "lines differ in more than colour"
        assert len(moves(page, "loss", "plain")) == 1, "metrics without an environment have one line"
        page.get_by_role("button", name="All together").click()
        assert len(moves(page, "success", "plain")) == 1


def test_series_are_selected_and_smoothed(browser: Any, run: Path) -> None:
    with serving(run) as address, open_page(browser, address) as page:
        page.get_by_text("Plotted series").click()
        page.get_by_label("clip_ratio/low_mean").check()
        assert len(moves(page, "clip_ratio/low_mean", "plain")) == 1
        page.get_by_role("checkbox", name="Entropy").uncheck()
        assert page.locator("[data-series=entropy]").count() == 0
        assert page.locator("[data-series=loss] .raw").count() == 1
        page.get_by_label("Smoothing").fill("0")
        assert page.locator("[data-series=loss] .raw").count() == 0


def test_values_are_shown_and_link_to_episodes(browser: Any, run: Path) -> None:
    with serving(run) as address, open_page(browser, address) as page:
        plot = page.get_by_role("slider", name="Success: step")
        plot.focus()
        page.keyboard.press("Home")
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        assert plot.get_attribute("aria-valuenow") == "5"
        text = plot.get_attribute("aria-valuetext")
        assert text == f"step 5: BabyAI {500 / 60:.1f} %, TextCraft {500 / 30:.1f} %"
        tip = page.locator("[data-series=turns] .tip")
        assert "step 5" in tip.inner_text() and "4.8" in tip.inner_text(), "all plots show the same step"
        page.keyboard.press("Enter")
        page.wait_for_url("**/#/?step=5")  # counted as in the plots
        page.get_by_text("t/1").first.wait_for()


def test_step_without_episodes_has_a_note(browser: Any, run: Path) -> None:
    with serving(run) as address, open_page(browser, address) as page:
        box = page.locator("[data-series=loss] .plot").bounding_box()
        page.mouse.click(box["x"] + box["width"] - 14, box["y"] + 60)
        page.get_by_text("There are no recorded episodes of step 30.").wait_for()
        assert page.url.endswith("#/training")


def test_growing_run_is_followed(browser: Any, run: Path) -> None:
    with serving(run) as address, open_page(browser, address) as page:
        plot = page.get_by_role("slider", name="Loss: step")
        plot.focus()
        assert plot.get_attribute("aria-valuemax") == "30"
        with (run / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row(31)) + "\n" + '{"step": 32, "lo')
        page.locator('[data-series=loss] .plot[aria-valuemax="31"]').wait_for()
        assert page.evaluate("document.activeElement.ariaLabel") == "Loss: step", "the focus stays"


def test_runs_are_overlaid(browser: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "one", *map(row, STEPS))
    write_run(tmp_path / "runs" / "two <b>", *(row(step, 0.2) for step in STEPS))
    with serving(tmp_path / "runs") as address, open_page(browser, address) as page:
        assert len(moves(page, "success", "plain")) == 4 and len(moves(page, "loss", "plain")) == 2
        names = page.locator(".legend li").all_inner_texts()
        assert names[:4] == [f"{name} · {env}" for name in ("one", "two <b>") for env in ("BabyAI", "TextCraft")]
        page.get_by_role("button", name="one").click()
        assert len(moves(page, "success", "plain")) == 2
        page.get_by_role("button", name="two <b>").click()
        assert len(moves(page, "success", "plain")) == 2, "one run is always shown"


@pytest.mark.slow
def test_values_are_available_as_a_table(browser: Any, run: Path) -> None:
    with serving(run) as address, open_page(browser, address) as page:
        page.get_by_text("The numbers as a table").click()
        head = page.locator(".numbers thead").inner_text().lower()
        assert all(name in head for name in ("step", "environment", "success", "turn limit", "loss"))
        texts = page.locator(".numbers tbody tr", has_text="TextCraft").first.inner_text().split("\t")
        assert texts[:4] == ["30", "TextCraft", "no", "1"] and "30" in texts[4:]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_training_page_fits_a_phone(scheme: str, browser: Any, run: Path) -> None:
    options = {"viewport": {"width": 390, "height": 800}, "color_scheme": scheme}
    with serving(run) as address, open_page(browser, address, **options) as page:
        page.locator("[data-series=success] .plot").wait_for()
        page.get_by_text("Plotted series").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_page_without_runs_has_a_note(browser: Any, tmp_path: Path) -> None:
    save(tmp_path / "t.jsonl", record("t/1", "go"))
    with serving(tmp_path) as address, open_page(browser, address) as page:
        page.get_by_text("No training run here").wait_for()
