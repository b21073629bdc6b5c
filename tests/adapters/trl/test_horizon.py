"""A turn-limit curriculum: the old max turns before the change, the new ones from it on, also after a resume."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_trl.callbacks import read_metrics, run_training
from tests.adapters.trl.small import limits_by_step, make_small_model, make_trainer, played

pytestmark = pytest.mark.train
STEPS, CHANGE = 4, 2
SCHEDULE: dict[str, Any] = {"max_turns": "2,3", "every": CHANGE, "max_steps": STEPS, "save_strategy": "steps"}
EXPECTED = {0: 2, 1: 2, 2: 3, 3: 3}
TIMES = ("tokens_per_second", "time/", "step_time", "runtime", "per_second")


def run(out: Path, tokenizer: Any, checkpoint: Path | None = None) -> Any:
    # A resumed run starts with other weights: the right ones must come from the checkpoint.
    model = make_small_model(tokenizer, seed=0 if checkpoint is None else 99)
    trainer = make_trainer(out, tokenizer, model=model, save_steps=1, save_total_limit=10, **SCHEDULE)
    assert run_training(trainer, "test", checkpoint=str(checkpoint) if checkpoint else None)
    return trainer


@pytest.fixture(scope="module")
def whole(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A run without an interruption."""
    out = tmp_path_factory.mktemp("whole")
    return out, run(out, tokenizer)


def test_max_turns_change_at_the_scheduled_step(whole: tuple[Path, Any]) -> None:
    out, _ = whole
    assert limits_by_step(out) == {step: Counter({limit: 8}) for step, limit in EXPECTED.items()}
    assert all(len(t.turns) == EXPECTED[step] for step in EXPECTED for t in played(out, step))
    logged = [row["rollout/max_turns"] for row in read_metrics(out / "metrics.jsonl") if "rollout/max_turns" in row]
    assert logged == list(EXPECTED.values())


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("resumed_at", [CHANGE - 1, CHANGE, CHANGE + 1])
def test_a_resumed_run_equals_the_whole_run(
    resumed_at: int, whole: tuple[Path, Any], tokenizer: Any, tmp_path: Path
) -> None:
    """From a checkpoint before, at and after the change: the same max turns, episodes, metrics and weights."""
    out, trainer = whole
    again = run(tmp_path, tokenizer, out / f"checkpoint-{resumed_at}")
    rest = [step for step in EXPECTED if step >= resumed_at]
    assert limits_by_step(tmp_path) == {step: Counter({EXPECTED[step]: 8}) for step in rest}
    for step in rest:
        assert played(tmp_path, step) == played(out, step)
    assert numbers(tmp_path) == [row for row in numbers(out) if row["step"] > resumed_at]
    for name, weight in trainer.model.state_dict().items():
        torch.testing.assert_close(again.model.state_dict()[name], weight, rtol=0, atol=0)


def numbers(out: Path) -> list[dict[str, Any]]:
    """The metrics of each step, without those that depend on the clock."""
    rows = [row for row in read_metrics(out / "metrics.jsonl") if "loss" in row]
    return [{k: v for k, v in row.items() if not any(part in k for part in TIMES)} for row in rows]


def test_evaluation_has_its_own_max_turns(tokenizer: Any, tmp_path: Path) -> None:
    """And its own group size, which may differ from that of training."""
    trainer = make_trainer(tmp_path, tokenizer, eval_max_turns=1, num_generations_eval=2, per_device_eval_batch_size=4)
    trainer.evaluate(trainer.train_dataset.select(range(4)))
    files = sorted((tmp_path / "trajectories").iterdir())
    assert [path.name for path in files] == ["eval-0.jsonl"]
    evaluated = [line for line in files[0].read_text().splitlines() if '"max_turns": 1,' in line]
    assert len(evaluated) == 4 * 2
    trainer.train()
    assert limits_by_step(tmp_path)[0] == Counter({2: 8})


def test_resuming_in_the_same_directory_keeps_played_episodes(tokenizer: Any, tmp_path: Path) -> None:
    run(tmp_path, tokenizer)
    before = {step: played(tmp_path, step) for step in EXPECTED}
    lines = (tmp_path / "metrics.jsonl").read_text()
    run(tmp_path, tokenizer, tmp_path / "checkpoint-3")
    names = sorted(path.name for path in (tmp_path / "trajectories").iterdir())
    assert names == [*(f"step-{step}.jsonl" for step in range(4)), "step-3.replaced-1.jsonl"]
    assert {step: played(tmp_path, step) for step in EXPECTED} == before
    assert [row["step"] for row in numbers(tmp_path)] == [1, 2, 3, 4]
    assert (tmp_path / "metrics.jsonl").read_text().splitlines()[:3] == lines.splitlines()[:3]
