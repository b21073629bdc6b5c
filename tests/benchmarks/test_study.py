"""The study of turn limits: its page says what its figures say, its budget is kept, and a stop changes nothing."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from benchmarks.study import cells, figures, gpu, links, page, pieces, plots, recipes
from benchmarks.study.__main__ import DOCS, RESULTS, ROOT, main, read
from benchmarks.study.arms import ARMS, SHORT_ONLY, Gated, Random, Stages
from benchmarks.study.budget import Deadline, Ledger, cost, crossed, rate
from benchmarks.study.measuring import digest
from benchmarks.study.settings import GPU, HORIZONS, PAIRS, SCENARIOS, STARTS, TEXTCRAFT, choose
from benchmarks.study.starts import demonstrations, draw
from benchmarks.study.statistics import compare, holm, sign_flip, student

pytestmark = pytest.mark.slow  # of the benchmarks, daily use has the book's tests

TINY = {
    "budget": 2500,
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
KINDS = [kind.name for kind in TEXTCRAFT.kinds]


def test_the_page_matches_the_figures() -> None:
    text = (DOCS / "study.md").read_text(encoding="utf-8")
    assert page.fill(text, read(RESULTS / "study.json"), read(RESULTS / "study-gpu.json")) == text
    assert text.count("<!-- study ") == text.count("<!-- end of study -->") == 6


def test_the_page_shows_the_figures_or_reports_that_none_exist() -> None:
    text = (DOCS / "study.md").read_text(encoding="utf-8")
    assert page.fill(text, None, None).count(page.NOT_RUN) == 6
    filled = page.fill(text, {"scenarios": {"textcraft": scenario()}, "collapse": {}}, None)
    assert filled.count(page.NOT_RUN) == 4 and "(study.png)" in filled
    # "growing" is 10 points above "long" in one seed and 20 in the other: a mean of 15, 12.7 standard errors of 5.
    assert "| growing − long | 2 | +15 [-49, +79] | 1.000 | undecided |" in filled
    assert page.fill(page.fill(filled, None, None), None, None) == page.fill(text, None, None)


def test_the_tables_show_means_over_seeds() -> None:
    found = scenario()
    runs = found["starts"]["all lengths"]
    rows = {row.split(" | ")[0]: row for row in page.final_table(runs, found["settings"]).split("\n")}
    assert rows["| long"].startswith("| long | 2 | 45 [-19, 109] | 45 [-19, 109] |")
    assert rows["| warm start"].startswith("| warm start | 2 | 10 [10, 10] |")
    # "short" reaches 75 % nowhere; "very long" once, half of the way from 60 to 90 % between 505 and 1010 tokens
    costs = {row.split(" | ")[0]: row for row in page.cost_table(runs, found["settings"]).split("\n")}
    assert costs["| short"].startswith("| short |  | 0 of 2 | 2 of 2 | 7 | 1 | 5 | 120 |")
    assert costs["| very long"].startswith("| very long | 1 | 1 of 2 | ")
    assert figures.tokens_to(75, page.limits_of(found["settings"]), 12)(runs["very long"][0]) == pytest.approx(757.5)
    assert figures.decline(page.limits_of(found["settings"]), 12)(runs["short"][1]) == pytest.approx(30)


def test_an_interval_over_seeds_uses_students_t() -> None:
    middle = student([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.776 * math.sqrt(2.5 / 5)
    assert [middle.mean, middle.low, middle.high] == pytest.approx([3, 3 - half, 3 + half], rel=1e-3)
    assert math.isnan(student([1.0]).low) and cells.shown(student([1.0])) == "1"


def test_a_comparison_distinguishes_different_equivalent_and_undecided() -> None:
    assert sign_flip([1.0, 2.0, 3.0]) == pytest.approx(2 / 8)  # only all signs equal reach the sum of 6
    assert sign_flip([1.0] * 20) < 1e-4 and sign_flip([1.0, -1.0] * 10) > 0.9
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert compare([10.0, 11.0, 9.0, 10.0, 10.5, 9.5]).verdict == "higher"
    assert compare([-2.0, -2.1, -1.9, -2.0, -2.2, -1.8]).verdict == "lower, by less than 4"
    assert compare([1.0, -1.0, 0.5, -0.5, 1.0, -1.0]).verdict == "equivalent"
    assert compare([20.0, -20.0, 10.0, -10.0]).verdict == "undecided" and compare([5.0]).verdict == "one seed"


def test_a_scenario_without_new_runs_keeps_its_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shutil.copy(DOCS / "study.md", tmp_path)
    (tmp_path / "study.json").write_text(
        json.dumps({"scenarios": {"textcraft": scenario()}, "collapse": {}}), encoding="utf-8"
    )
    assert main(["render", "--work", str(tmp_path / "work"), "--docs", str(tmp_path), "--results", str(tmp_path)]) == 0
    assert "| growing − long | 2 | +15 " in (tmp_path / "study.md").read_text(encoding="utf-8")
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")


def test_seeds_of_several_directories_are_merged() -> None:
    def of(*seeds: int, **settings: Any) -> dict[str, Any]:
        own: dict[str, Any] = scenario()
        runs = {arm: [{**run, "seed": seed} for seed, run in zip(seeds, runs, strict=False)]
                for arm, runs in own["starts"]["all lengths"].items()}  # fmt: skip
        return {
            "textcraft": {"settings": own["settings"] | settings, "starts": {"all lengths": runs, "short only": {}}}
        }

    def seeds(found: Any) -> list[int]:
        return [run["seed"] for run in found["textcraft"]["starts"]["all lengths"]["growing"]]

    assert seeds(figures.merge(of(103, 101), of(102))) == [101, 102, 103]
    assert seeds(figures.merge({}, of(102))) == [102]
    found = figures.merge(of(101), (new := of(101)))["textcraft"]["starts"]["all lengths"]["growing"]
    assert found[0] is new["textcraft"]["starts"]["all lengths"]["growing"][0]
    assert seeds(figures.merge(of(103, 101), of(102, budget=1))) == [102], "other settings replace all runs"


def test_every_planned_comparison_and_colour_is_of_core_arms() -> None:
    core = {name for name, arm in ARMS.items() if arm.is_core}
    assert set(plots.COLOURS) == core and {name for pair in PAIRS for name in pair} <= core
    few = TEXTCRAFT.few
    jobs = pieces.jobs_of([TEXTCRAFT], range(101, 101 + few + 1), STARTS, list(ARMS))
    assert sum(len(own) - 1 for own in jobs) == few * len(ARMS) + len(core) + few * len(SHORT_ONLY)
    assert all(not own[0].arm and len({job.seed for job in own}) == 1 for own in jobs)


def test_the_chains_of_crafts_share_their_steps() -> None:
    """A long goal needs no step that a short one of another kind does not show."""
    assert json.loads(recipes.RECIPES.read_text(encoding="utf-8")) == recipes.make_table()
    table: Any = recipes.make_table()
    steps = {
        goal: [
            (product.split("_")[1], part.split("_")[1])
            for _, product, _, [[part, _]], _ in table["recipes"]
            if product.split("_")[0] == goal.split("_")[0] and product.split("_")[1] in recipes.FORMS
        ][: int(depth)]
        for depth, goals in table["goals"].items()
        for goal in goals
    }
    short = {step for depth in ("1", "3") for goal in table["goals"][depth] for step in steps[goal]}
    assert {step for goal in table["goals"]["7"] for step in steps[goal]} <= short


def test_stages_follow_tokens_and_not_steps(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.rewind(0)
    settings = replace(TEXTCRAFT, budget=1000)
    limit = Stages()(settings, ledger)
    for step, tokens in enumerate([249, 1, 249, 1, 800], start=1):
        ledger.add({"step": step, "sampled": tokens})
    assert [limit(step) for step in range(6)] == [4, 4, 8, 8, 12, 12]
    ledger.rewind(2)  # a run that goes on from the checkpoint of step 2
    again = Ledger(tmp_path / "ledger.jsonl")
    assert again.total("sampled") == 250 and Stages()(settings, again)(2) == 8


def test_a_gate_opens_when_success_under_the_present_limit_no_longer_rises(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.rewind(0)
    limit = Gated(0.1, steps=1)(TEXTCRAFT, ledger)
    for step, won in enumerate([2, 4, 4, 8, 9, 9, 1, 9], start=1):
        ledger.add({"step": step, "won": won, "episodes": 10})
    # step 3 is not above 2; under the second limit 5 is above 4 by 0.1, and 6 is not above 5
    assert [limit(step) for step in range(9)] == [4, 4, 4, 8, 8, 8, 12, 12, 12]


def test_random_limits_repeat_after_a_resume(tmp_path: Path) -> None:
    limit, again = (Random()(TEXTCRAFT, Ledger(tmp_path / "none")) for _ in range(2))
    first, second = ([limit(step) for _ in range(40)] for step in (0, 1))
    assert first != second and second == [again(1) for _ in range(40)]
    assert set(first + second) == set(range(TEXTCRAFT.short, TEXTCRAFT.long + 1))


def test_the_ledger_counts_sampled_and_processed_tokens() -> None:
    trajectory = SimpleNamespace(turns=(1, 2), success=True, meta={"max_turns": 3})
    episode = SimpleNamespace(
        trajectory=trajectory, prompt_ids=[1] * 5, ids=[2] * 7, assistant_mask=[1, 1, 0, 0, 1, 1, 1]
    )
    row = cost(4, [episode, episode], 1.5)
    assert (row["sampled"], row["processed"], row["turns"], row["won"], row["limit"]) == (10, 24, 4, 2, 3)


def test_marks_and_learning_rate_follow_shares_of_the_budget() -> None:
    assert crossed(0, 99, 600, 6) == [] and crossed(99, 100, 600, 6) == [1] and crossed(100, 350, 600, 6) == [2, 3]
    assert crossed(599, 700, 600, 6) == [6]
    rates = [rate(share / 100) for share in range(101)]
    assert rates[0] == pytest.approx(0.2) and rates[100] == pytest.approx(0.1) and max(rates) == rates[5]
    assert rates[5:] == sorted(rates[5:], reverse=True)


def test_success_within_a_limit_is_read_from_a_longer_episode() -> None:
    games = [(KINDS[0], 3, 3), (KINDS[0], 8, 8), (KINDS[1], 0, 20), (KINDS[1], 18, 18)]
    found = digest(games * 2 + [(name, 4, 4) for name in KINDS[2:]] * 4, TEXTCRAFT)
    assert found["kinds"][KINDS[0]] == {"4": 0.5, "8": 1.0, "12": 1.0, "20": 1.0}
    assert found["kinds"][KINDS[1]] == {"4": 0.0, "8": 0.0, "12": 0.0, "20": 0.5}
    assert found["within"] == {"4": 0.625, "8": 0.75, "12": 0.75, "20": 0.875}


def test_no_page_of_the_held_out_ways_is_on_a_way_in_training() -> None:
    pages = {split: {page for names, _ in own for page in names} for split, own in links.chains().items()}
    assert {split: len(names) for split, names in pages.items()} == {
        split: links.LENGTH * count for split, count in links.SPLITS.items()
    }
    assert not pages["train"] & pages["test"] and not pages["validation"] & pages["test"]


@pytest.mark.parametrize("settings", SCENARIOS.values(), ids=lambda settings: settings.scenario)
def test_the_tasks_have_the_distances_of_their_kinds(settings: Any) -> None:
    pytest.importorskip({"babyai": "minigrid", "search": "tantivy"}.get(settings.scenario, "gymnasium"))
    from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_many_text, run_sync

    for kind, drawn in zip(settings.kinds, draw(settings, settings.kinds, 3, "train", 0), strict=True):
        specs = [EpisodeSpec(item.task.id, item.seed) for item in drawn]
        played = run_sync(play_many_text(specs, settings.make, OraclePolicy, limits=Limits(20)))
        assert {len(one.turns) for one in played} == {kind.turns}, kind.name


def test_the_teacher_is_careless_and_may_show_short_tasks_only() -> None:
    settings = replace(TEXTCRAFT, demonstrations=3)
    shown = {start: demonstrations(settings, start) for start in STARTS}
    assert [len(shown[start]) for start in STARTS] == [12, 6]
    assert all(one.task.group in ("depth-1", "depth-3") and one.success for one in shown["short only"])
    actions = [turn.action for one in shown["all lengths"] for turn in one.turns]
    assert 0.3 < sum(action == "Action: wait" or action == "wait" for action in actions) / len(actions) < 0.7


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--set changes scenario, bugdet, which it cannot; it can change eval_split"):
        choose(None, {"scenario": "x", "bugdet": 1})
    assert [one.budget for one in choose(["babyai"], {"budget": 5})] == [5]


def test_other_settings_need_another_directory(tmp_path: Path) -> None:
    pieces.run_study(tmp_path, choose(["textcraft"], TINY), [], 1, 0.0, TINY)
    with pytest.raises(UsageError, match="its budget is 2500, not 2501"):
        pieces.run_study(tmp_path, choose(["textcraft"], {**TINY, "budget": 2501}), [], 1, 0.0, {})


def test_gpu_commands_use_the_public_command_line(tmp_path: Path) -> None:
    plan = gpu.GpuPlan("base", tmp_path, tuple(GPU), horizons=HORIZONS)
    found = list(gpu.commands(plan))
    words = [" ".join(command.words) for command in found if isinstance(command.words, list)]
    assert sum(one.startswith("train sft") for one in words) == 3 and sum(one.startswith("eval") for one in words) == 21
    grown = [one for one in words if "--max_turns 4,7,10 --every 20" in one]
    assert [one.split()[1] for one in grown] == ["grpo", "ppo"]
    assert all(f"--model {tmp_path}/textcraft/warm-merged" in one for one in grown)


@pytest.mark.train
@pytest.mark.rotating
def test_a_stopped_run_resumes_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    start, job = pieces.Job("textcraft", 0), pieces.Job("textcraft", 0, "all lengths", "growing")
    assert (
        pieces.piece(start, tmp_path / "stopped", Deadline(), TINY) == 0 and start.result(tmp_path / "stopped").exists()
    )
    home, other = job.home(tmp_path / "stopped"), job.home(tmp_path / "whole")
    shutil.copytree(home, other)
    assert pieces.piece(job, tmp_path / "whole", Deadline(), TINY) == 0
    codes = list(until_done(job, tmp_path / "stopped"))
    assert len(codes) > 3 and set(codes[:-1]) == {pieces.STOPPED} and job.result(tmp_path / "stopped").exists()
    one, another = (json.loads((at / "all-lengths/growing/figures.json").read_text()) for at in (home, other))
    for found in (one, another):
        del found["cpu_seconds"]
    assert one == another and one["marks"][-1]["sampled"] >= TINY["budget"]
    assert set(one["marks"][-1]["success"]) == {"sampled", "greedy", "slip"}
    limits = [row["limit"] for row in Ledger(home / "all-lengths/growing/ledger.jsonl").rows]
    assert limits == sorted(limits) and {limits[0], limits[-1]} == {TEXTCRAFT.short, TEXTCRAFT.long}
    assert sorted(path.name for path in (home / "all-lengths/growing").iterdir()) == [
        "figures.json",
        "ledger.jsonl",
        "log.json",
        "marks",
    ]


@pytest.mark.train
@pytest.mark.rotating
def test_a_backward_run_trains_on_the_turns_after_the_oracles(tmp_path: Path) -> None:
    from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_many_text, run_sync
    from agentgym_trl.models import load_tokenizer, make_codec
    from benchmarks.study.prefixes import recorded, without_prefix

    job = pieces.Job("textcraft", 0, "short only", "backward")
    assert pieces.piece(pieces.Job("textcraft", 0), tmp_path, Deadline(), TINY) == 0
    assert pieces.piece(job, tmp_path, Deadline(), TINY) == 0 and job.result(tmp_path).exists()
    codec = make_codec(load_tokenizer(str(job.home(tmp_path) / "tiny")))
    item = draw(TEXTCRAFT, TEXTCRAFT.kinds[2:3], 1, "train", 0)[0][0]
    plan = run_sync(
        play_many_text([EpisodeSpec(item.task.id, item.seed)], TEXTCRAFT.make, OraclePolicy, limits=Limits(9))
    )
    whole = recorded(plan[0], codec)
    last = without_prefix(whole, 6)
    assert whole.prompt_ids + whole.ids == last.prompt_ids + last.ids and last.turn_numbers == (6,)
    assert sum(last.assistant_mask) == whole.turn_spans[5][1] - whole.turn_spans[5][0] and last.rewards[-1] == 1


@pytest.mark.train
@pytest.mark.rotating
def test_an_adapter_is_measured_with_its_model(tmp_path: Path) -> None:
    job, tiny = pieces.Job("textcraft", 0, "all lengths", "LoRA, no remedy"), {**TINY, "group_size": 8}
    assert pieces.piece(pieces.Job("textcraft", 0), tmp_path, Deadline(), tiny) == 0
    assert pieces.piece(job, tmp_path, Deadline(), tiny) == 0 and job.result(tmp_path).exists()


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


@pytest.mark.rotating
def test_the_command_makes_missing_runs(tmp_path: Path) -> None:
    """A warm start and two runs in forked processes; the second time nothing is left to do."""
    command = [sys.executable, "-m", "benchmarks.study", "run", "--work", str(tmp_path), "--set", json.dumps(TINY)]
    command += ["--only", "textcraft", "--seeds", "101", "--starts", "all lengths", "--arms", "short", "growing"]
    first, second = (subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True) for _ in range(2))
    assert first.stderr.count(": done") == 3 and "done" not in second.stderr
    home = tmp_path / "textcraft" / "seed-101"
    assert (home / "all-lengths" / "growing" / "figures.json").exists() and (home / "all-lengths-growing.log").exists()


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


def run(arm: str, seed: int, *success: float) -> dict[str, Any]:
    """A run whose success within every limit is 10 % at the warm start, then that of each mark."""
    curve = [[505 * number, *[share] * 4] for number, share in enumerate((0.1, *success))]
    limits = dict.fromkeys(map(str, TEXTCRAFT.limits), success[-1])
    own = {"within": limits, "kinds": dict.fromkeys(KINDS, limits), "turns": 4.0}
    within = dict.fromkeys(map(str, TEXTCRAFT.limits), 0.1)
    warm = {"within": within, "kinds": dict.fromkeys(KINDS, within), "turns": 4.0}
    ends = {
        "start": dict.fromkeys(("sampled", "greedy", "slip"), warm),
        "end": dict.fromkeys(("sampled", "greedy", "slip"), own),
    }
    totals = {"steps": 7, "sampled": 1010.0, "processed": 5000.0, "episodes": 56, "cpu_seconds": 120.0}
    return {"arm": arm, "seed": seed, **totals, "curve": curve, **ends}


def scenario() -> dict[str, Any]:
    ends = {"short": (0.3, 0.3), "long": (0.5, 0.4), "very long": (0.9, 0.5), "growing": (0.6, 0.6)}
    runs = {name: [run(name, seed, 0.6, end) for seed, end in enumerate(own)] for name, own in ends.items()}
    return {"settings": figures.recorded(TEXTCRAFT), "starts": {"all lengths": runs, "short only": {}}}
