"""Supervised training uses the tokens and the mask of reinforcement learning, unchanged up to the loss."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator, ParallelismConfig
from transformers import AutoModelForCausalLM, BloomConfig, FalconConfig, MambaConfig, OPTConfig, Qwen2Config
from trl import SFTConfig

from agentgym_envs.cli import main
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import EpisodeSpec, Limits, ScriptedEngine, encode_trajectory, play
from agentgym_trl.collator import IGNORED, rows_of
from agentgym_trl.demonstrations import environment_corpus, oracle_demonstrations
from agentgym_trl.models import make_codec
from agentgym_trl.sft import _check_packing, make_sft_trainer, sft_dataset
from tests.adapters.trl.small import DEPTH, ENV, craft, demonstrations, make_small_model, settings
from tests.graded import KWARGS


def sft_config(out: Path, **more: Any) -> SFTConfig:
    known = {k: v for k, v in settings(out, **more).items() if k not in ("max_completion_length", "num_generations")}
    return SFTConfig(**known)


def test_labels_are_the_mask_of_a_rollout(tokenizer: Any) -> None:
    """An engine with the oracle's answers trains on the same ids as supervised training."""
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
        labels = rows_of(encoded)[0]["labels"]
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


@pytest.mark.parametrize("packing", [False, True])
def test_over_long_trajectories_are_refused(packing: bool, tokenizer: Any, tmp_path: Path) -> None:
    codec = make_codec(tokenizer)
    longest = max(len(row["input_ids"]) for row in sft_dataset(demonstrations(), codec))
    assert len(sft_dataset(demonstrations(), codec, longest)) == 12
    with pytest.raises(UsageError, match=f"a trajectory has {longest} tokens, more than --max_length {longest - 1},"):
        make_sft_trainer(
            make_small_model(tokenizer),
            demonstrations(),
            codec,
            sft_config(tmp_path, max_length=longest - 1, packing=packing),
        )


@pytest.mark.train
def test_packing_changes_rows_only(tokenizer: Any, tmp_path: Path) -> None:
    codec = make_codec(tokenizer)
    lengths = [len(row["input_ids"]) for row in sft_dataset(demonstrations(), codec)]
    trainers = {}
    for packing in (False, True):
        args = sft_config(tmp_path, per_device_train_batch_size=6, max_steps=4, packing=packing, max_length=300)
        trainers[packing] = make_sft_trainer(make_small_model(tokenizer), demonstrations(), codec, args)
        trainers[packing].train()
    for step in range(4):
        alone, packed = (trainers[packing].state.log_history[step] for packing in (False, True))
        for key in ("loss", "grad_norm", "mean_token_accuracy"):
            assert packed[key] == pytest.approx(alone[key], rel=1e-3)
    assert alone["num_tokens"] == 2 * sum(lengths)  # 4 steps of 6 of the 12
    pairs = zip(trainers[False].model.parameters(), trainers[True].model.parameters(), strict=True)
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in pairs)
    assert 1 < len(next(iter(trainers[True].get_train_dataloader()))["input_ids"]) < 6


@pytest.mark.train
@pytest.mark.parametrize("longest", [250, 1000])
def test_tokens_of_all_packed_rows_are_counted(longest: int, tokenizer: Any, tmp_path: Path) -> None:
    args = sft_config(tmp_path, per_device_train_batch_size=12, max_steps=1, packing=True, max_length=longest)
    trainer = make_sft_trainer(make_small_model(tokenizer), demonstrations(), make_codec(tokenizer), args)
    shape = next(iter(trainer.get_train_dataloader()))["input_ids"].shape
    trainer.train()
    assert trainer.state.log_history[0]["num_tokens"] == shape.numel()


SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
MIXING = {
    "positions without a mask": OPTConfig(**SIZES, ffn_dim=16, word_embed_proj_dim=16),
    "own mask": FalconConfig(**SIZES),
    "alibi": BloomConfig(hidden_size=16, n_layer=1, n_head=2),
    "state space": MambaConfig(hidden_size=16, num_hidden_layers=1, state_size=4),
}


@pytest.mark.train
@pytest.mark.parametrize("name", MIXING)
def test_a_model_that_mixes_packed_trajectories_is_refused(name: str, tokenizer: Any, tmp_path: Path) -> None:
    codec, config = make_codec(tokenizer), MIXING[name]
    config.vocab_size = len(tokenizer)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with pytest.raises(
        UsageError, match=r"--packing: \w+ with eager attention lets packed trajectories attend to each other"
    ):
        make_sft_trainer(model, demonstrations(), codec, sft_config(tmp_path, packing=True))
    make_sft_trainer(model, demonstrations(), codec, sft_config(tmp_path))


@pytest.mark.train
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_model_that_separates_packed_trajectories_is_accepted(
    attention: str, dtype: Any, tokenizer: Any, tmp_path: Path
) -> None:
    config = Qwen2Config(**SIZES, vocab_size=len(tokenizer), num_key_value_heads=1, intermediate_size=16)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=dtype)
    trainer = make_sft_trainer(model, demonstrations(), make_codec(tokenizer), sft_config(tmp_path, packing=True))
    assert trainer.model.training == model.training and not trainer.data_collator.flat


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"packing": True, "packing_strategy": "wrapped"}, "--packing_strategy wrapped would truncate trajectories"),
        ({"packing": True, "packing_strategy": "bfd_split"}, "--packing_strategy bfd_split would truncate"),
        ({"packing": True, "max_length": None}, "packing needs the length of a row: --max_length"),
        ({"padding_free": True}, "use --packing true instead"),
    ],
)
def test_unsupported_packing_is_refused(more: dict[str, Any], words: str, tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        make_sft_trainer(
            make_small_model(tokenizer), demonstrations(), make_codec(tokenizer), sft_config(tmp_path, **more)
        )


@pytest.mark.train
def test_packed_rows_are_not_split_over_processes(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks only the setting, as such a run needs several GPUs."""
    trainer = make_sft_trainer(
        make_small_model(tokenizer), demonstrations(), make_codec(tokenizer), sft_config(tmp_path)
    )
    monkeypatch.setattr(Accelerator, "parallelism_config", ParallelismConfig(cp_size=2))
    with pytest.raises(UsageError, match="--packing does not work with context or sequence parallelism"):
        _check_packing(trainer)


def conversations(count: int = 6) -> list[dict[str, Any]]:
    """Demonstrations in AgentTraj-L's format: an untrained answer to the rules comes first."""
    records = []
    for number, trajectory in enumerate(demonstrations()[:count]):
        messages: list[dict[str, Any]] = [
            {"from": "human", "loss": None, "value": "Craft what is asked for."},
            {"from": "gpt", "loss": False, "value": "OK."},
        ]
        for turn in trajectory.turns:
            messages.append({"from": "human", "loss": None, "value": turn.observation})
            messages.append({"from": "gpt", "loss": True, "value": turn.action})
        records.append({"item_id": f"textcraft_{number}", "conversations": messages})
    return records


@pytest.mark.train
def test_the_command_takes_conversations(
    model_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "traj.json").write_text(json.dumps(conversations()))
    words = ["--env", ENV, "--env-kwargs", json.dumps(KWARGS), "--model", str(model_path), "--max_steps", "2"]
    words += ["--per_device_train_batch_size", "3", "--use_cpu", "--report_to", "none", "--logging_steps", "1"]
    words += ["--packing", "true", "--chat-template-kwargs", '{"enable_thinking": false}']
    demos = ["--demos", str(tmp_path / "traj.json"), "--out", str(tmp_path / "out")]
    assert main(["train", "sft", *words, *demos]) == 0, capfd.readouterr().err
    capfd.readouterr()
    settings = json.loads((tmp_path / "out" / "run.json").read_text())
    assert settings["chat_template_kwargs"] == {"enable_thinking": False}
    assert (tmp_path / "out" / "model.safetensors").exists()
    for bad in ("7", "{", '["a"]'):
        assert main(["train", "sft", *words, *demos, "--chat-template-kwargs", bad]) == 2
        assert "--chat-template-kwargs must be a JSON object" in capfd.readouterr().err
    (tmp_path / "traj.json").write_text('{"prompt": "a"}\n')
    assert main(["train", "sft", *words, *demos]) == 2
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and "traj.json:1: neither a trajectory" in lines[0]


def test_empty_demonstrations_are_refused(tokenizer: Any) -> None:
    with pytest.raises(UsageError, match="no trajectory to train on"):
        sft_dataset([], make_codec(tokenizer))


def test_demonstrations_are_solved_and_distinct() -> None:
    shown = oracle_demonstrations(craft, 6, groups=DEPTH, seed=3)
    assert all(trajectory.success for trajectory in shown)
    assert len({trajectory.task.id for trajectory in shown}) == 6
    assert shown == oracle_demonstrations(craft, 6, groups=DEPTH, seed=3)
    assert shown != oracle_demonstrations(craft, 6, groups=DEPTH, seed=4)


def test_a_corpus_has_the_vocabulary(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        texts = environment_corpus(craft, max_tasks=5)
    assert any(text.startswith("Crafting commands:") for text in texts)
    assert any(text.startswith("craft ") for text in texts)
    assert not caplog.records
