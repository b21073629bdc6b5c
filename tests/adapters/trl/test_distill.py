"""Distillation of the oracle: an online algorithm whose rows are the oracle's answers in the visited states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_envs.core import Solution
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import OracleLabel
from agentgym_trl.collator import MultiTurnCollator, rows_of
from agentgym_trl.imitation import ImitationRows
from tests.adapters.trl.small import (
    BrokenCraft,
    broken_craft,
    config,
    first_batch,
    make_small_model,
    make_trainer,
    played,
)

train = pytest.mark.train


def make(out: Path, tokenizer: Any, *env: Any, **more: Any) -> Any:
    return make_trainer(
        out, tokenizer, *env, **{"algorithm": "distill", "max_turns": "3", "max_turn_tokens": 12, **more}
    )


def label_rows(trainer: Any) -> list[Any]:
    data = ImitationRows()
    for episode in trainer.rollout.last:
        data.add(episode.trajectory, trainer.rollout.codec)
    return data.rows


def gradient(loss: torch.Tensor, model: Any) -> torch.Tensor:
    model.zero_grad()
    loss.backward()
    return torch.cat([weight.grad.reshape(-1) for weight in model.parameters() if weight.grad is not None])


@train
@pytest.mark.parametrize("padding_free", [True, False])
def test_the_gradient_is_that_of_cross_entropy(padding_free: bool, tokenizer: Any, tmp_path: Path) -> None:
    """Of the labels' tokens in the rows of supervised training, as a mean over all of them."""
    trainer = make(tmp_path, tokenizer, padding_free=padding_free)
    batch = first_batch(trainer)
    ours = gradient(trainer._compute_loss(trainer.model, batch), trainer.model)
    rows = label_rows(trainer)
    assert len(rows) > len(trainer.rollout.last)
    trainer.model.zero_grad()
    theirs = gradient(trainer.model(**MultiTurnCollator(0)(rows)).loss, trainer.model)
    assert theirs.abs().max() > 1e-3
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@train
def test_the_gradient_stays_that_of_cross_entropy_in_later_updates(tokenizer: Any, tmp_path: Path) -> None:
    """TRL clips the ratio to the policy of the rollout, which would drop labels that have become more likely."""
    trainer = make(tmp_path, tokenizer, num_iterations=2)
    batch = first_batch(trainer)
    batch["old_per_token_logps"] -= 1.0  # as if the first update had made every label more likely
    ours = gradient(trainer._compute_loss(trainer.model, batch), trainer.model)
    theirs = gradient(trainer.model(**MultiTurnCollator(0)(label_rows(trainer))).loss, trainer.model)
    assert theirs.abs().max() > 1e-3
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@train
def test_the_rows_are_the_labels_in_the_visited_states(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make(tmp_path, tokenizer)
    batch = first_batch(trainer)
    found = trainer.rollout.last
    assert [row for episode in found for row in rows_of(episode)] == label_rows(trainer)
    for episode in found:
        answers = [OracleLabel.of(turn).answer for turn in episode.trajectory.turns]  # type: ignore[union-attr]
        texts = [trainer.rollout.codec.decode(episode.ids[begin:end]) for begin, end in episode.turn_spans]
        assert texts == answers
    assert batch["advantages"].unique().tolist() == [1.0]
    assert int((batch["tool_mask"] * batch["completion_mask"]).sum()) == sum(sum(e.assistant_mask) for e in found)


@train
def test_evaluation_asks_no_oracle(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make(tmp_path, tokenizer)
    trainer.model.eval()
    played = trainer.rollout.evaluate([row["prompt"] for row in trainer.train_dataset.select(range(2))], trainer)
    assert all(OracleLabel.of(turn) is None for trajectory in played for turn in trajectory.turns)


@train
def test_the_policy_learns_the_labels(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make(tmp_path, tokenizer, max_steps=12, learning_rate=3e-3, num_generations=1)
    trainer.train()
    rows = [row for row in trainer.state.log_history if "oracle/labelled" in row]
    assert len(rows) == 12
    first = rows[0]
    assert first["oracle/labelled"] == first["oracle/states"] == first["rollout/turns"] * 8
    assert first["oracle/oracle_turns"] == 0 and first["time/oracle"] > 0
    batch = MultiTurnCollator(0)(label_rows(trainer))
    with torch.no_grad():
        trained, untrained = (float(model(**batch).loss) for model in (trainer.model, make_small_model(tokenizer)))
    assert trained < untrained - 1
    assert first["oracle/label_loss"] == pytest.approx(untrained, abs=0.2)
    assert rows[-1]["oracle/label_loss"] == pytest.approx(trained, abs=0.2)
    for trajectory in played(tmp_path, 0):
        assert all(OracleLabel.of(turn) for turn in trajectory.turns)


@train
def test_failed_episodes_and_states_without_a_label_have_no_loss(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = BrokenCraft._solution
    monkeypatch.setattr(BrokenCraft, "_solution", lambda env: solve(env) if env._number % 3 else Solution(None, True))
    trainer = make(tmp_path, tokenizer, broken_craft(lambda number: number % 3 == 1), env_retries=0)
    batch = first_batch(trainer)
    trained = (batch["tool_mask"] * batch["completion_mask"]).sum(1).tolist()
    assert sorted(count > 0 for count in trained) == [False] * 6 + [True] * 2
    assert [bool(episode.ids) for episode in trainer.rollout.last] == [count > 0 for count in trained]
    assert sum(episode.trajectory.usable for episode in trainer.rollout.last) == 5
    assert trainer._compute_loss(trainer.model, batch).isfinite()


@train
def test_a_resumed_run_equals_the_whole_run(tokenizer: Any, tmp_path: Path) -> None:
    whole = make(tmp_path / "a", tokenizer, max_steps=3, save_strategy="steps", save_steps=1)
    whole.train()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "checkpoint-2").rename(tmp_path / "b" / "checkpoint-2")
    again = make(tmp_path / "b", tokenizer, max_steps=3)
    again.train(resume_from_checkpoint=str(tmp_path / "b" / "checkpoint-2"))
    assert all(map(torch.equal, whole.model.parameters(), again.model.parameters()))


@pytest.mark.parametrize(
    "more, part",
    [
        ({"oracle_seconds": 0.0}, "--oracle-seconds must be above 0"),
        ({"algorithm": "grpo", "oracle_seconds": 1.0}, "--oracle-seconds is for distill and --process-reward"),
        (
            {"mask_truncated_answers": True},
            "answers; leave out --mask-truncated-answers",
        ),
        ({"asynchronous": True}, "leave out --async"),
        ({"agent": "react"}, "leave out --agent"),
        ({"kl_in": "reward", "beta": 0.1}, "leave out --kl-in reward"),
        ({"credit": "vine"}, "--credit vine is for grpo"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(more: dict[str, Any], part: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=part):
        config(tmp_path, **{"algorithm": "distill", **more})


def test_no_weights_correct_for_the_sampler_of_other_answers(tmp_path: Path) -> None:
    assert not config(tmp_path, algorithm="distill").vllm_importance_sampling_correction
    assert config(tmp_path, algorithm="grpo").vllm_importance_sampling_correction
