"""The learning-curve study: its page says what its figures say, its budget is kept, and a stop changes nothing."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from benchmarks.study import figures, gpu, page, pieces, plots
from benchmarks.study.__main__ import DOCS, RESULTS, main, read
from benchmarks.study.budget import Deadline, Ledger, TokenStages, cost, crossed, rate
from benchmarks.study.measuring import digest
from benchmarks.study.settings import BABYAI, GPU, HORIZONS, TEXTCRAFT, choose
from benchmarks.study.starts import draw

pytestmark = pytest.mark.slow  # of the benchmarks, daily use has the book's tests

TINY = {
    "budget": 900,
    "marks": 2,
    "demonstrations": 4,
    "warm_steps": 3,
    "warm_batch": 4,
    "tasks": 4,
    "tasks_per_step": 2,
    "group_size": 4,
    "micro_batch": 8,
    "max_turn_tokens": 12,
    "eval_tasks": 3,
}
LIMITS = [str(limit) for limit in TEXTCRAFT.limits]


def test_the_page_matches_the_figures() -> None:
    text = (DOCS / "study.md").read_text(encoding="utf-8")
    assert page.fill(text, read(RESULTS / "study.json"), read(RESULTS / "study-gpu.json")) == text
    assert text.count("<!-- study ") == text.count("<!-- end of study -->") == 4


def test_the_page_shows_the_figures_or_reports_that_none_exist() -> None:
    text = (DOCS / "study.md").read_text(encoding="utf-8")
    assert page.fill(text, None, None).count(page.NOT_RUN) == 4
    filled = page.fill(text, {"scenarios": {"textcraft": scenario()}}, None)
    assert filled.count(page.NOT_RUN) == 2 and "(study.png)" in filled
    # ScalingInter is 10 points above long in one seed and 20 in the other: a mean of 15, 12.7 standard errors of 5.
    assert "| ScalingInter − long | success at the end | +15 [-49, +79] | +10, +20 | no |" in filled
    assert "| ScalingInter − short | success at the end | +30 [+30, +30] | +30, +30 | yes, higher |" in filled
    assert page.fill(page.fill(filled, None, None), None, None) == page.fill(text, None, None)


def test_the_tables_show_means_over_seeds() -> None:
    found = scenario()
    rows = {row.split(" | ")[0]: row for row in page.final_table(found).split("\n")}
    assert rows["| long"].startswith("| long | 45 [-19, 109] |")
    assert figures.area(found)(found["runs"]["short"][0]) == pytest.approx((20 + 30) / 2)
    assert figures.decline(found)(run("long", 0, 0.7, 0.4)) == pytest.approx(30)
    assert "| long | 1,010 | 5,000 | 7 | 56 | 4.0 | 2.0 |" in page.cost_table(found)


def test_an_interval_over_seeds_uses_students_t() -> None:
    middle = figures.student([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.776 * math.sqrt(2.5 / 5)
    assert [middle.mean, middle.low, middle.high] == pytest.approx([3, 3 - half, 3 + half])
    assert math.isnan(figures.student([1.0]).low) and page.shown(figures.student([1.0])) == "1"
    assert page.verdict(figures.student([-5.0, -5.1, -4.9])) == "yes, lower"


def test_a_scenario_without_new_runs_keeps_its_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shutil.copy(DOCS / "study.md", tmp_path)
    (tmp_path / "study.json").write_text(json.dumps({"scenarios": {"textcraft": scenario()}}), encoding="utf-8")
    assert main(["render", "--work", str(tmp_path / "work"), "--docs", str(tmp_path), "--results", str(tmp_path)]) == 0
    assert "| ScalingInter − long | success at the end | +15 " in (tmp_path / "study.md").read_text(encoding="utf-8")


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plots.plot(tmp_path / "study.png", {"textcraft": scenario()})
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")


def test_stages_follow_tokens_and_not_steps(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.rewind(0)
    limit = TokenStages(TEXTCRAFT.stages("scalinginter"), 1000, ledger)
    for step, tokens in enumerate([249, 1, 249, 1, 800], start=1):
        ledger.add({"step": step, "sampled": tokens})
    assert [limit(step) for step in range(6)] == [2, 2, 4, 4, 8, 8]
    assert TokenStages(TEXTCRAFT.stages("short"), 1000, ledger)(5) == 2
    ledger.rewind(2)  # a run that goes on from the checkpoint of step 2
    again = Ledger(tmp_path / "ledger.jsonl")
    assert again.total("sampled") == 250 and TokenStages(limit.stages, 1000, again)(2) == 4


def test_the_ledger_counts_sampled_and_processed_tokens() -> None:
    trajectory = SimpleNamespace(turns=(1, 2), success=True)
    episode = SimpleNamespace(
        trajectory=trajectory, prompt_ids=[1] * 5, ids=[2] * 7, assistant_mask=[1, 1, 0, 0, 1, 1, 1]
    )
    row = cost(4, 3, [episode, episode], 1.5)
    assert (row["sampled"], row["processed"], row["turns"], row["won"]) == (10, 24, 4, 2)


def test_marks_and_learning_rate_follow_shares_of_the_budget() -> None:
    assert crossed(0, 99, 600, 6) == [] and crossed(99, 100, 600, 6) == [1] and crossed(100, 350, 600, 6) == [2, 3]
    assert crossed(599, 700, 600, 6) == [6]
    rates = [rate(share / 100) for share in range(101)]
    assert rates[0] == pytest.approx(0.2) and rates[100] == pytest.approx(0.1) and max(rates) == rates[5]
    assert rates[5:] == sorted(rates[5:], reverse=True)


def test_success_within_a_limit_is_read_from_a_longer_episode() -> None:
    games = [("a", 3, 3), ("a", 4, 4), ("b", 0, 8), ("b", 8, 8)]
    found = digest(games, (3, 5, 8))
    assert found["within"] == {"3": 0.25, "5": 0.5, "8": 0.75}
    assert found["kinds"]["a"] == {"3": 0.5, "5": 1.0, "8": 1.0} and found["turns"] == 5.75


@pytest.mark.slow
@pytest.mark.parametrize("settings", [TEXTCRAFT, BABYAI], ids=lambda settings: settings.scenario)
def test_the_tasks_need_different_horizons(settings: Any) -> None:
    """The short limit suffices the oracle for most of the first kind, and for a part of the second."""
    pytest.importorskip("minigrid")
    near, far = draw(settings, 30, "validation", 0)
    shares = [sum(len(one.turns) <= settings.short for one in group) / len(group) for group in (near, far)]
    assert shares[0] > 0.6 and shares[1] < 0.5
    assert max(len(one.turns) for one in far) <= settings.long


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--set changes scenario, bugdet, which it cannot; it can change short"):
        choose(None, {"scenario": "x", "bugdet": 1})
    assert [one.budget for one in choose(["babyai"], {"budget": 5})] == [5]


def test_other_settings_need_another_directory(tmp_path: Path) -> None:
    pieces.run_study(tmp_path, choose(["textcraft"], TINY), [0], 1, 0.0, TINY)
    with pytest.raises(UsageError, match="its budget is 900, not 901"):
        pieces.run_study(tmp_path, choose(["textcraft"], {**TINY, "budget": 901}), [0], 1, 0.0, {})


def test_gpu_commands_use_the_public_command_line(tmp_path: Path) -> None:
    plan = gpu.GpuPlan("base", tmp_path, tuple(GPU), horizons=HORIZONS)
    found = list(gpu.commands(plan))
    words = [" ".join(command.words) for command in found if isinstance(command.words, list)]
    assert sum(one.startswith("train sft") for one in words) == 3 and sum(one.startswith("eval") for one in words) == 21
    grown = [one for one in words if "--max_turns 4,7,10 --every 20" in one]
    assert [one.split()[1] for one in grown] == ["grpo", "ppo"]
    assert all(f"--model {tmp_path}/textcraft/warm-merged" in one for one in grown)


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.rotating
def test_a_stopped_run_resumes_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    home = pieces.Job("textcraft", "start", 0).home(tmp_path / "stopped")
    assert pieces.piece(pieces.Job("textcraft", "start", 0), tmp_path / "stopped", Deadline(), TINY) == 0
    other = pieces.Job("textcraft", "start", 0).home(tmp_path / "whole")
    shutil.copytree(home, other)
    job = pieces.Job("textcraft", "scalinginter", 0)
    assert pieces.piece(job, tmp_path / "whole", Deadline(), TINY) == 0
    codes = list(until_done(job, tmp_path / "stopped"))
    assert len(codes) > 3 and set(codes[:-1]) == {pieces.STOPPED}
    one, another = (json.loads((at / "scalinginter/figures.json").read_text()) for at in (home, other))
    for found in (one, another):
        del found["cpu_seconds"]
    assert one == another and one["marks"][-1]["sampled"] >= TINY["budget"]
    limits = [row["limit"] for row in Ledger(home / "scalinginter/ledger.jsonl").rows]
    assert limits == sorted(limits) and {limits[0], limits[-1]} == {TEXTCRAFT.short, TEXTCRAFT.long}
    assert sorted(path.name for path in (home / "scalinginter").iterdir()) == ["figures.json", "ledger.jsonl", "marks"]


@pytest.mark.train
def test_the_learning_rate_is_set_before_every_step(tmp_path: Path) -> None:
    import torch

    from benchmarks.study.training import Budget

    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.rewind(0)
    ledger.add({"step": 1, "sampled": TEXTCRAFT.budget / 2})
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    budget = Budget(None, ledger, TEXTCRAFT, tmp_path / "marks", Deadline())
    budget.on_step_begin(None, None, None, optimizer=optimizer)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(TEXTCRAFT.learning_rate * 0.55)
    assert not budget.is_spent


@pytest.mark.train
@pytest.mark.rotating
def test_the_gpu_part_runs_with_a_tiny_model(tmp_path: Path) -> None:
    from agentgym_trl.demonstrations import environment_corpus
    from agentgym_trl.tiny import save_tiny_model

    save_tiny_model(tmp_path / "tiny", environment_corpus(TEXTCRAFT.make, 50, groups=TEXTCRAFT.groups))
    small = {"steps": 1, "tasks": 1, "group_size": 2, "micro_batch": 2, "warm_steps": 2, "demonstrations": 16}
    words = ["gpu", "--model", str(tmp_path / "tiny"), "--work", str(tmp_path / "work"), "--only", "textcraft"]
    words += ["--algorithms", "grpo", "--horizons", "long", "--out", str(tmp_path / "study-gpu.json")]
    words += ["--set", json.dumps({**small, "lora": 2, "eval_tasks": 2})]
    assert main([*words, "--minutes", "0"]) == pieces.STOPPED and not (tmp_path / "study-gpu.json").exists()
    assert main(words) == 0
    found = json.loads((tmp_path / "study-gpu.json").read_text())
    assert [one["steps"] for one in found["runs"]] == [1] and found["runs"][0]["tokens"] > 0
    assert "| TextCraft | grpo | long | 1 |" in page.gpu_table(found)
    assert main(words) == 0  # nothing is left to do


def until_done(job: pieces.Job, work: Path) -> Iterator[int]:
    """Pieces of one step each."""
    code = pieces.STOPPED
    while code == pieces.STOPPED:
        code = pieces.piece(job, work, OneStep(), TINY)
        yield code


class OneStep(Deadline):
    """Has passed at every second look: so evaluations are made, too."""

    looks = 0

    @property
    def passed(self) -> bool:
        type(self).looks += 1
        return type(self).looks % 2 == 0


def run(horizon: str, seed: int, *success: float) -> dict[str, Any]:
    marks = [
        {
            "sampled": 505.0 * number,
            **digest(
                [("near", 2, 2)] * round(50 * share) + [("far", 0, 8)] * round(50 * (1 - share)), TEXTCRAFT.limits
            ),
        }
        for number, share in enumerate(success, start=1)
    ]
    for mark, share in zip(marks, success, strict=True):
        mark["within"] = dict.fromkeys(LIMITS, share)
        mark["kinds"] = {kind.name: dict.fromkeys(LIMITS, share) for kind in TEXTCRAFT.kinds}
    totals = {"steps": 7, "sampled": 1010.0, "processed": 5000.0, "episodes": 56, "cpu_seconds": 120.0}
    training = [{"won": 0.5, "turns": 4.0, "limit": 8.0}, None] * 6
    return {"horizon": horizon, "seed": seed, **totals, "marks": marks, "greedy": marks[-1], "training": training}


def scenario() -> dict[str, Any]:
    ends = {"short": (0.3, 0.3), "long": (0.5, 0.4), "scalinginter": (0.6, 0.6)}
    runs = {name: [run(name, seed, 0.2, end) for seed, end in enumerate(own)] for name, own in ends.items()}
    start = {"sampled": digest([("near", 2, 2), ("far", 0, 8)], TEXTCRAFT.limits)}
    return {"settings": figures.recorded(TEXTCRAFT), "starts": [start, start], "runs": runs}
