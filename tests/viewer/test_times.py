"""The seconds of generation and environment, per turn and in all, where they are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.times import EpisodeTimes, TurnTimes
from agentgym_envs.viewer.api import Viewer
from tests.viewer.records import record, save
from tests.viewer.showing import page_of

TIMES = EpisodeTimes(0.0, 0.25, (TurnTimes(0.25, 1.5, 0.0312), TurnTimes(2.0, 0.125, 1.0)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("times")
    with_times = replace(record("t/1", "go", "stay"), times=TIMES)
    save(path / "a.jsonl", with_times, record("t/2", "go"), replace(record("t/3", "go"), times=TIMES))
    yield path


def test_times_are_those_of_the_record(folder: Path) -> None:
    viewer = Viewer([folder])
    viewer.index.refresh()
    first, without, of_others = (viewer.episode(number) for number in range(3))
    assert [turn["seconds"] for turn in first["turns"]] == [[1.5, 0.0312], [0.125, 1.0]]
    assert first["seconds"] == [1.625, pytest.approx(1.2812)]
    assert without["seconds"] is None and "seconds" not in without["turns"][0]
    assert "seconds" not in of_others["turns"][0], "the times are of another number of turns"


@pytest.mark.slow
def test_a_turn_and_the_end_show_them(browser: Any, address: str) -> None:
    with page_of(browser, address + "#/episode/0") as page:
        page.locator(".turn").first.wait_for()
        shown = [page.locator(".turn .marks").nth(index).inner_text() for index in range(3)]
    assert "1.5 s + 31.2 ms" in shown[0] and "125 ms + 1 s" in shown[1] and "1.6 s + 1.3 s" in shown[2]
    with page_of(browser, address + "#/episode/1") as page:
        page.locator(".turn").first.wait_for()
        assert " ms" not in page.locator(".turn .marks").first.inner_text()
