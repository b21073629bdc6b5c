"""The critic of PPO: its values, its gradients, and its training."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from hypothesis import given
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, MistralConfig, MistralModel, TrainerCallback
from transformers.integrations import deepspeed

from agentgym_envs.cli import main
from agentgym_envs.errors import UsageError
from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig, critic_advantages
from agentgym_trl.cli.arguments import parse
from agentgym_trl.critic import (
    Critic,
    CriticLearner,
    CriticOptions,
    check_vocabulary,
    explained_variance,
    load_backbone,
)
from agentgym_trl.padding import trim_padding
from agentgym_trl.tiny import make_model
from agentgym_trl.trainer import AgentConfig
from tests.adapters.trl.small import Spy, first_batch, make_small_model, make_trainer
from tests.adapters.trl.test_cli import PLAY, ROLL, SMALL
from tests.adapters.trl.turn_numbers import turn_numbers
from tests.trying import examples

Inputs = dict[str, Any]
CLOSE: dict[str, Any] = {"atol": 1e-5, "rtol": 1e-4}


def make_learner(tokenizer: Any, *, head: bool = True, **options: Any) -> CriticLearner:
    critic = Critic(make_small_model(tokenizer).base_model)
    if head:
        torch.nn.init.normal_(critic.head.weight, std=0.1, generator=torch.Generator().manual_seed(1))
    return CriticLearner(critic, CriticOptions(**options), Accelerator(cpu=True))


def padded_batch(prompts: list[list[int]], completions: list[list[int]], extra: tuple[int, int] = (0, 0)) -> Inputs:
    """A batch padded like TRL's: prompts on the left, completions on the right, with `extra` columns on both."""
    wide = max(map(len, prompts)) + extra[0], max(map(len, completions)) + extra[1]
    left = [[9] * (wide[0] - len(p)) + p for p in prompts]
    right = [c + [9] * (wide[1] - len(c)) for c in completions]
    return {
        "prompt_ids": torch.tensor(left),
        "prompt_mask": torch.tensor([[0] * (wide[0] - len(p)) + [1] * len(p) for p in prompts]),
        "completion_ids": torch.tensor(right),
        "completion_mask": torch.tensor([[1] * len(c) + [0] * (wide[1] - len(c)) for c in completions]),
    }


def value_of(learner: CriticLearner, ids: list[int]) -> float:
    """The value after the last of `ids`, from the backbone and the head only."""
    with torch.no_grad():
        hidden = learner.critic.backbone(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
        return float(hidden @ learner.critic.head.weight[0])


rows = st.lists(
    st.tuples(*(st.lists(st.integers(10, 40), min_size=low, max_size=6) for low in (1, 1, 0))), min_size=1, max_size=4
)


@examples(25)
@given(rows=rows, extra=st.tuples(st.integers(0, 3), st.integers(0, 3)), at_once=st.integers(1, 4))
def test_values_equal_those_of_each_row_alone(
    tokenizer: Any, rows: list[tuple[list[int], ...]], extra: tuple[int, int], at_once: int
) -> None:
    """Before every token after the prompt, and after `bootstrap_ids`; 0 if those are empty."""
    learner = make_learner(tokenizer)
    prompts, completions, after = ([row[part] for row in rows] for part in range(3))
    values, next_values = learner.values(padded_batch(prompts, completions, extra), after, at_once)
    for number, (prompt, completion, following) in enumerate(rows):
        expected = [value_of(learner, prompt + completion[:t]) for t in range(len(completion))]
        torch.testing.assert_close(values[number, : len(completion)], torch.tensor(expected), **CLOSE)
        last = value_of(learner, prompt + completion + following) if following else 0.0
        torch.testing.assert_close(next_values[number], torch.tensor(last), **CLOSE)


def test_padding_does_not_count_in_a_sliding_window(tokenizer: Any) -> None:
    """Padding between prompt, answer and bootstrap ids must not push tokens out of a window."""
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        sliding_window=4,
    )
    config.num_key_value_heads, config.head_dim = 2, 16
    critic = Critic(MistralModel(config))
    torch.nn.init.normal_(critic.head.weight)
    learner = CriticLearner(critic, CriticOptions(), Accelerator(cpu=True))
    prompts, completions, after = [[11, 12, 13], [11]], [[14, 15], [16, 17, 18, 19, 20, 21]], [[22, 23], []]
    values, next_values = learner.values(padded_batch(prompts, completions), after, 2)
    expected = [value_of(learner, prompts[0] + completions[0][:t]) for t in range(2)]
    torch.testing.assert_close(values[0, :2], torch.tensor(expected), **CLOSE)
    assert next_values[0] == pytest.approx(value_of(learner, prompts[0] + completions[0] + after[0]), abs=1e-5)
    assert next_values[1] == 0


def test_a_new_critic_has_values_of_0(tokenizer: Any) -> None:
    learner = make_learner(tokenizer, head=False)
    values, after = learner.values(padded_batch([[11, 12]], [[13, 14]]), [[15]], 1)
    assert values.tolist() == [[0, 0]] and after.tolist() == [0]


def lesson(seed: int = 0, count: int = 8, width: int = 6) -> Inputs:
    """A random training batch: tokens, targets, old values and masks."""
    draw = torch.Generator().manual_seed(seed)
    prompts = torch.randint(10, 40, (count, 3), generator=draw).tolist()
    completions = [torch.randint(10, 40, (n % width + 1,), generator=draw).tolist() for n in range(count)]
    inputs = padded_batch(prompts, completions, (0, width - max(map(len, completions))))
    shape = inputs["completion_ids"].shape
    inputs["value_mask"] = (torch.rand(shape, generator=draw) < 0.7) & inputs["completion_mask"].bool()
    inputs["value_targets"] = torch.randn(shape, generator=draw)
    inputs["old_values"] = torch.randn(shape, generator=draw) * 0.1
    return inputs


def part(inputs: Inputs, rows: slice) -> Inputs:
    return trim_padding({name: value[rows] for name, value in inputs.items()})


def gradients(learner: CriticLearner) -> list[torch.Tensor]:
    return [weight.grad.clone() for weight in learner.critic.parameters() if weight.grad is not None]


@pytest.mark.parametrize("clip", [None, 0.2])
def test_the_loss_is_the_clipped_squared_error_on_answer_tokens(clip: float | None, tokenizer: Any) -> None:
    learner, inputs = make_learner(tokenizer, clip_range=clip, max_grad_norm=0.0), lesson()
    values, _ = learner.values(inputs, [[]] * 8, 8)
    expected, clipped, count = 0.0, 0, 0
    for row, column in inputs["value_mask"].nonzero().tolist():
        value, old, target = (float(t[row, column]) for t in (values, inputs["old_values"], inputs["value_targets"]))
        error = (value - target) ** 2
        if clip is not None:
            other = (min(max(value, old - clip), old + clip) - target) ** 2
            clipped += other > error
            error = max(error, other)
        expected, count = expected + 0.5 * error, count + 1
    learner.learn(inputs)
    found = learner.step()
    assert found["critic/loss"] == pytest.approx(expected / count, rel=1e-4)
    assert found["critic/clip_fraction"] == pytest.approx(clipped / count)
    assert clip is None or clipped


def test_tokens_outside_the_mask_have_no_gradient(tokenizer: Any) -> None:
    inputs = lesson()
    absurd = {**inputs, "value_targets": torch.where(inputs["value_mask"], inputs["value_targets"], 1e6)}
    found = []
    for given_inputs in (inputs, absurd):
        learner = make_learner(tokenizer)
        learner.learn(given_inputs)
        found.append(gradients(learner))
    assert found[0] and any(gradient.abs().max() > 0 for gradient in found[0])
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


@pytest.mark.parametrize("sizes", [(4, 4), (1, 5, 2)])
def test_micro_batches_take_the_step_of_the_whole_batch(sizes: tuple[int, ...], tokenizer: Any) -> None:
    """Also if they are trimmed, and have different numbers of answer tokens."""
    whole, pieces, inputs = make_learner(tokenizer), make_learner(tokenizer), lesson()
    whole.learn(inputs)
    first = 0
    for size in sizes:
        pieces.learn(part(inputs, slice(first, first + size)))
        first += size
    torch.testing.assert_close(gradients(whole), gradients(pieces), atol=1e-5, rtol=1e-4)
    assert whole.step() == pytest.approx(pieces.step(), rel=1e-4)
    ours, theirs = (dict(learner.critic.named_parameters()) for learner in (whole, pieces))
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-4)


def test_a_step_without_a_token_changes_nothing(tokenizer: Any) -> None:
    learner, inputs = make_learner(tokenizer, learning_rate=1e-3), lesson()
    before = copy.deepcopy(learner.critic.state_dict())
    learner.learn({**inputs, "value_mask": torch.zeros_like(inputs["value_mask"])})
    assert learner.step()["critic/loss"] == 0
    torch.testing.assert_close(learner.critic.state_dict(), before, rtol=0, atol=0)


def test_the_learning_rate_warms_up_and_gradients_are_clipped(tokenizer: Any) -> None:
    learner, inputs = make_learner(tokenizer, learning_rate=1e-3, lr_warmup_steps=4, max_grad_norm=1e-3), lesson()
    rates = []
    for _ in range(6):
        learner.learn(inputs)
        found = learner.step()
        rates.append(found["critic/lr"])
        assert found["critic/grad_norm"] > 1e-3  # as before
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3, 1e-3])


@pytest.mark.slow
def test_a_critic_learns_values(tokenizer: Any) -> None:
    """1 after the token 20, and 0 after any other token."""
    learner = make_learner(tokenizer, head=False, learning_rate=3e-3, clip_range=None)
    losses, explained = [], []
    for step in range(60):
        inputs = lesson(step, count=16)
        before = torch.cat([inputs["prompt_ids"][:, -1:], inputs["completion_ids"][:, :-1]], 1)
        targets = (before < 20).float()
        mask = inputs["completion_mask"].bool()
        values, _ = learner.values(inputs, [[]] * 16, 16)
        learner.learn({**inputs, "value_targets": targets, "old_values": values, "value_mask": mask})
        losses.append(learner.step()["critic/loss"])
        explained.append(explained_variance(values, targets, mask))
    assert explained[0] == pytest.approx(0.0, abs=1e-6)
    assert sum(losses[-5:]) < 0.2 * sum(losses[:5]), losses
    assert min(explained[-5:]) > 0.7, explained


def test_explained_variance_equals_known_values() -> None:
    targets, mask = torch.tensor([[1.0, 2.0, 3.0, 99.0]]), torch.tensor([[True, True, True, False]])
    assert explained_variance(targets, targets, mask) == 1
    assert explained_variance(torch.full_like(targets, 2.0), targets, mask) == 0
    assert explained_variance(targets + 5, targets, mask) == 1  # a constant error explains all variance
    assert explained_variance(-targets, targets, mask) == pytest.approx(-3)
    assert explained_variance(targets, torch.ones_like(targets), mask) == 0
    assert explained_variance(targets, targets, torch.zeros_like(mask)) == 0


def test_a_saved_critic_resumes(tokenizer: Any, tmp_path: Path) -> None:
    straight, first, second = (make_learner(tokenizer, learning_rate=1e-3, lr_warmup_steps=9) for _ in range(3))
    for step in range(4):
        straight.learn(lesson(step))
        straight.step()
    for step in range(2):
        first.learn(lesson(step))
        first.step()
    first.save(tmp_path / "critic.pt")
    second.load(tmp_path / "critic.pt")
    for step in range(2, 4):
        second.learn(lesson(step))
        second.step()
    torch.testing.assert_close(straight.critic.state_dict(), second.critic.state_dict(), rtol=0, atol=0)
    other = CriticLearner(Critic(make_model(tokenizer, hidden_size=32, layers=1).base_model), CriticOptions(), _cpu())
    with pytest.raises(UsageError, match="another critic"):
        other.load(tmp_path / "critic.pt")
    with pytest.raises(UsageError, match="has no critic"):
        other.load(tmp_path / "none.pt")


def _cpu() -> Accelerator:
    return Accelerator(cpu=True)


def test_a_copied_backbone_is_independent_of_the_policy(tokenizer: Any) -> None:
    policy = make_small_model(tokenizer)
    policy.requires_grad_(False)
    backbone = load_backbone(None, policy)
    torch.testing.assert_close(backbone.state_dict(), policy.base_model.state_dict(), rtol=0, atol=0)
    assert all(weight.requires_grad for weight in backbone.parameters())
    assert not {w.data_ptr() for w in backbone.parameters()} & {w.data_ptr() for w in policy.parameters()}


def test_a_policy_with_adapters_is_merged(tokenizer: Any) -> None:
    policy = get_peft_model(
        make_small_model(tokenizer), LoraConfig(task_type="CAUSAL_LM", r=2, init_lora_weights=False)
    )
    backbone = load_backbone(None, policy)
    ids = torch.tensor([[11, 12, 13]])
    expected = policy(input_ids=ids, output_hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(backbone(input_ids=ids).last_hidden_state, expected, **CLOSE)
    assert not any("lora" in name for name in backbone.state_dict())
    assert any("lora" in name for name in policy.state_dict()), "the policy keeps its own"


def test_a_critic_model_is_loaded_by_name(model_path: Path, tokenizer: Any) -> None:
    """In float32, whatever the policy's options, and from its own newest revision."""
    theirs = AutoModelForCausalLM.from_pretrained(model_path).base_model.state_dict()
    given_options = {"dtype": "bfloat16", "revision": "abc", "device_map": "auto", "attn_implementation": "eager"}
    for name, policy in ((str(model_path), "unused"), (None, str(model_path))):
        backbone = load_backbone(name, policy, **(given_options if name else {"dtype": "bfloat16"}))
        torch.testing.assert_close(backbone.state_dict(), theirs, rtol=0, atol=0)
    with pytest.raises(UsageError, match="the critic's model does not load: 'no/model' is neither"):
        load_backbone("no/model", str(model_path))
    with pytest.raises(UsageError, match=r"the critic has \d+ tokens and the policy's tokenizer \d+"):
        check_vocabulary(backbone, len(tokenizer) + 10_000)


def test_a_critic_is_loaded_unsharded_under_zero_3(model_path: Path) -> None:
    """transformers would shard it, and would import deepspeed for that."""

    class Config:
        def is_zero3(self) -> bool:
            return True

    config = Config()
    deepspeed.set_hf_deepspeed_config(config)
    try:
        assert load_backbone(str(model_path), "x").get_input_embeddings().weight.numel()
        assert deepspeed.is_deepspeed_zero3_enabled()
    finally:
        deepspeed.unset_hf_deepspeed_config()


def test_bfloat16_is_for_the_forward_pass_only(tokenizer: Any) -> None:
    backbone = make_small_model(tokenizer).base_model
    critic = Critic(backbone.to(torch.bfloat16))
    torch.nn.init.normal_(critic.head.weight)
    exact = CriticLearner(copy.deepcopy(critic), CriticOptions(), _cpu())
    setup = SimpleNamespace(device=torch.device("cpu"), mixed_precision="bf16", reduce=lambda tensor, reduction: tensor)
    rough = CriticLearner(critic, CriticOptions(learning_rate=1e-5), setup)
    assert {weight.dtype for weight in rough.critic.parameters()} == {torch.float32}
    inputs = lesson()
    values, other = (learner.values(inputs, [[]] * 8, 8)[0] for learner in (exact, rough))
    assert values.dtype == other.dtype == torch.float32
    assert not torch.equal(values, other)
    torch.testing.assert_close(values, other, atol=0.2, rtol=0.05)
    before = copy.deepcopy(rough.critic.state_dict())
    rough.learn(inputs)
    rough.step()
    moved = [(now - before[name]).abs().max() > 0 for name, now in rough.critic.state_dict().items()]
    assert sum(moved) > len(moved) / 2  # in bfloat16, steps of 1e-5 would be lost


def test_recomputing_layers_changes_no_gradient(tokenizer: Any) -> None:
    found = []
    for recompute in (False, True):
        learner = make_learner(tokenizer, gradient_checkpointing=recompute)
        learner.learn(lesson())
        found.append(gradients(learner))
        layers = [
            module
            for module in learner.critic.backbone.modules()
            if getattr(module, "_gradient_checkpointing_func", None)
        ]
        assert bool(layers) == recompute
    torch.testing.assert_close(found[0], found[1], atol=1e-6, rtol=1e-5)


@pytest.mark.train
@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_rollout_gets_advantages_from_the_critic(bootstrap: bool, tokenizer: Any, tmp_path: Path) -> None:
    """Values, bootstrap and targets, computed by hand from unpadded episodes."""
    more: dict[str, Any] = {
        "gamma": 0.9,
        "gae_lambda": 0.8,
        "max_turns": "3",
        "bootstrap_truncated_episodes": bootstrap,
    }
    trainer = make_trainer(tmp_path, tokenizer, algorithm="ppo", **more)
    torch.nn.init.normal_(trainer.learner.critic.head.weight, std=0.1)
    batch = first_batch(trainer)
    episodes = trainer.rollout.last
    assert any(e.bootstrap_ids for e in episodes) and any(len(set(e.assistant_mask)) == 2 for e in episodes)
    width = batch["completion_ids"].size(1)
    values, rewards, mask = torch.zeros(8, width), torch.zeros(8, width), torch.zeros(8, width, dtype=torch.bool)
    after = torch.zeros(8)
    for number, e in enumerate(episodes):
        for t, on in enumerate(e.assistant_mask):
            values[number, t] = value_of(trainer.learner, e.prompt_ids + e.ids[:t]) if on else 0.0
        rewards[number, : len(e.ids)] = torch.tensor(e.rewards)
        mask[number, : len(e.ids)] = torch.tensor(e.assistant_mask).bool()
        if e.trajectory.truncated and bootstrap:
            after[number] = value_of(trainer.learner, e.prompt_ids + e.ids + e.bootstrap_ids)
        assert bool(e.bootstrap_ids) == e.trajectory.truncated
    by_hand = AdvantageBatch(rewards, turn_numbers(mask), torch.ones(8, dtype=torch.bool), 4, values, after)
    targets = values + critic_advantages(by_hand, AdvantageConfig(gamma=0.9, gae_lambda=0.8))
    assert torch.equal(batch["value_mask"], mask)
    torch.testing.assert_close(batch["old_values"][mask], values[mask], **CLOSE)
    torch.testing.assert_close(batch["value_targets"][mask], targets[mask], **CLOSE)
    trimmed = trim_padding({**batch, "prompt_ids": batch["prompt_ids"][:2], "prompt_mask": batch["prompt_mask"][:2]})
    assert trimmed["value_mask"].shape == trimmed["completion_ids"].shape


class Lessons(Spy):
    """Keeps the micro-batches."""

    def _compute_loss(self, model: Any, inputs: Inputs) -> torch.Tensor:
        self.__dict__.setdefault("lessons", []).append(inputs)
        return super()._compute_loss(model, inputs)


@pytest.mark.train
def test_a_critic_learns_from_every_micro_batch_of_every_epoch(tokenizer: Any, tmp_path: Path) -> None:
    """The tensors stay aligned, though each micro-batch is trimmed."""
    more: dict[str, Any] = {"num_iterations": 2, "steps_per_generation": 2, "per_device_train_batch_size": 4}
    trainer = make_trainer(tmp_path, tokenizer, algorithm="ppo", max_steps=8, trainer=Lessons, **more)
    trainer.train()
    assert len(trainer.lessons) == 8 and len(trainer.outputs) == 2
    for number, inputs in enumerate(trainer.lessons):
        shape = inputs["completion_ids"].shape
        assert all(inputs[name].shape == shape for name in ("value_mask", "value_targets", "old_values", "advantages"))
        assert not (inputs["value_mask"] & ~inputs["completion_mask"].bool()).any()
        again = trainer.lessons[number ^ 2]  # the same minibatch in the other epoch
        assert torch.equal(inputs["completion_ids"], again["completion_ids"])
        assert not torch.equal(inputs["completion_ids"], trainer.lessons[number ^ 1]["completion_ids"])
    rows = [row for row in trainer.state.log_history if "loss" in row]
    assert len(rows) == 8 and all(row["critic/grad_norm"] > 0 for row in rows)
    assert {"critic/loss", "critic/lr", "critic/clip_fraction"} <= set(rows[0])
    assert ["critic/explained_variance" in row for row in rows] == [True, False, False, False] * 2


@pytest.mark.train
def test_the_policy_does_not_change_while_the_critic_warms_up(tokenizer: Any, tmp_path: Path) -> None:
    """Neither by gradients nor by weight decay, and Adam's averages stay empty."""
    more: dict[str, Any] = {"critic_warmup_steps": 2, "weight_decay": 0.1, "learning_rate": 1e-2}
    trainer = make_trainer(tmp_path, tokenizer, algorithm="ppo", max_steps=3, **more)
    begin = copy.deepcopy(trainer.model.state_dict())
    seen: list[Any] = []
    critic = copy.deepcopy(trainer.learner.critic.state_dict())
    trainer.add_callback(_AtStepEnd(seen))
    trainer.train()
    for state in seen[:2]:
        assert all(torch.equal(state[name], begin[name]) for name in begin)
    assert any(not torch.equal(seen[2][name], begin[name]) for name in begin)
    assert any(not torch.equal(now, critic[name]) for name, now in trainer.learner.critic.state_dict().items())
    assert {int(state["step"]) for state in trainer.optimizer.state_dict()["state"].values()} == {1}


class _AtStepEnd(TrainerCallback):  # type: ignore[misc]
    def __init__(self, seen: list[Any]) -> None:
        self._seen = seen

    def on_step_end(self, *_: Any, model: Any, **__: Any) -> None:
        self._seen.append(copy.deepcopy(model.state_dict()))


@pytest.mark.train
def test_ppo_trains_adapters(tokenizer: Any, tmp_path: Path) -> None:
    extra = {"peft_config": LoraConfig(task_type="CAUSAL_LM", r=2)}
    trainer = make_trainer(tmp_path, tokenizer, algorithm="ppo", max_steps=1, extra=extra)
    before = copy.deepcopy(trainer.learner.critic.state_dict())
    trainer.train()
    assert not any("lora" in name for name in before)
    assert any(not torch.equal(now, before[name]) for name, now in trainer.learner.critic.state_dict().items())
    assert trainer.state.log_history[0]["critic/loss"] > 0


def test_critic_options_are_parsed(tmp_path: Path) -> None:
    words = [*PLAY, "--model", "m", "--out", str(tmp_path), "--use_cpu", "--algorithm", "ppo"]
    words += ["--critic-model", "c", "--critic-learning-rate", "3e-5", "--critic-clip-range", "0.5", "--use_peft"]
    args = parse(AgentConfig, [*words, "--critic-warmup-steps", "7", "--vllm_mode", "server"])[1]
    assert (args.critic_model, args.critic_learning_rate, args.critic_clip_range) == ("c", 3e-5, 0.5)
    assert (args.critic_warmup_steps, args.vllm_mode) == (7, "server")


@pytest.mark.train
def test_ppo_runs_from_the_command_line(
    model_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTGYM_DEBUG", "")
    words = ["train", "ppo", *PLAY, *SMALL, *ROLL, "--model", str(model_path), "--out", str(tmp_path / "out")]
    assert main([*words, "--critic-model", "no/critic"]) == 2
    lines = [line for line in capfd.readouterr().err.splitlines() if line.strip()]
    assert len(lines) == 1 and "the critic's model does not load: 'no/critic' is neither" in lines[0], lines
    assert not (tmp_path / "out").exists()
    assert main([*words, "--critic-model", str(model_path), "--num_iterations", "2", "--save_steps", "1"]) == 0
    assert "ppo" in capfd.readouterr().err
    assert (tmp_path / "out" / "checkpoint-2" / "critic.pt").is_file()
