"""Supervised training uses the tokens and the mask of reinforcement learning, and reaches the loss unchanged."""

from __future__ import annotations

import asyncio
import logging
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from trl import SFTConfig

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import EpisodeSpec, Limits, ScriptedEngine, encode_trajectory, play
from agentgym_trl.demonstrations import environment_corpus, oracle_demonstrations
from agentgym_trl.models import make_codec
from agentgym_trl.sft import IGNORED, labels_of, make_sft_trainer, sft_dataset
from tests.adapters.trl.small import DEPTH, craft, demonstrations, make_small_model, settings


def sft_config(out: Path, **more: Any) -> SFTConfig:
    known = {k: v for k, v in settings(out, **more).items() if k not in ("max_completion_length", "num_generations")}
    return SFTConfig(**known)


def test_labels_are_the_mask_of_a_rollout(tokenizer: Any) -> None:
    """An engine that says what the oracle said is trained on the very ids that supervised training uses."""
    codec = make_codec(tokenizer)
    for shown in demonstrations():
        answers = [codec.encode_answer(action) for action in shown.actions]
        engine = ScriptedEngine(answers, codec.stop_ids)
        spec = EpisodeSpec(shown.task.id, shown.seed)
        rolled = asyncio.run(play(craft(), engine, codec, spec, limits=Limits(max_turns=99)))
        encoded = encode_trajectory(shown, codec)
        assert rolled.trajectory.actions == shown.actions
        assert (rolled.prompt_ids, rolled.ids, rolled.assistant_mask) == (
            encoded.prompt_ids,
            encoded.ids,
            encoded.assistant_mask,
        )
        labels = labels_of(encoded)
        assert [i for i in labels if i != IGNORED] == [i for answer in answers for i in answer]
        assert [int(i != IGNORED) for i in labels] == [0] * len(rolled.prompt_ids) + rolled.assistant_mask


@pytest.mark.train
def test_the_labels_reach_the_batches(tokenizer: Any, tmp_path: Path) -> None:
    codec = make_codec(tokenizer)
    wanted = {tuple(row["input_ids"]): row["labels"] for row in sft_dataset(demonstrations(), codec)}
    trainer = make_sft_trainer(
        make_small_model(tokenizer), demonstrations(), codec, sft_config(tmp_path, per_device_train_batch_size=5)
    )
    seen = []
    for batch in trainer.get_train_dataloader():
        for ids, labels, mask in zip(batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True):
            row = tuple(ids[mask.bool()].tolist())
            assert labels[mask.bool()].tolist() == wanted[row]
            assert (labels[~mask.bool()] == IGNORED).all()
            seen.append(row)
    assert sorted(seen) == sorted(wanted) and len(seen) == 12


@pytest.mark.train
def test_training_lowers_the_loss_of_the_answers_only(tokenizer: Any, tmp_path: Path) -> None:
    codec, model = make_codec(tokenizer), make_small_model(tokenizer)
    row = sft_dataset(demonstrations(), codec)[0]
    answers = cross_entropy(model, row, row["labels"])
    trainer = make_sft_trainer(model, demonstrations(), codec, sft_config(tmp_path, max_steps=20, learning_rate=1e-2))
    trainer.train()
    first, last = trainer.state.log_history[0], trainer.state.log_history[19]
    assert last["loss"] < first["loss"] / 2
    assert cross_entropy(model, row, row["labels"]) < answers / 2
    guess = math.log(len(tokenizer))  # an untrained model guesses among all tokens
    torch.testing.assert_close(first["loss"], guess, atol=0.4, rtol=0)


def cross_entropy(model: Any, row: dict[str, Any], labels: list[int]) -> float:
    ids = torch.tensor([row["input_ids"]])
    with torch.no_grad():
        return float(model(input_ids=ids, labels=torch.tensor([labels])).loss)


def test_nothing_is_cut(tokenizer: Any, tmp_path: Path) -> None:
    codec = make_codec(tokenizer)
    longest = max(len(row["input_ids"]) for row in sft_dataset(demonstrations(), codec))
    assert len(sft_dataset(demonstrations(), codec, longest)) == 12
    with pytest.raises(UsageError, match=f"a trajectory has {longest} tokens, more than --max_length {longest - 1}"):
        make_sft_trainer(
            make_small_model(tokenizer), demonstrations(), codec, sft_config(tmp_path, max_length=longest - 1)
        )


def test_there_must_be_something_to_learn_from(tokenizer: Any) -> None:
    with pytest.raises(UsageError, match="no trajectory to train on"):
        sft_dataset([], make_codec(tokenizer))


def test_demonstrations_are_solved_and_distinct() -> None:
    shown = oracle_demonstrations(craft, 6, groups=DEPTH, seed=3)
    assert all(trajectory.success for trajectory in shown)
    assert len({trajectory.task.id for trajectory in shown}) == 6
    assert shown == oracle_demonstrations(craft, 6, groups=DEPTH, seed=3)
    assert shown != oracle_demonstrations(craft, 6, groups=DEPTH, seed=4)


def test_a_corpus_knows_the_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        texts = environment_corpus(craft, most=5)
    assert any(text.startswith("Crafting commands:") for text in texts)
    assert any(text.startswith("craft ") for text in texts)
    assert not caplog.records
