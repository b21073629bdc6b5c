"""Preferences between trajectories: TRL's loss, with all of its options, on the policy's own tokens only."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from torch import Tensor
from torch.nn.functional import logsigmoid
from trl import DPOConfig, DPOTrainer

from agentgym_envs.cli import main
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import EpisodeSpec, Limits, RandomPolicy, encode_trajectory, play_many_text, run_sync
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter
from agentgym_trl.dpo import DIVERGENCES, LOSS_TYPES, dpo_dataset, make_dpo_trainer
from agentgym_trl.models import load_tokenizer, make_codec
from agentgym_trl.pairs import Pair, Preference, make_pairs
from tests.adapters.trl.small import (
    DEPTH,
    ENV,
    ScoredCraft,
    craft,
    demonstrations,
    metrics,
    settings,
)
from tests.graded import KWARGS

LORA = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")


@cache
def failures() -> tuple[Trajectory, ...]:
    """Episodes of a random policy on the tasks and seeds of the demonstrations, a few turns long."""
    policies = iter(range(1000))
    played: list[Trajectory] = []
    for turns in (1, 2, 3):
        specs = [EpisodeSpec(shown.task.id, shown.seed) for shown in demonstrations()]
        played += run_sync(
            play_many_text(specs, craft, lambda: RandomPolicy(next(policies)), limits=Limits(max_turns=turns))
        )
    return tuple(trajectory for trajectory in played if not trajectory.success)


@cache
def pairs() -> list[Pair]:
    return make_pairs([*demonstrations(), *failures()], max_pairs_per_task=1).pairs


@pytest.fixture(scope="module")
def codec(model_path: Path) -> Any:
    return make_codec(load_tokenizer(str(model_path)))


@pytest.fixture
def make(model_path: Path, codec: Any, tmp_path: Path) -> Callable[..., Any]:
    """A trainer over `pairs()`; options are those of `DPOConfig`, `extra` those of the trainer."""

    def call(extra: dict[str, Any] | None = None, chosen: Sequence[Pair] | None = None, **more: Any) -> Any:
        args = dpo_config(tmp_path, **more)
        return make_dpo_trainer(str(model_path), pairs() if chosen is None else chosen, codec, args, **(extra or {}))

    return call


def dpo_config(out: Path, **more: Any) -> DPOConfig:
    given = settings(out, **{"per_device_train_batch_size": 4, **more})
    return DPOConfig(**{k: v for k, v in given.items() if k not in ("max_completion_length", "num_generations")})


def a_batch(trainer: Any) -> dict[str, Any]:
    batch: dict[str, Any] = next(iter(trainer.get_train_dataloader()))
    return batch


def shake(model: Any, seed: int = 0) -> None:
    """Move the policy away from the reference model."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.05 * torch.randn(parameter.shape, generator=generator)


# TRL's own masks, and ours


@pytest.mark.train
def test_trls_own_trainer_scores_observations(model_path: Path, codec: Any, tmp_path: Path) -> None:
    """The reason for `agentgym_trl.dpo`. If this fails, a new TRL may not need it."""
    shown = max(demonstrations(), key=lambda trajectory: len(trajectory.turns))
    messages, prompt = shown.messages(), 1  # no instructions, so one user message
    assert [message["role"] for message in messages[:2]] == ["user", "assistant"]
    rows = [{"prompt": messages[:prompt], "chosen": messages[prompt:], "rejected": messages[prompt : prompt + 1]}]
    arguments: dict[str, Any] = {"args": dpo_config(tmp_path, max_length=None), "processing_class": codec.tokenizer}
    plain = DPOTrainer(str(model_path), train_dataset=Dataset.from_list(rows), **arguments)
    batch = plain.data_collator(list(plain.train_dataset))
    scored = codec.decode(batch["input_ids"][0][batch["completion_mask"][0].bool()].tolist())
    encoded = encode_trajectory(shown, codec)
    assert batch["input_ids"][0].tolist() == encoded.prompt_ids + encoded.ids  # the ids are equal; the mask is not
    assert shown.turns[1].observation in scored
    assert int(batch["completion_mask"][0].sum()) > sum(encoded.assistant_mask)
    with pytest.raises(KeyError):
        DPOTrainer(str(model_path), train_dataset=dpo_dataset(pairs(), codec), **arguments)


@pytest.mark.train
def test_the_mask_of_a_batch_is_the_assistant_mask(make: Callable[..., Any], codec: Any) -> None:
    """With any padding; masked tokens stay in the context."""
    wanted = {}
    for pair in pairs():
        for trajectory in (pair.chosen, pair.rejected):
            e = encode_trajectory(trajectory, codec)
            wanted[tuple(e.prompt_ids + e.ids)] = [0] * len(e.prompt_ids) + e.assistant_mask
            assert 0 in e.assistant_mask or len(trajectory.turns) == 1
    trainer, seen = make(pad_to_multiple_of=16), 0
    for batch in trainer.get_train_dataloader():
        assert batch["input_ids"].size(1) % 16 == 0
        for ids, attended, mask in zip(
            batch["input_ids"], batch["attention_mask"].bool(), batch["completion_mask"], strict=True
        ):
            assert mask[attended].tolist() == wanted[tuple(ids[attended].tolist())]
            assert not mask[~attended].any()
            seen += 1
    assert seen == 2 * len(pairs()) >= 20


@contextmanager
def labels_seen(trainer: Any) -> Iterator[list[Tensor]]:
    """The labels that the policy and the reference model get."""
    seen: list[Tensor] = []

    def look(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        seen.append(kwargs["labels"])

    models = {trainer.model, trainer.ref_model or trainer.model}
    handles = [model.register_forward_pre_hook(look, with_kwargs=True) for model in models]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.train
@pytest.mark.parametrize("peft_config", [None, LORA], ids=["full", "lora"])
def test_only_labels_of_the_policys_tokens_reach_a_model(peft_config: Any, make: Callable[..., Any]) -> None:
    trainer = make({"peft_config": peft_config})
    batch = a_batch(trainer)
    with labels_seen(trainer) as seen:
        trainer.compute_loss(trainer.model, batch)
    assert len(seen) == 2
    for labels in seen:
        assert torch.equal(labels != -100, batch["completion_mask"].bool())
        assert torch.equal(labels[labels != -100], batch["input_ids"][labels != -100])


# The loss, by hand


class Scored(NamedTuple):
    """Log-probabilities of the policy's tokens of one side of one pair, in order."""

    policy: Tensor
    reference: Tensor

    def ratio(self, tail: int | None = None, alpha: float = 1.0) -> Tensor:
        """The log-ratio; tokens after the first `tail` have the weight `alpha` (LD-DPO)."""
        gap = self.policy - self.reference
        return gap.sum() if tail is None else gap[:tail].sum() + alpha * gap[tail:].sum()

    def mean(self) -> Tensor:
        return self.ratio() / len(self.policy)


def own_logprobs(model: Any, trajectory: Trajectory, codec: Any) -> Tensor:
    """One row, unpadded, with full logits: the slow way."""
    episode = encode_trajectory(trajectory, codec)
    ids = torch.tensor(episode.prompt_ids + episode.ids)
    logprobs = model(input_ids=ids[None]).logits[0].log_softmax(-1)
    indices = [len(episode.prompt_ids) + t for t, m in enumerate(episode.assistant_mask) if m]
    return torch.stack([logprobs[index - 1, ids[index]] for index in indices])


def by_hand(trainer: Any, codec: Any, loss: Callable[[Scored, Scored], Tensor]) -> Tensor:
    """The mean of a pair's loss over all pairs."""
    losses = []
    for pair in pairs():
        sides = []
        for trajectory in (pair.chosen, pair.rejected):
            with torch.no_grad():
                reference = own_logprobs(trainer.ref_model, trajectory, codec)
            sides.append(Scored(own_logprobs(trainer.model, trajectory, codec), reference))
        losses.append(loss(*sides))
    return torch.stack(losses).mean()


def gradient(model: Any, loss: Tensor) -> Tensor:
    model.zero_grad()
    loss.backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def ld_loss(w: Scored, r: Scored) -> Tensor:
    shared = min(len(w.policy), len(r.policy))
    return -logsigmoid(0.3 * (w.ratio(shared, 0.5) - r.ratio(shared, 0.5)))


BY_HAND: dict[str, tuple[dict[str, Any], Callable[[Scored, Scored], Tensor]]] = {
    "sigmoid": ({}, lambda w, r: -logsigmoid(0.3 * (w.ratio() - r.ratio()))),
    "hinge": ({"loss_type": ["hinge"]}, lambda w, r: (1 - 0.3 * (w.ratio() - r.ratio())).relu()),
    "ipo": ({"loss_type": ["ipo"]}, lambda w, r: (w.mean() - r.mean() - 1 / 0.6) ** 2),
    "sigmoid_norm": ({"loss_type": ["sigmoid_norm"]}, lambda w, r: -logsigmoid(0.3 * (w.mean() - r.mean()))),
    "ld_alpha": ({"ld_alpha": 0.5}, ld_loss),
}


@pytest.mark.rotating(always=2)
@pytest.mark.train
@pytest.mark.parametrize("name", BY_HAND)
def test_the_gradient_is_that_of_the_loss_on_the_policys_tokens(
    name: str, make: Callable[..., Any], codec: Any
) -> None:
    options, loss = BY_HAND[name]
    trainer = make(beta=0.3, per_device_train_batch_size=len(pairs()), **options)
    shake(trainer.model)
    ours = trainer.compute_loss(trainer.model, a_batch(trainer))
    expected = by_hand(trainer, codec, loss)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    got, wanted = gradient(trainer.model, ours), gradient(trainer.model, expected)
    assert wanted.norm() > 1e-3
    assert (got - wanted).norm() / wanted.norm() < 1e-4


@pytest.mark.train
def test_the_sft_term_is_the_mean_over_the_policys_tokens(make: Callable[..., Any], codec: Any) -> None:
    trainer = make(loss_type=["sigmoid", "sft"], loss_weights=[0.0, 1.0], per_device_train_batch_size=len(pairs()))
    own = torch.cat([own_logprobs(trainer.model, pair.chosen, codec) for pair in pairs()])
    torch.testing.assert_close(trainer.compute_loss(trainer.model, a_batch(trainer)), -own.mean())


@pytest.mark.rotating(always=5)
@pytest.mark.train
@pytest.mark.parametrize(
    "options",
    [
        *({"loss_type": [name], "label_smoothing": 0.1} for name in LOSS_TYPES),
        *({"f_divergence_type": name} for name in DIVERGENCES[1:]),
        {"use_weighting": True},
        {"ld_alpha": 0.5, "precompute_ref_log_probs": True},
        {"gradient_checkpointing": True},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_tokens_of_the_environment_change_no_loss(options: dict[str, Any], make: Callable[..., Any]) -> None:
    """Each of TRL's losses uses the tokens of the mask only.

    The language head separates the tokens: a head that predicts observations wrongly changes no loss.
    """
    trainer = make(**options)
    shake(trainer.model)
    batch = a_batch(trainer)
    with torch.no_grad():
        before = trainer.compute_loss(trainer.model, batch)
        with wrong_elsewhere(trainer.model, batch):
            after = trainer.compute_loss(trainer.model, batch)
        with wrong_elsewhere(trainer.model, batch, invert=True):
            other = trainer.compute_loss(trainer.model, batch)
    assert torch.equal(before, after) and before.isfinite()
    assert not torch.equal(before, other)


@contextmanager
def wrong_elsewhere(model: Any, batch: dict[str, Any], *, invert: bool = False) -> Iterator[None]:
    """Negate the last hidden state wherever the next token is not the policy's (or, inverted, is)."""
    own = batch["completion_mask"].bool().roll(-1, 1)

    def turn(module: Any, args: Any, output: Any) -> Any:
        return torch.where((own ^ invert)[..., None], output, -output)

    handle = model.base_model.norm.register_forward_hook(turn)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.train
@pytest.mark.parametrize("peft_config", [None, LORA], ids=["full", "lora"])
def test_precomputed_references_are_the_same(peft_config: Any, make: Callable[..., Any]) -> None:
    losses = []
    for precompute in (False, True):
        trainer = make({"peft_config": peft_config}, precompute_ref_log_probs=precompute)
        shake(trainer.model)
        losses.append(trainer.compute_loss(trainer.model, a_batch(trainer)))
    torch.testing.assert_close(*losses)


# Runs


@pytest.mark.rotating(always=1)
@pytest.mark.train
@pytest.mark.parametrize("peft_config", [None, LORA], ids=["full", "lora"])
def test_training_widens_the_margin(peft_config: Any, make: Callable[..., Any]) -> None:
    more = {"learning_rate": 3e-3 if peft_config is None else 3e-2, "per_device_train_batch_size": 6}
    trainer = make({"peft_config": peft_config, "eval_pairs": pairs()[:3]}, pairs()[:6], max_steps=8, **more)
    trainer.train()
    steps = [row for row in trainer.state.log_history if "rewards/margins" in row]
    assert steps[0]["rewards/margins"] == pytest.approx(0.0, abs=1e-4)  # the reference is the initial policy
    assert steps[0]["loss"] == pytest.approx(math.log(2), abs=1e-3)
    assert steps[-1]["rewards/margins"] > 1.0
    assert steps[-1]["rewards/accuracies"] > 0.9 and steps[-1]["loss"] < 0.4
    assert trainer.evaluate()["eval_rewards/margins"] > 1.0


@pytest.mark.train
def test_a_custom_reference_model_is_used(make: Callable[..., Any], codec: Any) -> None:
    other = make().model
    shake(other, seed=1)
    trainer = make({"ref_model": other})
    assert trainer.ref_model is other
    assert abs(trainer.compute_loss(trainer.model, a_batch(trainer)).item() - math.log(2)) > 1e-3


# Bad input


@pytest.mark.parametrize(
    "options, part",
    [
        ({"loss_type": ["magic"]}, "there is no loss_type 'magic'; choose from sigmoid"),
        ({"f_divergence_type": "magic"}, "there is no f_divergence_type 'magic'; choose from reverse_kl"),
        ({"ld_alpha": 1.5}, "--ld_alpha must lie between 0 and 1, got 1.5"),
        ({"loss_type": ["aot"], "use_weighting": True}, "WPO-style weighting is not implemented for 'aot'"),
    ],
)
def test_invalid_settings_are_refused(options: dict[str, Any], part: str, make: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=re.escape(part)) as caught:
        make(**options)
    assert "\n" not in str(caught.value)


def test_over_long_trajectories_are_refused(codec: Any, make: Callable[..., Any]) -> None:
    sides = [encode_trajectory(t, codec) for pair in pairs() for t in (pair.chosen, pair.rejected)]
    longest = max(len(side.prompt_ids) + len(side.ids) for side in sides)
    assert len(dpo_dataset(pairs(), codec, longest)) == len(pairs())
    with pytest.raises(UsageError, match=f"a trajectory has {longest} tokens, more than --max_length {longest - 1}"):
        make(max_length=longest - 1)


def test_invalid_pairs_are_refused(codec: Any) -> None:
    with pytest.raises(UsageError, match="no pair to train on"):
        dpo_dataset([], codec)
    first, second = demonstrations()[:2]
    with pytest.raises(UsageError, match="the sides of a pair must have the same prompt"):
        dpo_dataset([Pair(first, second, Preference.SCORE)], codec)


# The command


class Outcome(NamedTuple):
    code: int
    err: str


@pytest.fixture
def dpo(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model_path: Path, tmp_path: Path
) -> Callable[..., Outcome]:
    monkeypatch.setenv("AGENTGYM_DEBUG", "")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    small = ["--max_steps", "2", "--per_device_train_batch_size", "4", "--use_cpu", "--report_to", "none"]

    def call(*words: object, env: Sequence[str] = (ENV,), kwargs: Any = KWARGS) -> Outcome:
        play = ["--env", *env, "--env-kwargs", json.dumps(kwargs), "--groups", *DEPTH]
        known = ["train", "dpo", *play, "--model", str(model_path), "--out", "out", *small]
        code = main([*known, *(str(word) for word in words)])
        return Outcome(code, capfd.readouterr().err)

    return call


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Demonstrations, and failures at the same tasks, each in a file."""
    return [record(tmp_path / "demos.jsonl", demonstrations()), record(tmp_path / "failed.jsonl", failures())]


def record(path: Path, trajectories: Sequence[Trajectory]) -> Path:
    with TrajectoryWriter(path) as writer:
        for trajectory in trajectories:
            writer.write(trajectory)
    return path


def refused(outcome: Outcome, *parts: str) -> None:
    """Exit code 2, and a single line with all of `parts`."""
    lines = [line for line in outcome.err.splitlines() if line.strip()]
    assert outcome.code == 2 and len(lines) == 1 and lines[0].startswith("agentgym: "), outcome
    for part in parts:
        assert part in lines[0]


@pytest.mark.train
def test_the_command_runs_and_resumes(dpo: Callable[..., Outcome], files: list[Path], tmp_path: Path) -> None:
    words = ["--trajectories", *files, "--max-pairs-per-task", 1, "--logging_steps", 1, "--save_steps", 1]
    done = dpo(*words)
    assert done.code == 0, done.err
    count, played = len(pairs()), 12 + len(failures())
    made = f"{count} preference pairs ({count} success, 0 score, 0 turns) from {played} trajectories; "
    made += f"{12 - count} of 12 starts (task and seed) gave none"
    assert made in done.err
    assert "Done:" in done.err
    for name in ("config.json", "model.safetensors", "tokenizer.json", "checkpoint-2", "run.json"):
        assert (tmp_path / "out" / name).exists()
    refused(dpo(*words), "already holds a run", "--resume")
    refused(dpo(*words, "--resume", "--max-pairs-per-task", 2), "holds another run: its pairs is")
    more = dpo(*words, "--resume", "--max_steps", 3, "--learning_rate", "1e-3")
    assert more.code == 0, more.err
    assert [row["step"] for row in metrics(tmp_path / "out") if "rewards/margins" in row] == [1, 2, 3]


@pytest.mark.train
def test_a_resumed_run_equals_an_uninterrupted_run(
    dpo: Callable[..., Outcome], files: list[Path], tmp_path: Path
) -> None:
    words = ["--trajectories", *files, "--save_steps", 1, "--lr_scheduler_type", "constant", "--learning_rate", "1e-3"]
    words += ["--max-pairs-per-task", 1, "--per_device_train_batch_size", 2]
    assert dpo(*words, "--max_steps", 3).code == 0
    assert dpo(*words, "--max_steps", 1, "--out", "b").code == 0
    assert dpo(*words, "--max_steps", 3, "--out", "b", "--resume").code == 0
    whole, resumed = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("out", "b"))
    assert whole == resumed


@pytest.mark.train
def test_the_command_accepts_lora_and_a_config_file(
    dpo: Callable[..., Outcome], files: list[Path], tmp_path: Path
) -> None:
    joined = record(tmp_path / "all.jsonl", [*demonstrations(), *failures()])
    (tmp_path / "c.yaml").write_text(f"trajectories: {joined}\npreferences: success\nloss_type: [sigmoid, sft]\n")
    lora = ["--use_peft", "--lora_target_modules", "all-linear"]
    done = dpo("--config", "c.yaml", *lora, "--tasks", 3, "--max-pairs-per-task", 1)
    assert done.code == 0, done.err
    assert "3 preference pairs (3 success) from" in done.err
    assert (tmp_path / "out" / "adapter_model.safetensors").exists()


@pytest.mark.slow
def test_invalid_data_is_refused(dpo: Callable[..., Outcome], files: list[Path], tmp_path: Path) -> None:
    demos, failed = files
    refused(dpo(), "--trajectories")
    refused(dpo("--trajectories", "none.jsonl"), "--trajectories none.jsonl cannot be read: No such file")
    refused(dpo("--trajectories", demos), "there is no pair to train on: 0 preference pairs", "agentgym demos", "eval")
    refused(dpo("--trajectories", demos, failed, "--preferences", "turns"), "0 preference pairs (0 turns)")
    refused(dpo("--trajectories", *files, "--preferences", "luck"), "--preferences must name some of success")
    refused(dpo("--trajectories", *files, "--min-margin", 2), "--min-margin is a difference of scores")
    refused(dpo("--trajectories", *files, "--split", "test"), "trajectories is of", "split test", "train")
    refused(dpo("--trajectories", *files, "--split", "dev"), "there is no split 'dev'")
    other = {**KWARGS, "max_distractors": 3}
    refused(dpo("--trajectories", *files, kwargs=other), "none of the", "'max_distractors': 0", "--env-kwargs")
    refused(dpo("--trajectories", *files, "--max_length", 9), "more than --max_length 9")
    refused(dpo("--trajectories", *files, "--loss_type", "magic"), "there is no loss_type 'magic'")
    refused(dpo("--trajectories", *files, "--resume", "--sync_ref_model"), "--sync_ref_model cannot be resumed")
    refused(dpo("--trajectories", *files, "--sync_ref_model", "--use_peft"), "sync_ref_model")
    torn = tmp_path / "bad.jsonl"
    torn.write_text("{}\n")
    refused(dpo("--trajectories", torn), "bad.jsonl:1: not a trajectory")
    torn.write_text("")
    refused(dpo("--trajectories", torn), "0 preference pairs", "from 0 trajectories")
    assert not (tmp_path / "out" / "run.json").exists()


def test_several_environments_are_refused(dpo: Callable[..., Outcome], files: list[Path]) -> None:
    gym.register("Tests/ScoredCraft-v0", ScoredCraft)
    try:
        several = dpo("--trajectories", *files, env=[ENV, "Tests/ScoredCraft-v0"], kwargs={})
        other = dpo("--trajectories", *files, env=["Tests/ScoredCraft-v0"], kwargs={})
    finally:
        del gym.registry["Tests/ScoredCraft-v0"]
    refused(several, "this algorithm takes one environment", "Tests/ScoredCraft-v0")
    refused(other, "trajectories is of Tests/ScoredCraft-v0", f"most are of {ENV}")
