"""The benchmark of the audit: parts, and wins that only all parts together show to be no luck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.core import text_env
from agentgym_envs.errors import UnknownTask
from benchmarks import audit as benchmark
from benchmarks.audit import Target, measure, subject_of, tasks_of, templates, unlikely

CORRIDOR = Target("tests.validate.toy:CorridorEnv", 1, 2)


def cell(wins: int, chances: list[float] | None, group: str = "one") -> dict[str, Any]:
    return {"attacker": "yes or no", "label": "yes", "group": group, "wins": wins, "chances": chances}


def test_wins_of_all_parts_are_compared_with_luck_together() -> None:
    part = {"cells": [cell(1, [0.02]), cell(1, None, "unknown"), cell(1, [0.5], "easy")]}
    assert unlikely([part]) == []
    [found] = unlikely([part, part, part])
    assert (found["group"], found["wins"], found["episodes"]) == ("one", 3, 3)


def test_a_later_run_plays_the_missing_parts_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(benchmark.TARGETS, "toy", CORRIDOR)
    whole = measure("toy", 60, tmp_path, 0)
    files = sorted((tmp_path / "toy").iterdir())
    files[-1].unlink()
    played: list[str] = []
    play = benchmark.play

    def counted(target: Target, part: Any, budget: float, seed: int) -> Any:
        played.append(part.file)
        return play(target, part, budget, seed)

    monkeypatch.setattr(benchmark, "play", counted)
    again = measure("toy", 60, tmp_path, 0)
    assert played == [files[-1].name]
    assert [again[name] for name in ("episodes", "parts")] == [whole[name] for name in ("episodes", "parts")]


@pytest.mark.slow
def test_templates_that_another_table_has_are_left_out() -> None:
    pytest.importorskip("playwright")
    first, second = benchmark.TARGETS["WebArena"], benchmark.TARGETS["WebArena, table 2"]
    one, two = (set[str]().union(*templates(tasks_of(target)).values()) for target in (first, second))
    assert len(one) > 300 and len(two) > 300 and not one & two
    with subject_of(second, 60).fresh() as env:
        assert text_env(env).tasks.get("webarena/shopping-move-house/1/1")
        with pytest.raises(UnknownTask):
            text_env(env).reset(options={"task": next(iter(tasks_of(first).sample())).id})
