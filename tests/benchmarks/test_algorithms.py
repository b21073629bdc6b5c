"""The benchmark of algorithms: its tables, and the tables of the pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.algorithms import IMITATION, ONLINE, START, interval, lead, markdown

ROOT = Path(__file__).parents[2]
QUICKSTART = (START, *IMITATION, "AgentEvol", "GRPO")


def runs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))
    return found


def test_the_interval_is_students() -> None:
    """scipy.stats.t.interval(0.95, 4, 3, sem([1, 2, 3, 4, 5])) is 1.0368 to 4.9632."""
    middle, low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert middle == 3 and low == pytest.approx(1.0368, abs=1e-3) and high == pytest.approx(4.9632, abs=1e-3)


def test_the_lead_is_paired_by_seed() -> None:
    def arm(*values: float) -> list[dict[str, Any]]:
        return [{"results": {"x": {"success": {"mean": value}}}} for value in values]

    assert lead({"GRPO": arm(0.9, 0.7), "other": arm(0.8, 0.6)}, "other", "x") == "+10 [+10, +10]"


@pytest.mark.parametrize(
    ("page", "file", "arms", "tables"),
    [
        ("quickstart.md", "algorithms.json", QUICKSTART, 2),
        ("quickstart.md", "algorithms-babyai.json", QUICKSTART, 1),
        ("algorithms.md", "algorithms.json", None, 1),
    ],
)
def test_the_pages_have_the_measured_tables(page: str, file: str, arms: tuple[str, ...] | None, tables: int) -> None:
    found = runs(file)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    shown = markdown(found if arms is None else {name: found[name] for name in arms}).split("\n\n")[:tables]
    assert len(shown) == tables and all(table in text for table in shown)


def test_every_seed_has_the_same_arms_and_settings() -> None:
    found = runs("algorithms.json")
    assert list(found) == [START, *IMITATION, "AgentEvol", "DPO", *ONLINE]
    seeds = [[run["seed"] for run in own] for own in found.values()]
    assert len(seeds[0]) >= 5 and all(each == seeds[0] for each in seeds)
    for own in found.values():
        settings = [{**run["settings"], "seed": 0} for run in own]
        assert all(each == settings[0] for each in settings)
