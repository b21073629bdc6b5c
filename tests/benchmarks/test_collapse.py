"""The laboratory for collapse: when a run has collapsed, what warned of it, and what its page shows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from benchmarks.study import collapse_page, collapse_plot, pieces
from benchmarks.study.arms import ARMS
from benchmarks.study.collapse import LAB, NONE, REMEDIES, RISKS, SEEDS, LabRun, auc, shipped_signs, windows
from benchmarks.study.settings import TEXTCRAFT

pytestmark = [pytest.mark.slow, pytest.mark.train]


def run(risk: str, remedy: str, seed: int, scores: list[float], entropy: list[float]) -> LabRun:
    log = {"rollout/score": scores, "rollout/success": scores, "entropy": entropy}
    return LabRun(risk, remedy, seed, log, 100 * scores[-1], [(50.0, 40.0), (100.0, 100 * scores[-1])])


CALM = run("LoRA", "KL", 101, [0.6] * 60, [0.5] * 60)
# The entropy rises at the 21st rollout; the score is 0 from the 41st on. The mean of ten scores is below 0.3 with the
# sixth of these.
LOST = run("LoRA", NONE, 101, [0.6] * 40 + [0.0] * 20, [0.5] * 20 + [3.0] * 40)


def test_a_sign_counts_from_its_first_warning_to_the_collapse() -> None:
    assert CALM.collapsed_at is None and CALM.first_signs() == {}
    assert LOST.collapsed_at == 46
    # A mean of ten entropies is above 1.5 with the fifth that is 3.0; a mean of ten scores below 0.45 with the third 0.
    assert LOST.first_signs() == {"entropy": 25, "score": 43}
    found = shipped_signs([CALM, LOST])
    assert list(found) == ["entropy", "score", "any"]
    assert found["entropy"] == found["any"] == (1, 1, 21, 0, 1) and found["score"].lead == 3


def test_a_warning_without_a_collapse_is_a_false_alarm() -> None:
    nervous = run("LoRA", "KL", 102, [0.6] * 60, [0.5] * 20 + [3.0] * 40)
    found = shipped_signs([nervous, CALM])["entropy"]
    assert (found.before, found.collapsed, found.lead, found.false, found.others) == (0, 0, None, 1, 2)


def test_a_series_is_judged_in_the_rollouts_before_the_collapse() -> None:
    found = windows(LOST, "entropy")
    assert len(found) == 36 and sum(soon for _, soon in found) == 10  # rollouts 10 to 45
    assert found[0] == (0.0, False) and found[-1] == (2.5, True)
    assert {soon for _, soon in windows(CALM, "entropy")} == {False}


def test_the_area_under_the_curve_counts_ties_half() -> None:
    assert auc([(1.0, False), (2.0, True), (3.0, True)]) == 1.0
    assert auc([(1.0, False), (2.0, True), (3.0, True)], -1) == 0.0
    assert auc([(2.0, False), (2.0, True), (1.0, False), (3.0, True)]) == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    assert math.isnan(auc([(1.0, True)]))


def test_every_arm_runs_on_some_seeds_of_one_warm_start() -> None:
    assert len(LAB) == len(RISKS) * len(REMEDIES) and not LAB.keys() & ARMS.keys()
    jobs = pieces.jobs_of([TEXTCRAFT], range(101, 131), ["all lengths", "short only"], list(LAB))
    assert [len(own) - 1 for own in jobs] == [len(LAB)] * SEEDS


def test_the_page_and_the_plot_show_the_runs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for one in (CALM, LOST):
        store(tmp_path, one)
    figures = json.loads(json.dumps(collapse_page.collect(tmp_path)))
    text = collapse_page.tables(figures)
    assert "| LoRA | 1 of 1; 0 | 0 of 1; 60 |" in text
    assert "| entropy | 1 of 1 | 21 | 0 of 1 |" in text
    # The ten windows right before the collapse tie with 11 of the 77 others, and are above 66.
    assert "| `entropy` | 0.93 [" in text
    collapse_plot.plot(tmp_path / "collapse.png", figures)
    assert (tmp_path / "collapse.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_collapse_no_series_is_judged(tmp_path: Path) -> None:
    store(tmp_path, CALM)
    assert collapse_page.collect(tmp_path)["series"] == {}


def store(work: Path, one: LabRun) -> None:
    """Write a run as the study does."""
    folder = work / f"textcraft/seed-{one.seed}/all-lengths" / f"{one.risk}-{one.remedy}".replace(" ", "-")
    folder.mkdir(parents=True)
    within = {"within": {str(TEXTCRAFT.very_long): one.success / 100}}
    training: list[dict[str, Any] | None] = [{"won": success / 100} for _, success in one.curve]
    marks = [{"success": {"sampled": within}}]
    (folder / "figures.json").write_text(json.dumps({"seed": one.seed, "training": training, "marks": marks}))
    (folder / "log.json").write_text(json.dumps(one.log))
