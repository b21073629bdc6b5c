"""The quick start runs from end to end, compares its arms, and writes its files."""

import io
import json
import runpy
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agentgym_trl")

from rich.console import Console

from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.trajectory import read_trajectories
from agentgym_trl.demo import __main__ as demo
from agentgym_trl.demo import arms, live_curve, report, stages
from agentgym_trl.demo.settings import RECIPES, SCENARIOS, DemoSettings

ROOT = Path(__file__).parents[3]
SMALL = DemoSettings(demonstrations=40, warm_steps=2, eval_tasks=12)


def run(out: Path, **options: Any) -> dict[str, Any]:
    with open(out.with_suffix(".log"), "w") as log:
        assert demo.run_demo(out, seed=0, is_quick=True, console=Console(file=log, width=100), **options) == 0
    figures: dict[str, Any] = json.loads((out / "results.json").read_text())
    return figures


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param("textcraft", marks=pytest.mark.rotating(turns=(0,), of=2)),
        pytest.param("babyai", marks=pytest.mark.rotating(turns=(1,), of=2)),
    ],
)
def test_every_arm_is_trained_measured_and_shown(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tiny(given: DemoSettings) -> DemoSettings:
        steps: Any = dict.fromkeys(("warm_steps", "steps", "imitation_steps", "won_steps", "evol_steps"), 2)
        sizes: Any = {"demonstrations": 40, "tasks_per_step": 2, "group_size": 2, "micro_batch": 4, "eval_tasks": 12}
        return replace(given, **steps, **sizes, evol_rounds=1, evol_tasks=4, evol_episodes_per_task=1)

    monkeypatch.setattr(demo, "quick", tiny)
    out = tmp_path / "demo"
    figures = run(out, scenario=scenario)
    assert [row["arm"] for row in figures["arms"]] == [arms.WARM, arms.MORE, arms.WON, arms.AGENTEVOL, arms.GRPO]
    names = [f"{each.name}, {way}" for each in SCENARIOS[scenario]().held_out for way in ("sampled", "greedy")]
    assert all(list(row["results"]) == names and row["cpu_seconds"] > 0 for row in figures["arms"])
    assert (out / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    page, shown = (out / "report.html").read_text(), out.with_suffix(".log").read_text()
    assert page.count('class="episode"') == 12
    assert all(row["arm"] in page and row["arm"] in shown for row in figures["arms"])
    played = list(read_trajectories(out / "evaluation" / "grpo" / stages.file_name(names[0])))
    assert len(played) == 12


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.rotating
def test_the_quick_demo_shows_a_significant_gain(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    run(out)
    warm, trained = (arms.read_arm(name, out) for name in (arms.WARM, arms.GRPO))
    assert report.difference(warm, trained).low > 0


@pytest.mark.train
def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError, match="not an empty directory"):
        demo.run_demo(tmp_path, seed=0, is_quick=True, console=Console(quiet=True))


def test_the_teacher_wastes_turns_and_wins_are_those_in_time(tmp_path: Path) -> None:
    played = stages.make_demonstrations(tmp_path, SMALL)
    assert [t.actions for t in read_trajectories(tmp_path / "demos.jsonl")] == [t.actions for t in played]
    actions = [action for trajectory in played for action in trajectory.actions]
    assert 0.6 < actions.count("wait") / len(actions) < 0.8
    won = stages.won_in_time(played, SMALL)
    assert 0 < len(won) < len(played) and all(t.success and len(t.turns) <= SMALL.eval_turns for t in won)


def test_goals_of_training_and_held_out_goals_have_nothing_in_common(tmp_path: Path) -> None:
    known, held_out = ({spec.task for spec in stages.held_out_specs(SMALL, each, "test")} for each in SMALL.held_out)
    trained = set(stages.training_tasks(replace(SMALL, steps=4))["task"])
    assert known and known <= trained and held_out and not held_out & trained


def test_evaluation_and_training_have_no_state_in_common() -> None:
    """Known goals are evaluated with other seeds, so their prompts differ."""
    tasks = stages.training_tasks(replace(SMALL, steps=4))
    specs = stages.held_out_specs(SMALL, SMALL.held_out[0], "test")
    assert not {(spec.task, spec.seed) for spec in specs} & set(zip(tasks["task"], tasks["seed"], strict=True))


def test_the_recipes_are_those_of_their_script(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_demo_recipes.py"))
    script["write_table"](tmp_path / "recipes.json")
    assert (tmp_path / "recipes.json").read_text() == RECIPES.read_text()


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.rotating
def test_a_failure_of_the_controls_is_shown_with_its_reason(tmp_path: Path) -> None:
    with closing(arms.Background(arms.CONTROLS, tmp_path, SMALL)) as controls:  # there are no demonstrations
        controls.begin()
        with pytest.raises(EngineError, match=r"controls\.log has the reason"):
            controls.wait(Console(file=io.StringIO()))
    assert "demos.jsonl" in (tmp_path / "controls.log").read_text()


def test_the_chart_has_a_column_per_step() -> None:
    rows = live_curve.chart([0.0, 0.5, 1.0]).replace("[blue]", "").replace("[/]", "").splitlines()
    columns = ["".join(row.split("┤")[1][at] for row in rows) for at in range(3)]
    assert columns == [" " * 8, " " * 4 + "█" * 4, "█" * 8]
