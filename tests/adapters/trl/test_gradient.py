"""The loss is the masked policy gradient over exactly the sampled tokens."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_envs.core import Transition
from agentgym_envs.rollout import TokenTrajectory
from agentgym_trl.batch import policy_logprobs
from agentgym_trl.config import CHOICES
from agentgym_trl.padding import trim_padding
from tests.adapters.trl.reference_advantages import Episode, Table, estimate, generalised
from tests.adapters.trl.small import REWARDED, BrokenCraft, config, first_batch, make_trainer

pytestmark = pytest.mark.train


def gradients(loss: torch.Tensor, model: Any) -> dict[str, torch.Tensor]:
    names, weights = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, weights), strict=True))


def assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert any(gradient.abs().max() > 1e-3 for gradient in ours.values())
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-3)


class Mixed(BrokenCraft):
    """Some episodes end, some are truncated, and the environment fails in one."""

    def __init__(self, counter: Any) -> None:
        super().__init__(lambda number: number == 2, counter, 1)

    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        return done._replace(terminated=sum(command.encode()) % 3 == 0)


@dataclass
class ByHand:
    """The loss of a trainer's episodes, computed token by token from their records."""

    trainer: Any
    played: list[TokenTrajectory]

    def logprobs(self, model: Any, number: int) -> torch.Tensor:
        """(T,) of every token after the prompt, from a forward pass of this episode alone."""
        episode = self.played[number]
        ids = torch.tensor(episode.prompt_ids + episode.ids)
        logits = model(input_ids=ids[None]).logits[0].float() / self.trainer.temperature
        indices = torch.arange(len(episode.prompt_ids), len(ids))
        return logits.log_softmax(-1)[indices - 1, ids[indices]]

    @torch.no_grad()
    def kl(self, number: int) -> torch.Tensor:
        """(T,) log pi - log pi_ref."""
        return self.logprobs(self.trainer.model, number) - self.logprobs(self.trainer.ref_model, number)

    def values(self, number: int, grad: bool = False) -> torch.Tensor:
        """(T + 1,) the critic's value before each token after the prompt, and of a truncated last state, else 0."""
        episode, critic = self.played[number], self.trainer.learner.critic
        ids = torch.tensor(episode.prompt_ids + episode.ids + episode.bootstrap_ids)
        with torch.set_grad_enabled(grad):
            read = (critic.backbone(input_ids=ids[None]).last_hidden_state[0] @ critic.head.weight[0]).float()
        before = read[len(episode.prompt_ids) - 1 :][: len(episode.ids)]
        return torch.cat([before, read[-1:] if episode.bootstrap_ids else read.new_zeros(1)])

    def episodes(self) -> list[Episode]:
        return [self.episode(number) for number in range(len(self.played))]

    def episode(self, number: int) -> Episode:
        played, args = self.played[number], self.trainer.args
        rewards = list(played.rewards)
        if args.kl_in == "reward":
            penalty = (args.beta * self.kl(number)).tolist()
            rewards = [r - p * m for r, p, m in zip(rewards, penalty, played.assistant_mask, strict=True)]
        values = self.values(number).tolist() if self.trainer.learner else [0.0] * (len(rewards) + 1)
        mask = [bool(on) for on in played.assistant_mask]
        usable = played.trajectory.usable
        return Episode(number // 4, rewards, mask, usable, values[:-1], values[-1], states(played))

    def loss(self, advantages: Table, loss_type: str) -> torch.Tensor:
        """Minus the sum of advantage x log-probability over trained tokens, plus the KL term if it is in the loss."""
        rows, everywhere = [], 0
        for number, episode in enumerate(self.played):
            trained = self.trained(episode)
            policy = self.logprobs(self.trainer.model, number)
            terms = [-advantages[number][t] * policy[t] + self.penalty(number, policy)[t] for t in trained]
            rows.append((torch.stack(terms).sum() if terms else policy.sum() * 0, len(terms)))
            everywhere += len(terms)
        if loss_type == "grpo":  # the mean over rows with trained tokens of the mean over tokens
            return torch.stack([row / count for row, count in rows if count]).mean()
        if loss_type == "dr_grpo":
            used = sum(count > 0 for _, count in rows)
            return torch.stack([row for row, _ in rows]).sum() / (used * self.trainer.args.max_completion_length)
        return torch.stack([row for row, _ in rows]).sum() / everywhere  # dapo: the mean over all sampled tokens

    def penalty(self, number: int, policy: torch.Tensor) -> torch.Tensor:
        """(T,) the KL term of the loss, by its gradient: that of the reverse KL divergence, or DeepSeekMath's (4)."""
        args = self.trainer.args
        if not args.beta or args.kl_in == "reward":
            return torch.zeros_like(policy)
        with torch.no_grad():
            reference = self.logprobs(self.trainer.ref_model, number)
        difference = policy - reference
        unbiased: bool = args.use_bias_correction_kl  # TRL's default
        kl = (-difference).exp() + difference - 1
        term: torch.Tensor = difference.detach() * policy if unbiased else kl
        if args.kl_clip is not None:  # the minimum is a constant; with the correction, times the policy's ratio
            term = torch.where(kl > args.kl_clip, args.kl_clip * policy if unbiased else args.kl_clip, term)
        return args.beta * term

    def trained(self, episode: TokenTrajectory) -> list[int]:
        """The indices of the tokens in the loss."""
        truncated = [turn.info.get("finish") == "length" for turn in episode.trajectory.turns]
        turn, indices = -1, []
        for t, on in enumerate(episode.assistant_mask):
            turn += on and not (t and episode.assistant_mask[t - 1])
            if on and episode.trajectory.usable and not (self.trainer.args.mask_truncated_answers and truncated[turn]):
                indices.append(t)
        return indices

    def critic_loss(self, episodes: list[Episode]) -> torch.Tensor:
        """Half the sum of the squared errors of the values on answer tokens."""
        total = torch.zeros(())
        for number, row in enumerate(generalised(episodes, self.trainer.args.advantage_config)):
            values = self.values(number, grad=True)
            for t, on in enumerate(episodes[number].mask):
                if on and episodes[number].usable:
                    total = total + 0.5 * (values[t] - (values[t].detach() + row[t])).square()
        return total


def states(played: TokenTrajectory) -> list[int]:
    """(T,) a number for the state in which each token's turn began: that of the reset, then that after each step."""
    keys = [played.trajectory.meta["state_key"], *(str(turn.info["state_key"]) for turn in played.trajectory.turns)]
    found, turn = [], -1
    for t, on in enumerate(played.assistant_mask):
        turn += bool(on) and not (t and played.assistant_mask[t - 1])
        found.append(int(keys[turn], 16) if on else 0)
    return found


REWARD_KL = {"kl_in": "reward", "beta": 0.2}
LOSSES = CHOICES["loss_type"]
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {"loss_type": loss}) for name in REWARDED for loss in ("dapo", "grpo")),
    *((name, REWARD_KL) for name in REWARDED),
    *((name, {"mask_truncated_answers": True}) for name in REWARDED),
    ("grpo", {"scale_rewards": "batch", "gamma": 0.9}),
    ("grpo", {"scale_rewards": "none", "turn_level_advantage": True}),
    ("grpo", {"step_advantage_weight": 0.5, "gamma": 0.8}),
    ("grpo", {"beta": 0.2, "loss_type": "grpo"}),
    ("grpo", {"beta": 0.2, "loss_type": "dr_grpo"}),
    ("grpo", {"beta": 0.9, "kl_clip": 0.01}),
    ("rloo", {"beta": 0.9, "kl_clip": 0.01, "use_bias_correction_kl": False}),
    ("rloo", {"beta": 0.2, "use_bias_correction_kl": False}),
    ("rloo", {"turn_level_advantage": True, "gamma": 0.8, **REWARD_KL}),
    ("rloo", {"step_advantage_weight": 1.0, "gamma": 0.8}),
    ("reinforce++-baseline", {"turn_level_advantage": True, "step_advantage_weight": 0.5}),
    ("reinforce++", {"gamma": 0.8, "discount_per": "token", **REWARD_KL}),
    ("ppo", {"gamma": 0.8, "gae_lambda": 0.5, "beta": 0.1}),
    ("ppo", {"gamma": 0.9, "discount_per": "token", **REWARD_KL}),
]


def in_words(value: Any) -> str:
    return "-".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)


@pytest.mark.rotating(always=10)
@pytest.mark.parametrize("name, options", CASES, ids=in_words)
def test_the_gradient_is_the_masked_policy_gradient(
    name: str, options: dict[str, Any], tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    trainer = scrambled(name, options, tokenizer, model_path, tmp_path)
    batch = first_batch(trainer)
    hand = ByHand(trainer, trainer.rollout.last)
    assert_various(hand.played)
    episodes = hand.episodes()
    advantages = estimate(name, episodes, trainer.args.advantage_config)
    ours = gradients(trainer._compute_loss(trainer.model, batch), trainer.model)
    assert_same(ours, gradients(hand.loss(advantages, trainer.args.loss_type), trainer.model))
    if trainer.learner:
        critic = trainer.learner.critic
        learned = {k: weight.grad.clone() for k, weight in critic.named_parameters() if weight.grad is not None}
        critic.zero_grad()
        hand.critic_loss(episodes).backward()
        assert_same(learned, {k: w.grad for k, w in critic.named_parameters() if w.grad is not None})


def scrambled(name: str, options: dict[str, Any], tokenizer: Any, model_path: Path, out: Path) -> Any:
    """A trainer whose policy, reference and critic differ, and whose answers have all lengths."""
    counter = itertools.count()
    args = {"algorithm": name, "env_retries": 0, "max_turns": "4", "max_turn_tokens": 6, **options}
    trainer = make_trainer(out, tokenizer, lambda: Mixed(counter), model=str(model_path), **args)
    torch.manual_seed(3)
    with torch.no_grad():
        for weight in trainer.model.parameters():
            weight += 0.02 * torch.randn_like(weight)
        trainer.model.get_input_embeddings().weight[tokenizer.eos_token_id] *= 12  # likely, or most unlikely
        if trainer.learner:
            trainer.learner.critic.head.weight.normal_(std=0.1)
    return trainer


def assert_various(played: list[TokenTrajectory]) -> None:
    """Check that the batch has every case that a formula must distinguish."""
    usable = [episode for episode in played if episode.trajectory.usable]
    finishes = {turn.info.get("finish") for episode in usable for turn in episode.trajectory.turns}
    assert len(usable) == 7 and finishes == {"stop", "length"}
    assert {bool(episode.bootstrap_ids) for episode in usable} == {True, False}
    assert len({len(episode.trajectory.turns) for episode in usable}) > 1
    assert any(0 in episode.assistant_mask for episode in usable)


@pytest.mark.parametrize("level", CHOICES["importance_sampling_level"])
def test_every_loss_takes_advantages_by_episode_and_by_token(level: str, tokenizer: Any, tmp_path: Path) -> None:
    known = [config(tmp_path, loss_type=loss, importance_sampling_level=level).loss_type for loss in LOSSES]
    assert known == list(LOSSES)
    trainer = make_trainer(tmp_path, tokenizer, importance_sampling_level=level)
    batch = off_policy(trainer)
    by_episode, shape = batch["advantages"], batch["completion_ids"].shape
    by_token = by_episode[:, None].expand(shape)
    varied = by_token * torch.linspace(-1, 1, shape.numel()).view(shape)
    for trainer.loss_type in LOSSES:
        first, second, third = (
            trainer._compute_loss(trainer.model, {**batch, "advantages": advantages})
            for advantages in (by_episode, by_token, varied)
        )
        torch.testing.assert_close(first, second, msg=trainer.loss_type)
        assert third.isfinite() and not torch.isclose(third, first), trainer.loss_type
        for loss in (first, third):
            found = gradients(loss, trainer.model)
            assert all(g.isfinite().all() for g in found.values()), trainer.loss_type
            assert any(g.any() for g in found.values()), trainer.loss_type


def off_policy(trainer: Any) -> dict[str, Any]:
    """A batch as if a slightly different policy had sampled it."""
    batch = first_batch(trainer)
    now = policy_logprobs(trainer, batch)
    noise = torch.randn(now.shape, generator=torch.Generator().manual_seed(0))
    return {**batch, "old_per_token_logps": now + 0.1 * noise}


@pytest.mark.parametrize("loss_type", ["dapo", "grpo", "dr_grpo", "bnpo"])
def test_trimming_changes_neither_loss_nor_gradient(loss_type: str, tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, loss_type=loss_type, gradient_accumulation_steps=4)
    trainer.current_gradient_accumulation_steps = 4
    whole = padded(first_batch(trainer))
    trimmed = trim_padding(whole)
    assert trimmed["prompt_ids"].size(1) == whole["prompt_ids"].size(1) - 5
    assert trimmed["completion_ids"].size(1) == whole["completion_ids"].size(1) - 7
    assert trimmed["tool_mask"].shape == trimmed["completion_ids"].shape
    before, after = (trainer._compute_loss(trainer.model, batch) for batch in (whole, trimmed))
    torch.testing.assert_close(before, after, atol=1e-6, rtol=1e-5)
    assert_same(gradients(before, trainer.model), gradients(after, trainer.model))


def padded(batch: dict[str, Any], rows: int = 3) -> dict[str, Any]:
    """Some rows of a batch, with 5 columns of padding before all prompts and 7 behind all completions."""
    batch = {k: v[:rows] if isinstance(v, torch.Tensor) and v.dim() else v for k, v in batch.items()}
    batch = trim_padding(batch)
    shape = batch["completion_ids"].shape
    for name, value in batch.items():
        if name in ("prompt_ids", "prompt_mask"):
            batch[name] = torch.nn.functional.pad(value, (5, 0))
        elif isinstance(value, torch.Tensor) and value.shape == shape:
            batch[name] = torch.nn.functional.pad(value, (0, 7), value=int(name == "tool_mask"))
    return batch


def test_a_wholly_masked_row_and_one_column_survive_trimming() -> None:
    mask = torch.tensor([[0, 0, 0], [0, 0, 0]])
    ids = torch.tensor([[7, 8, 9], [7, 8, 9]])
    batch = {"prompt_ids": ids, "prompt_mask": mask + 1, "completion_ids": ids, "completion_mask": mask}
    trimmed = trim_padding({**batch, "advantages": torch.ones(2), "num_items_in_batch": torch.tensor(3)})
    assert trimmed["completion_ids"].tolist() == [[7], [7]]
    assert trimmed["prompt_ids"].tolist() == ids.tolist()
    assert trimmed["advantages"].shape == (2,) and trimmed["num_items_in_batch"] == 3


def test_micro_batches_are_trimmed(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, per_device_train_batch_size=1, gradient_accumulation_steps=8)
    widths = set()
    compute = trainer._compute_loss

    def spy(model: Any, batch: dict[str, Any]) -> Any:
        assert batch["prompt_mask"][:, 0].any() and batch["completion_mask"][:, -1].any()
        widths.add(batch["completion_ids"].size(1))
        return compute(model, batch)

    trainer._compute_loss = spy
    trainer.train()
    assert len(widths) > 1


def test_observations_contribute_nothing(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer)
    batch = first_batch(trainer)
    sampled = (batch["completion_mask"] * batch["tool_mask"]).bool()
    advantages = torch.linspace(-1, 1, sampled.numel()).view(sampled.shape)
    loss = trainer._compute_loss(trainer.model, {**batch, "advantages": advantages})
    absurd = torch.where(sampled, advantages, 1e4)
    other = trainer._compute_loss(trainer.model, {**batch, "advantages": absurd})
    torch.testing.assert_close(loss, other)
    assert_same(gradients(loss, trainer.model), gradients(other, trainer.model))
    moved = trainer._compute_loss(trainer.model, {**batch, "advantages": torch.where(sampled, advantages + 1, absurd)})
    assert not torch.isclose(moved, loss)


def test_sampled_ids_are_the_trained_ids(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, max_turns="3", max_steps=2)
    trainer.train()
    assert len(trainer.outputs) == 2
    answers: dict[
        tuple[int, ...], list[list[int]]
    ] = {}  # keyed by everything before: the prompts and answers of the engine
    for context, answer in trainer.generated:
        answers.setdefault(context, []).append(answer)
    for batch in trainer.outputs:
        for number in range(8):
            check_row({name: batch[name][number] for name in ROW}, answers)
    assert not any(answers.values()), "something was sampled that is not trained on"


ROW = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask")


def check_row(row: dict[str, torch.Tensor], answers: dict[tuple[int, ...], list[list[int]]]) -> None:
    """Check that the sampled answer is at the beginning of every run of the mask."""
    context = row["prompt_ids"][row["prompt_mask"].bool()].tolist()
    real = row["completion_mask"].bool()
    ids, mask = row["completion_ids"][real].tolist(), row["tool_mask"][real].tolist()
    index = 0
    while index < len(ids):
        if not mask[index]:
            index += 1
            continue
        end = next((t for t in range(index, len(ids)) if not mask[t]), len(ids))
        answers[tuple(context + ids[:index])].remove(ids[index:end])
        index = end
    assert mask[-1] == 1
