"""Failed episodes are replayed; zero-variance groups are replaced by other tasks."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_envs.core import Transition
from agentgym_envs.rollout import EpisodeSpec
from agentgym_trl.dynamic_sampling import episode_start, fresh_prompts, zero_variance_groups
from agentgym_trl.trl_format import spec_of
from tests.adapters.trl.small import ScoredCraft, broken_craft, dataset, first_batch, make_trainer, played
from tests.adapters.trl.test_trl_format import END, episode
from tests.rollout.families import UP


class DullCraft(ScoredCraft):
    """Pays nothing for some tasks, whatever the answers; by default for all tasks."""

    def __init__(self, dull: frozenset[str] | None = None) -> None:
        super().__init__()
        self._dull = dull

    def _act(self, command: str) -> Transition:
        found = super()._act(command)
        assert self.task
        return found._replace(reward=0.0) if self._dull is None or self.task.id in self._dull else found


def starts(trainer: Any) -> list[tuple[str, int]]:
    """Task and seed of every episode of the last rollout."""
    return [(e.trajectory.task.id, e.trajectory.seed) for e in trainer.rollout.last]


def logged(trainer: Any) -> dict[str, float]:
    """The metrics of the last rollout, before TRL sends them on."""
    return {name: values[-1] for name, values in trainer._metrics["train"].items()}


@pytest.fixture(scope="module")
def first_starts(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """The tasks of the first rollout without replacements: two groups of four."""
    trainer = make_trainer(tmp_path_factory.mktemp("plain"), tokenizer)
    first_batch(trainer)
    assert logged(trainer)["rollout/zero_variance_groups"] == 0 and "rollout/resampled_groups" not in logged(trainer)
    return starts(trainer)


def make_dull(out: Path, tokenizer: Any, dull: str, **more: Any) -> Any:
    return make_trainer(out, tokenizer, lambda: DullCraft(frozenset([dull])), **{"dynamic_sampling_retries": 1, **more})


@pytest.mark.train
@pytest.mark.parametrize("group", [0, 1])
def test_a_zero_variance_group_is_replaced_by_a_new_task(
    group: int, first_starts: list[tuple[str, int]], tokenizer: Any, tmp_path: Path
) -> None:
    rows: dict[str, list[Any]] = {}

    def note(completions: Any, **columns: Any) -> list[None]:
        rows.update(columns)
        return [None] * len(completions)

    dull = first_starts[4 * group][0]
    trainer = make_dull(tmp_path, tokenizer, dull, extra={"reward_funcs": note})
    batch = first_batch(trainer)
    found, other = starts(trainer), 1 - group
    kept, replaced = slice(4 * other, 4 * other + 4), slice(4 * group, 4 * group + 4)
    assert found[kept] == first_starts[kept]
    assert len(set(found[replaced])) == 1 and found[replaced][0] not in first_starts
    assert found[replaced][0] in {(row["task"], row["seed"]) for row in trainer.train_dataset}

    scores = torch.tensor([e.trajectory.score for e in trainer.rollout.last]).view(2, 4)
    assert (scores.std(1) > 0).all()
    expected = (scores - scores.mean(1, keepdim=True)) / (scores.std(1, keepdim=True) + 1e-4)
    torch.testing.assert_close(batch["advantages"], expected.view(-1))

    assert logged(trainer)["rollout/zero_variance_groups"] == 0.5  # of the first draw
    assert logged(trainer)["rollout/resampled_groups"] == 1
    assert logged(trainer)["rollout/score"] == pytest.approx(float(scores.mean()))
    assert list(zip(rows["task"], rows["seed"], strict=True)) == found
    assert {row["task"]: row["group"] for row in trainer.train_dataset}[found[replaced][0][0]] == rows["group"][
        4 * group
    ]
    assert len(played(tmp_path, 0)) == 12  # replaced episodes were played, and are on disk


@pytest.mark.train
def test_the_seed_decides_the_new_tasks(first_starts: list[tuple[str, int]], tokenizer: Any, tmp_path: Path) -> None:
    def replaced(name: str, **more: Any) -> list[tuple[str, int]]:
        trainer = make_dull(tmp_path / name, tokenizer, first_starts[0][0], **more)
        first_batch(trainer)
        return starts(trainer)

    assert replaced("one") == replaced("two")
    drawn = {tuple(row) for seed in range(4) for row in [fresh_tasks(seed)]}
    assert len(drawn) > 1


def fresh_tasks(*seed: int) -> list[str | None]:
    return [spec_of(prompt, {}).task for prompt in fresh_prompts(dataset(), 3, seed, set())]


@pytest.mark.train
def test_resampling_ends_after_its_retries(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, DullCraft, dynamic_sampling_retries=2, max_steps=1)
    trainer.train()
    groups = [(t.task.id, t.seed) for t in played(tmp_path, 0)]
    assert len(groups) == 3 * 8
    assert set(Counter(groups).values()) == {4}  # six different starts: none repeats while there are others
    log = trainer.state.log_history[0]
    assert (log["rollout/zero_variance_groups"], log["rollout/resampled_groups"]) == (1.0, 4.0)
    assert (trainer.outputs[0]["advantages"] == 0).all() and math.isfinite(log["loss"])


@pytest.mark.train
def test_two_rollouts_of_one_step_get_different_tasks(tokenizer: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"gradient_accumulation_steps": 2, "steps_per_generation": 1, "max_steps": 1}
    trainer = make_trainer(tmp_path, tokenizer, DullCraft, dynamic_sampling_retries=1, **options)
    trainer.train()
    groups = list(dict.fromkeys((t.task.id, t.seed) for t in played(tmp_path, 0)))
    assert len(trainer.outputs) == 2 and len(played(tmp_path, 0)) == 32
    first, second = set(groups[2:4]), set(groups[-2:])
    assert first != second


@pytest.mark.train
def test_evaluation_replaces_nothing(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, DullCraft, dynamic_sampling_retries=2, per_device_eval_batch_size=4)
    found = trainer.evaluate(trainer.train_dataset.select(range(2)))
    assert len((tmp_path / "trajectories" / "eval-0.jsonl").read_text().splitlines()) == 8
    assert "eval_rollout/zero_variance_groups" not in found and found["eval_rollout/score"] == 0


def test_zero_variance_groups_are_found() -> None:
    good, bad, failed = episode([UP, END], max_turns=1), episode([33, END], max_turns=1), episode(task="count/0")
    assert zero_variance_groups([good, good, bad, good, bad, bad], 2) == ([0, 2], 3)
    assert zero_variance_groups([good, failed, bad, good, failed, failed], 2) == ([0, 2], 3)
    assert zero_variance_groups([good, failed, bad, good, good, failed], 3) == ([1], 2)


def test_fresh_prompts_are_new_while_unused_tasks_remain() -> None:
    rows = dataset(6)
    known = [episode_start(spec_of(row["prompt"], {})) for row in rows]
    assert all(known_start[1:] == (row["task"], row["seed"]) for known_start, row in zip(known, rows, strict=True))
    for seed in range(8):
        found = [episode_start(spec_of(prompt, {})) for prompt in fresh_prompts(rows, 4, (seed,), set(known[:2]))]
        assert sorted(found) == sorted(known[2:])
        more = [episode_start(spec_of(prompt, {})) for prompt in fresh_prompts(rows, 9, (seed,), set(known[:2]))]
        assert more[:4] == found and len(more) == 9 and set(more) <= set(known)
    assert episode_start(EpisodeSpec("a", 1, env="b")) == ("b", "a", 1)


@pytest.mark.train
def test_replays_are_bounded_and_counted(tokenizer: Any, tmp_path: Path) -> None:
    """Episodes 1 and 5 fail, then the first replay, then nothing: three replays in two rounds."""
    trainer = make_trainer(tmp_path / "a", tokenizer, broken_craft(lambda n: n in (1, 5, 8)), max_steps=1)
    trainer.train()
    log = trainer.state.log_history[0]
    assert (log["rollout/retried"], log["rollout/stop/env_error"], log["rollout/stop/turn_limit"]) == (3, 0, 1)
    assert len(played(tmp_path / "a", 0)) == 8 + 3

    always = broken_craft(lambda n: n == 1 or n >= 8)
    trainer = make_trainer(tmp_path / "b", tokenizer, always, max_steps=1, env_retries=3)
    trainer.train()
    log = trainer.state.log_history[0]
    assert (log["rollout/retried"], log["rollout/stop/env_error"]) == (3, 1 / 8)
    assert log["rollout/turns"] == 2  # of the usable episodes


@pytest.mark.train
def test_masked_truncated_answers_leave_the_loss_but_not_the_advantages(tokenizer: Any, tmp_path: Path) -> None:
    whole, without = (
        first_batch(make_trainer(tmp_path / str(mask), tokenizer, mask_truncated_answers=mask, num_generations=8))
        for mask in (False, True)
    )
    for name in ("completion_ids", "completion_mask", "advantages"):
        torch.testing.assert_close(whole[name], without[name])
    assert whole["advantages"].abs().max() > 0
    assert whole["tool_mask"].sum() > without["tool_mask"].sum()
    assert (without["tool_mask"] <= whole["tool_mask"]).all()


@pytest.mark.rotating(always=1)
@pytest.mark.train
@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo", "bnpo"])
def test_a_step_without_trained_tokens_is_harmless(loss_type: str, tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(
        tmp_path, tokenizer, mask_truncated_answers=True, max_turn_tokens=1, loss_type=loss_type, max_steps=1
    )
    before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    trainer.train()
    log = trainer.state.log_history[0]
    assert log["rollout/truncated_answers"] == 1 and log["loss"] == 0 and log["grad_norm"] == 0
    for name, weight in trainer.model.state_dict().items():
        assert torch.isfinite(weight).all()
        torch.testing.assert_close(weight, before[name])
