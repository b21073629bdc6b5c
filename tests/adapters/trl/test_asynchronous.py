"""Asynchronous training with the real trainer: on a virtual clock, and with a second process."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

from agentgym_envs.errors import UsageError
from agentgym_trl.asynchronous.options import MAX_STALE_KL
from agentgym_trl.asynchronous.rollout import AsyncRollout
from agentgym_trl.asynchronous.settings import AsyncSettings, VirtualTimes
from agentgym_trl.trainer import AgentTrainer
from tests.adapters.trl.small import ScoredCraft, config, dataset, make_trainer, played
from tests.adapters.trl.test_resume import RUNS, assert_equal, logged, state_of

pytestmark = pytest.mark.train

TIMES = VirtualTimes(seed=1, env=3.0, batch=0.1, token=0.02, train=3.0, train_sigma=0.5)
STEPS = 12


def make(
    out: Path, tokenizer: Any, model: Path, algorithm: str, *, times: VirtualTimes | None = None, **more: Any
) -> Any:
    fixed = {"max_steps": STEPS, "per_device_train_batch_size": 4, "max_turns": "2,3", "every": 3, "max_turn_tokens": 6}
    args = config(out, algorithm=algorithm, **{**fixed, **RUNS[algorithm], **more})
    trainer = AgentTrainer(str(model), ScoredCraft, args=args, processing_class=tokenizer, train_dataset=dataset(5))
    if times is not None:
        assert isinstance(trainer.rollout, AsyncRollout)
        settings = trainer.rollout.settings
        trainer.rollout.settings = AsyncSettings(settings.max_staleness, settings.oversample, times)
    return trainer


def losses(trainer: Any) -> list[tuple[float, float]]:
    return [(row["loss"], row["grad_norm"]) for row in trainer.state.log_history if "loss" in row]


@pytest.mark.parametrize("algorithm", RUNS)
def test_staleness_0_equals_synchronous_training(
    algorithm: str, tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    """Bit for bit: the losses, the weights, the optimizer and the critic, over more than one epoch."""
    synchronous = make(tmp_path / "synchronous", tokenizer, model_path, algorithm)
    synchronous.train()
    more = {"asynchronous": True, "max_staleness": 0}
    virtual = make(tmp_path / "virtual", tokenizer, model_path, algorithm, times=TIMES, **more)
    virtual.train()
    assert losses(virtual) == losses(synchronous) != []
    assert_equal(state_of(virtual), state_of(synchronous))


@pytest.fixture(scope="module", params=RUNS)
def whole(
    request: pytest.FixtureRequest, tokenizer: Any, model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A run with staleness 2 and a checkpoint of every step."""
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("whole")
    more = {"asynchronous": True, "max_staleness": 2, "save_strategy": "steps", "save_steps": 1}
    trainer = make(out, tokenizer, model_path, request.param, times=TIMES, **more)
    trainer.train()
    yield trainer


@pytest.mark.parametrize("step", [3, *(pytest.param(step, marks=pytest.mark.rotating) for step in (1, 2, 4, 5, 6, 7))])
def test_a_resumed_run_equals_the_whole_run(
    step: int, whole: Any, tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    """Episodes in flight continue with the tokens that they had, of older versions of the policy."""
    algorithm, first = whole.args.algorithm, Path(whole.args.output_dir)
    trainer = make(tmp_path, tokenizer, model_path, algorithm, times=TIMES, asynchronous=True, max_staleness=2)
    trainer.train(resume_from_checkpoint=str(first / f"checkpoint-{step}"))
    assert_equal(state_of(trainer), state_of(whole))
    assert without_waiting(logged(trainer, step)) == without_waiting(logged(whole, step)) != []
    for later in range(step + 1, STEPS):
        if (first / "trajectories" / f"step-{later}.jsonl").exists():
            assert actions(tmp_path, later) == actions(first, later)


def without_waiting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "time/wait"} for row in rows]


def actions(out: Path, step: int) -> list[tuple[str, int, list[str]]]:
    return [(t.task.id, t.seed, [turn.action for turn in t.turns]) for t in played(out, step)]


def test_tokens_of_older_versions_are_corrected_and_logged(whole: Any) -> None:
    """The bound is reached and kept, episodes span versions, and weights differ from 1 where they should."""
    rows = [row for row in whole.state.log_history if "async/staleness" in row]
    assert {row["async/max_staleness"] for row in rows} >= {0, 2} and max(r["async/max_staleness"] for r in rows) == 2
    assert max(row["async/versions_per_episode"] for row in rows) > 1
    assert all(row["async/groups_replayed"] == 0 for row in rows)
    first, last = rows[0], rows[-1]
    assert first["sampling/importance_sampling_ratio/mean"] == pytest.approx(1, abs=1e-4)
    assert last["sampling/importance_sampling_ratio/mean"] != pytest.approx(1, abs=1e-4)
    assert 0 < last["effective_sample_size"] < 1 and last["sampler_kl"] > 1e-6
    assert first["off_policy_masked"] == 0 <= last["off_policy_masked"] < 1


class Remember(TrainerCallback):  # type: ignore[misc]
    """Calls a function after every step."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._call()


@pytest.mark.rotating(turns=(0,), of=2)
def test_a_second_process_samples_like_the_trainer(tokenizer: Any, tmp_path: Path) -> None:
    """Without staleness, the run equals the synchronous one bit for bit. The process ends with the run."""
    synchronous = make_trainer(tmp_path / "synchronous", tokenizer, max_steps=3)
    synchronous.train()
    other = make_trainer(tmp_path / "other", tokenizer, max_steps=3, asynchronous=True, max_staleness=0)
    children: list[Any] = []
    other.add_callback(Remember(lambda: children.extend(multiprocessing.active_children())))
    other.train()
    assert losses(other) == losses(synchronous) != []
    assert_equal(other.model.state_dict(), synchronous.model.state_dict())
    assert len(set(children)) == 1 and len(children) == 3
    assert not multiprocessing.active_children()


@pytest.mark.rotating(turns=(1,), of=2)
def test_a_second_process_trains_with_staleness(tokenizer: Any, tmp_path: Path) -> None:
    """With an adapter. After the end, the groups in flight are replayed by the next run of the same trainer."""
    from peft import LoraConfig

    more: dict[str, Any] = {"asynchronous": True, "max_staleness": 2, "max_steps": 4, "learning_rate": 1e-2}
    trainer = make_trainer(tmp_path, tokenizer, extra={"peft_config": LoraConfig(r=4)}, **more)
    trainer.train()
    rows = [row for row in trainer.state.log_history if "async/staleness" in row]
    assert len(rows) == 4 and max(row["async/max_staleness"] for row in rows) in (1, 2)
    assert rows[0]["sampling/sampling_logp_difference/max"] < 1e-3
    tasks = Counter((t.task.id, t.seed) for step in range(4) for t in played(tmp_path, step))
    assert set(tasks.values()) == {4}, "whole groups, none twice"
    state = trainer.rollout.state()
    numbers = [group["number"] for group in state["groups"]]
    assert sorted([*range(8), *numbers])[-1] == state["_position"] - 1 and len(numbers) == state["_position"] - 8


def test_episodes_of_several_contexts_train_asynchronously(tokenizer: Any, tmp_path: Path) -> None:
    """Every answer of every context has its version."""
    more: dict[str, Any] = {
        "asynchronous": True,
        "max_staleness": 2,
        "max_steps": 4,
        "agent": "act",
        "context": "last:1",
    }
    trainer: Any = make_trainer(tmp_path, tokenizer, max_turns="3", **more)
    trainer.rollout.settings = AsyncSettings(2, 0, TIMES)
    trainer.train()
    assert any(episode.context_starts for episode in trainer.rollout.last)
    rows = [row for row in trainer.state.log_history if "async/staleness" in row]
    assert max(row["async/max_staleness"] for row in rows) == 2 and rows[-1]["effective_sample_size"] < 1
    assert all(episode.versions is not None for episode in trainer.rollout.last)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"asynchronous": True, "max_staleness": -1}, "--max-staleness must be at least 0, got -1"),
    ({"asynchronous": True, "async_oversample": -1}, "--async-oversample must be at least 0, got -1"),
    ({"max_staleness": 1}, "--max-staleness is for asynchronous training; add --async"),
    ({"async_oversample": 1}, "--async-oversample is for asynchronous training; add --async"),
    ({"asynchronous": True, "use_vllm": True, "vllm_mode": "colocate"}, "colocate.* cannot get new weights.*server"),
    ({"asynchronous": True, "dynamic_sampling_retries": 1}, "--dynamic-sampling-retries.*leave"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_settings_that_exclude_each_other_are_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        config(tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        ({}, None),
        ({"max_staleness": 0}, None),
        ({"max_staleness": 4}, MAX_STALE_KL),
        ({"max_staleness": None}, MAX_STALE_KL),
    ],
)
def test_old_failures_far_from_the_policy_are_masked(options: dict[str, Any], threshold: float, tmp_path: Path) -> None:
    """By default, with older versions only."""
    asked = {"asynchronous": True, **options} if options else {}
    assert config(tmp_path, **asked).off_policy_mask_threshold == threshold
    chosen = config(tmp_path, **asked, off_policy_mask_threshold=float("inf"))
    assert chosen.off_policy_mask_threshold == float("inf")


def test_models_that_another_process_cannot_sample_from_are_refused(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, asynchronous=True, min_p=0.1)
    with pytest.raises(UsageError, match=r"second process.*min_p.*--vllm_mode server.*leave out --async"):
        trainer.train()
