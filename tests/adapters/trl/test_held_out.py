"""Evaluation on held-out tasks during training."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

from agentgym_envs.core import Transition
from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate import Estimate, wilson
from agentgym_trl.callbacks import run_training
from agentgym_trl.held_out import collapse, history, results
from agentgym_trl.models import load_model, load_tokenizer
from agentgym_trl.trainer import AgentTrainer
from tests.adapters.trl.small import ScoredCraft, Spy, config, dataset, make_trainer, metrics

TASKS = 6


class Fickle(ScoredCraft):
    """Every episode is won at its first action, but only while `wins`."""

    wins = False

    def _act(self, command: str) -> Transition:
        return super()._act(command)._replace(reward=float(self.wins), terminated=True)


class WinsAt(TrainerCallback):  # type: ignore[misc]
    """Lets `Fickle` win in the evaluations after some steps; it runs before the trainer's own callbacks."""

    def __init__(self, *steps: int) -> None:
        self._steps = steps

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        Fickle.wins = state.global_step + 1 in self._steps


def run(out: Path, tokenizer: Any, *wins: int, env: Any = Fickle, checkpoint: str | None = None, **more: Any) -> Any:
    Fickle.wins = False
    options = {"eval_every": 1, "eval_max_turns": 1, "max_steps": 3, **more}
    data = {"eval_dataset": dataset(TASKS), "callbacks": [WinsAt(*wins)]}
    trainer = make_trainer(out, tokenizer, env, extra=data, **options)
    assert run_training(trainer, "grpo", checkpoint=checkpoint)
    return trainer


def evaluations(out: Path) -> list[dict[str, Any]]:
    return [row for row in metrics(out) if "eval/success" in row]


@pytest.mark.train
def test_held_out_success_is_logged_with_its_interval(tokenizer: Any, tmp_path: Path) -> None:
    run(tmp_path, tokenizer, 2, max_steps=3, eval_every=2)
    rows = evaluations(tmp_path)
    assert [(row["step"], row["eval/success"], row["eval/tasks"]) for row in rows] == [(0, 0, 6), (2, 1, 6), (3, 0, 6)]
    expected = wilson(1.0, TASKS)
    assert (rows[1]["eval/success_low"], rows[1]["eval/success_high"]) == pytest.approx((expected.low, expected.high))
    for step in (0, 2, 3):
        lines = (tmp_path / "trajectories" / f"eval-{step}.jsonl").read_text().splitlines()
        assert len(lines) == TASKS and all('"max_turns": 1,' in line for line in lines)
    assert [row["step"] for row in metrics(tmp_path) if "loss" in row] == [1, 2, 3]
    assert not any("entropy" in row for row in rows)


@pytest.mark.train
@pytest.mark.parametrize("trainer", [AgentTrainer, Spy], ids=["with the cache", "with generate"])
def test_training_is_the_same_with_and_without_evaluation(trainer: Any, tokenizer: Any, tmp_path: Path) -> None:
    with_it = run(tmp_path / "a", tokenizer, env=ScoredCraft, trainer=trainer)
    without = make_trainer(tmp_path / "b", tokenizer, trainer=trainer, max_steps=3)
    without.train()
    assert with_it.model.training
    for name, weight in without.model.state_dict().items():
        torch.testing.assert_close(with_it.model.state_dict()[name], weight, rtol=0, atol=0)


@pytest.mark.train
def test_the_best_model_is_kept_and_named(tokenizer: Any, tmp_path: Path) -> None:
    weights = {}

    class Keep(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            weights[state.global_step] = {name: weight.clone() for name, weight in model.state_dict().items()}

    Fickle.wins = False
    data = {"eval_dataset": dataset(TASKS), "callbacks": [WinsAt(2, 3), Keep()]}
    trainer = make_trainer(
        tmp_path, tokenizer, Fickle, extra=data, eval_every=1, max_steps=4, keep_best=True, learning_rate=1e-2
    )
    run_training(trainer, "grpo")
    assert json.loads((tmp_path / "best" / "evaluation.json").read_text())["step"] == 2
    best = load_model(str(tmp_path / "best")).state_dict()
    assert load_tokenizer(str(tmp_path / "best")) and not (tmp_path / "best.partial").exists()
    for name, weight in weights[2].items():
        torch.testing.assert_close(best[name], weight)


@pytest.mark.train
def test_a_collapse_stops_the_run_with_a_checkpoint(
    tokenizer: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = run(tmp_path, tokenizer, 1, max_steps=5, stop_on_collapse=True)
    assert trainer.state.global_step == 2 and (tmp_path / "checkpoint-2").is_dir()
    assert "held-out success fell from 100%" in " ".join(capsys.readouterr().err.split())
    assert run(tmp_path / "on", tokenizer, 1, max_steps=3).state.global_step == 3


@pytest.mark.train
def test_a_resumed_run_remembers_its_evaluations(tokenizer: Any, tmp_path: Path) -> None:
    run(tmp_path, tokenizer, 1, max_steps=2, save_strategy="steps", save_steps=1, keep_best=True)
    checkpoint = str(tmp_path / "checkpoint-2")
    again = run(tmp_path, tokenizer, checkpoint=checkpoint, max_steps=3, keep_best=True)
    assert [row["step"] for row in evaluations(tmp_path)] == [0, 1, 2, 3]
    assert list(history(again.state)) == [0, 1, 2, 3]
    assert json.loads((tmp_path / "best" / "evaluation.json").read_text())["step"] == 1


def test_a_collapse_is_an_interval_below_half_of_the_best() -> None:
    good, fair, bad = Estimate(0.8, 0.7, 0.9), Estimate(0.4, 0.3, 0.5), Estimate(0.1, 0.05, 0.2)
    assert collapse([good]) is None and collapse([good, fair]) is None
    assert collapse([good, fair, bad]) == "held-out success fell from 80% to 10% [5%, 20%]"
    assert collapse([bad, bad]) is None


def test_the_results_name_the_last_and_the_first_best_evaluation() -> None:
    row = {"eval/success": 0.5, "eval/success_low": 0.4, "eval/success_high": 0.6}
    state = SimpleNamespace(log_history=[{**row, "step": 10}, {"loss": 1.0, "step": 11}, {**row, "step": 20}])
    found = results(history(state))
    assert (found["last"]["step"], found["best"]["step"], found["best"]["low"]) == (20, 10, 0.4)


def test_options_without_their_data_are_refused(tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--keep-best needs evaluations"):
        config(tmp_path, keep_best=True)
    with pytest.raises(UsageError, match="eval_every needs the held-out tasks"):
        make_trainer(tmp_path, tokenizer, eval_every=1)
