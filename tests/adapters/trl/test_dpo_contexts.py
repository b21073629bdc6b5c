"""Preferences between episodes of several contexts: losses, gradients, lengths, and the recorded tokens of agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import Limits, TokenTrajectory, encode_trajectory
from agentgym_envs.rollout.token_file import TokenWriter, tokens_path
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter
from agentgym_trl.dpo import LOSS_TYPES, dpo_dataset, make_dpo_trainer
from agentgym_trl.models import load_tokenizer, make_codec
from agentgym_trl.pairs import Pair, Preference, load_trajectories
from agentgym_trl.recorded_tokens import RecordedTokens
from tests.adapters.trl.small import FORGETFUL, make_small_model
from tests.adapters.trl.test_contexts import alone, thinking_codec
from tests.adapters.trl.test_dpo import LORA, Outcome, a_batch, dpo, dpo_config, files, gradient, pairs, shake
from tests.adapters.trl.test_padding_free import apart
from tests.rollout.contexts import split
from tests.rollout.families import FAMILIES, roll
from tests.rollout.test_agents_tokens import Writer, run

__all__ = ["dpo", "files"]
pytestmark = pytest.mark.train
THOUGHT = "<think>\nhm\n</think>\n\nup"


@pytest.fixture(scope="module")
def codec(model_path: Path) -> Any:
    return make_codec(load_tokenizer(str(model_path)))


@pytest.fixture
def losses(model_path: Path, codec: Any, tmp_path: Path) -> Callable[..., Any]:
    """The losses and gradients of `pairs()` as they are, and with a context for each turn, and TRL's metrics."""

    def call(peft: Any = None, **options: Any) -> Any:
        found = []
        for cut in (None, lambda t: split(encode_trajectory(t, codec))):
            trainer = make_dpo_trainer(
                str(model_path),
                pairs(),
                codec,
                dpo_config(tmp_path, per_device_train_batch_size=len(pairs()), **options),
                encode=cut,
                peft_config=peft,
            )
            shake(trainer.model)
            batch = a_batch(trainer)
            assert ("contexts" in batch) == (cut is not None)
            loss = trainer.compute_loss(trainer.model, batch)
            shown = {**trainer._metrics["train"], **trainer._metrics["eval"]}
            found.append((loss.detach(), gradient(trainer.model, loss), shown))
        return found

    return call


@pytest.mark.rotating(always=3)
@pytest.mark.parametrize(
    "options",
    [
        {"beta": 0.3},
        {"precompute_ref_log_probs": True, "ld_alpha": 0.5},
        {"peft": LORA, "pad_to_multiple_of": 16},
        {"peft": LORA, "precompute_ref_log_probs": True},
        {"use_weighting": True, "gradient_checkpointing": True},
        *({"loss_type": [name], "label_smoothing": 0.1} for name in LOSS_TYPES[1:]),
    ],
    ids=lambda options: "-".join(options) + str(options.get("loss_type", "")),
)
def test_an_unchanged_context_split_into_contexts_has_the_same_gradient(
    options: dict[str, Any], losses: Callable[..., Any]
) -> None:
    (loss, grads, metrics), (other, other_grads, other_metrics) = losses(**options)
    assert float(other) == pytest.approx(float(loss), rel=1e-6, abs=1e-6)
    assert apart(other_grads, grads) < 5e-5 and grads.abs().max() > 1e-4
    for metric in ("entropy", "logits/chosen", "logps/rejected", "mean_token_accuracy", "rewards/margins"):
        assert other_metrics[metric] == pytest.approx(metrics[metric], rel=1e-4, abs=1e-5), metric


def thinking_pair() -> tuple[Any, Pair]:
    codec = thinking_codec()
    sides = [
        roll(codec, [codec.encode_answer(text) for text in texts], [*"abcd"][: len(texts) + 1]).trajectory
        for texts in ([THOUGHT] * 3, ["<think>\nno\n</think>\n\ndown", THOUGHT])
    ]
    return codec, Pair(sides[0], sides[1], Preference.SCORE)


def test_a_log_ratio_is_the_sum_over_all_contexts(tmp_path: Path) -> None:
    """A thinking model with its own template; each context is scored alone, without padding."""
    codec, pair = thinking_pair()
    model = make_small_model(codec.tokenizer)
    model.save_pretrained(tmp_path / "model")
    trainer = make_dpo_trainer(str(tmp_path / "model"), [pair], codec, dpo_config(tmp_path, beta=0.3))
    shake(trainer.model)
    ratios = []
    for side in (pair.chosen, pair.rejected):
        contexts = encode_trajectory(side, codec).contexts()
        assert len(contexts) == len(side.turns)
        ratios.append(sum(sampled(trainer.model, c) - sampled(trainer.ref_model, c) for c in contexts))
    loss = trainer.compute_loss(trainer.model, a_batch(trainer))
    torch.testing.assert_close(loss.detach(), -logsigmoid(0.3 * torch.as_tensor(ratios[0] - ratios[1])))
    assert abs(float(ratios[0] - ratios[1])) > 0.1


def sampled(model: Any, context: TokenTrajectory) -> torch.Tensor:
    return (alone(model, context, 1.0) * torch.tensor(context.assistant_mask)).sum()


def test_the_length_limit_bounds_each_context() -> None:
    codec, pair = thinking_pair()
    contexts = [c for side in (pair.chosen, pair.rejected) for c in encode_trajectory(side, codec).contexts()]
    longest = max(len(context.prompt_ids) + len(context.ids) for context in contexts)
    rows = dpo_dataset([pair], codec, longest)
    assert len(rows[0]["prompt_ids"]) + len(rows[0]["chosen_ids"]) > longest
    with pytest.raises(UsageError, match=f"a trajectory has {longest} tokens, more than --max_length {longest - 1}"):
        dpo_dataset([pair], codec, longest - 1)


def played(name: str, context: str, codec: Any, folder: Path, *, tokens: bool = True) -> tuple[Trajectory, Any, Path]:
    """An agent's episode, read back from a file; and its tokens."""
    episode = run(name, context, Writer(codec, ["up", "down", "up", "up"]), codec, Limits(max_turns=4))
    path = folder / "agent.jsonl"
    with TrajectoryWriter(path) as writer, TokenWriter(path) as other:
        other.write(writer.write(episode.trajectory), episode.segments, codec)
    if not tokens:
        tokens_path(path).unlink()
    return load_trajectories([path])[0], episode.tokens(codec), path


def test_the_contexts_of_an_agent_come_from_its_recorded_tokens(tmp_path: Path) -> None:
    codec = make_codec(FAMILIES["qwen2.5"].tokenizer())
    trajectory, wanted, path = played("act", "last:1", codec, tmp_path)
    found = RecordedTokens([tmp_path / "none.jsonl", path], codec)(trajectory)
    assert (found.prompt_ids, found.ids, found.assistant_mask) == (wanted.prompt_ids, wanted.ids, wanted.assistant_mask)
    assert found.context_starts == wanted.context_starts != ()
    with pytest.raises(UsageError, match="of another tokenizer than the model's"):
        RecordedTokens([path], make_codec(FAMILIES["llama-3"].tokenizer()))(trajectory)


@pytest.mark.parametrize(
    "name, context, needed", [("act", "last:1", True), ("plan", "full", True), ("act", "full", False)]
)
def test_an_agent_without_recorded_tokens_is_refused(name: str, context: str, needed: bool, tmp_path: Path) -> None:
    codec = make_codec(FAMILIES["qwen2.5"].tokenizer())
    trajectory, wanted, path = played(name, context, codec, tmp_path, tokens=False)
    tokens = RecordedTokens([path], codec)
    if not needed:
        assert tokens(trajectory).ids == wanted.ids
        return
    with pytest.raises(UsageError, match=f"the agent {name} with the context {context} read other messages"):
        tokens(trajectory)


def test_the_command_takes_a_template_that_drops_answers(
    dpo: Callable[..., Outcome], files: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "forgetful.jinja").write_text(FORGETFUL)
    words = ["--trajectories", *files, "--max-pairs-per-task", 1, "--chat-template", tmp_path / "forgetful.jinja"]
    done = dpo(*words, "--logging_steps", 1)
    assert done.code == 0, done.err
    assert "keep_thoughts" not in json.loads((tmp_path / "out" / "run.json").read_text())
    refused = dpo(*words, "--keep-thoughts", "true", "--out", "other")
    assert refused.code == 2 and "prefix-preserving" in refused.err
