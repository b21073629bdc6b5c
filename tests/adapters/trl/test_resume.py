"""A stopped and resumed run equals, bit for bit, a run that never stopped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from trl.trainer.utils import RepeatSampler

from agentgym_envs.errors import UsageError
from agentgym_trl.resume import EpochSampler
from agentgym_trl.trainer import AgentTrainer
from tests.adapters.trl.small import ScoredCraft, config, dataset, played

STEPS = 10
RUNS: dict[str, dict[str, Any]] = {
    # A rollout lasts four optimizer steps, in two minibatches and two epochs; the data, two rollouts.
    "ppo": {"num_iterations": 2, "steps_per_generation": 2, "critic_lr_warmup_steps": 7, "critic_warmup_steps": 1},
    # A rollout lasts two optimizer steps of two micro-batches; the reference model follows the policy.
    "grpo": {
        "steps_per_generation": 4,
        "gradient_accumulation_steps": 2,
        "per_device_train_batch_size": 2,
        "beta": 0.1,
        "sync_ref_model": True,
        "ref_model_sync_steps": 3,
        "ref_model_mixup_alpha": 0.5,
        "logging_steps": 2,
    },
}

FORKS: dict[str, dict[str, Any]] = {"grpo": {"credit": "vine", "branches": 2, "at": "random:1"}}
"""Not with asynchronous training: the values of states come from continuations."""


def make(
    out: Path, tokenizer: Any, model: Path, estimator: str, env: Any = ScoredCraft, data: Any = None, **more: Any
) -> Any:
    fixed: dict[str, Any] = {
        "max_steps": STEPS,
        "per_device_train_batch_size": 4,
        "warmup_steps": 2,
        "weight_decay": 0.1,
    }
    fixed |= {"save_steps": 1, "max_turns": "1,2", "every": 6, "max_turn_tokens": 6}
    args = config(out, algorithm=estimator, **{**fixed, **RUNS[estimator], **FORKS.get(estimator, {}), **more})
    rows = dataset(4) if data is None else data
    return AgentTrainer(str(model), env, args=args, processing_class=tokenizer, train_dataset=rows)


def state_of(trainer: Any) -> dict[str, Any]:
    """All state that a step changes."""
    critic = trainer.learner
    return {
        "policy": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict()["state"],
        "schedule": trainer.lr_scheduler.state_dict(),
        "random": torch.random.get_rng_state(),
        "critic": critic.critic.state_dict() if critic else None,
        "critic's optimizer": critic._optimizer.state_dict() if critic else None,
        "reference": trainer.ref_model.state_dict() if trainer.ref_model else None,
    }


def assert_equal(ours: Any, theirs: Any, where: str = "") -> None:
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            assert_equal(ours[key], theirs[key], f"{where} {key}")
    elif isinstance(theirs, torch.Tensor):
        assert torch.equal(ours, theirs), where
    else:
        assert ours == theirs, where


def logged(trainer: Any, after: int) -> list[dict[str, Any]]:
    """The lines of the log after a step, without times."""
    rows = [row for row in trainer.state.log_history if row["step"] > after and "loss" in row]
    times = ("time/", "step_time", "rollout/tokens_per_second")
    return [{key: value for key, value in row.items() if not key.startswith(times)} for row in rows]


def episodes(out: Path, after: int) -> dict[str, list[Any]]:
    """The episodes of each step, by the name of the file."""
    steps = sorted(int(path.stem[5:]) for path in (out / "trajectories").glob("step-*.jsonl"))
    found = {str(step): played(out, step) for step in steps if step >= after}
    return {
        step: [(t.task.id, t.seed, [turn.action for turn in t.turns], t.meta["max_turns"]) for t in trajectories]
        for step, trajectories in found.items()
    }


@pytest.fixture(scope="module", params=RUNS)
def whole(
    request: pytest.FixtureRequest, tokenizer: Any, model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A run without an interruption, with a checkpoint of every step."""
    torch.set_num_threads(1)
    trainer = make(tmp_path_factory.mktemp("whole"), tokenizer, model_path, request.param, save_strategy="steps")
    trainer.train()
    assert trainer.state.epoch > 1
    yield trainer


@pytest.mark.train
@pytest.mark.parametrize("step", [3, *(pytest.param(step, marks=pytest.mark.rotating) for step in (4, 8))])
def test_a_resumed_run_equals_the_whole_run(
    step: int, whole: Any, tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    """From the middle of a rollout's use (3), between two rollouts, and the border of an epoch (4, 8)."""
    estimator, first = whole.args.algorithm, Path(whole.args.output_dir)
    trainer = make(tmp_path, tokenizer, model_path, estimator)
    trainer.train(resume_from_checkpoint=str(first / f"checkpoint-{step}"))
    assert trainer.state.global_step == STEPS
    assert_equal(state_of(trainer), state_of(whole))
    assert episodes(tmp_path, step) == episodes(first, step) != {}
    assert logged(trainer, step) == logged(whole, step) != []


@pytest.mark.rotating(always=1)
@pytest.mark.train
def test_checkpoints_of_other_runs_are_refused(whole: Any, tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    estimator, checkpoint = whole.args.algorithm, Path(whole.args.output_dir) / "checkpoint-2"
    trainer = make(tmp_path / "other", tokenizer, model_path, estimator)

    def refused(part: str, path: Path = checkpoint) -> None:
        with pytest.raises(UsageError, match=part) as found:
            trainer.train(resume_from_checkpoint=str(path))
        assert "\n" not in str(found.value)

    broken = Path(shutil.copytree(checkpoint, tmp_path / "broken"))
    if trainer.learner:
        (broken / "critic.pt").unlink()
        refused("has no critic", broken)
    (broken / "agentgym-rank0.pt").unlink()
    refused("has no agentgym-rank0.pt.*fewer processes.*save_only_model", broken)
    trainer.args.num_iterations = 3
    refused(r"was made with num_iterations \d, not 3")
    trainer.args.algorithm = "rloo"
    refused(f"was made with algorithm {estimator}, not rloo")


@pytest.mark.train
def test_a_checkpoint_of_the_model_only_cannot_be_resumed(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    more = {"save_strategy": "steps", "save_only_model": True, "max_steps": 1}
    trainer: Any = make(tmp_path, tokenizer, model_path, "ppo", **more)
    trainer.train()
    assert (tmp_path / "checkpoint-1" / "model.safetensors").exists()
    with pytest.raises(UsageError, match="save_only_model"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))


def orders(sampler: RepeatSampler, epochs: range) -> list[list[int]]:
    now = [0]
    ours = EpochSampler.of(sampler, lambda: now[0])
    found = []
    for now[0] in epochs:
        found.append(list(ours))
    return found


def test_the_order_of_an_epoch_depends_on_seed_and_epoch_only() -> None:
    def make_sampler(seed: int = 3, shuffle: bool = True) -> RepeatSampler:
        return RepeatSampler(list(range(10)), 2, 4, 3, shuffle, seed)

    straight = orders(make_sampler(), range(4))
    assert orders(make_sampler(), range(2, 4)) == straight[2:]
    assert straight[0] != straight[1] != straight[2]
    assert straight[0] == list(make_sampler()), "the first epoch is TRL's"
    assert orders(make_sampler(4), range(1)) != straight[:1]
    assert len(straight[0]) == 8 * 2 * 3
    for order in straight:
        chunk = order[:8]
        assert chunk[::2] == chunk[1::2] and order[8:16] == order[16:24] == chunk
        assert len(set(order)) == 8
    assert orders(make_sampler(shuffle=False), range(2)) == [list(make_sampler(shuffle=False))] * 2
