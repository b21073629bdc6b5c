"""Advantage estimators: pure functions from the rewards of a batch of episodes to advantages.

Shapes: B episodes in groups of `group_size` consecutive ones (same task and seed), T tokens after the prompt, K turns.
An estimator returns one advantage per episode, (B,), or one per token, (B, T). An unusable episode (`env_error`) gets 0
and enters no mean.

A turn is the tokens that the policy sampled between two steps of the environment: an action, and a plan or a summary
before it. Its reward is on its last token, where every estimator reads it.
Observation tokens are not steps of the policy: estimators skip them and do not discount across them.

To add an algorithm, write a function here and add a row to `agentgym_trl.algorithms.ALGORITHMS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class AdvantageBatch:
    """The input of an estimator: the episodes of all processes.

    rewards: (B, T) the reward of a turn on the last token of its answer; further terms (a KL penalty) on any answer
        token. Estimators ignore rewards on other tokens.
    turn_numbers: (B, T) the number of each answer token's turn, from 1; 0 on other tokens.
    usable: (B,) False for an episode that must not be trained on.
    group_size: number of consecutive episodes with the same task and seed; in a team, also the same role.
    roles: number of consecutive groups with the same task and seed, one per trained member of a team.
    values: (B, T) the critic's value before each token; None without a critic.
    next_values: (B,) the critic's value after a truncated episode; 0 for an episode that ended.
    states: (B, T) a key of the environment's state before the token's turn; equal keys mean equal states.
    state_values: (B, T) the value of the state before the token's turn, from continuations; NaN where it is unknown.
    turn_owners: (B, T) the episode of the group that sampled the token's turn, where episodes share their beginning.
    """

    rewards: Tensor
    turn_numbers: Tensor
    usable: Tensor
    group_size: int
    values: Tensor | None = None
    next_values: Tensor | None = None
    states: Tensor | None = None
    roles: int = 1
    state_values: Tensor | None = None
    turn_owners: Tensor | None = None

    @property
    def mask(self) -> Tensor:
        """(B, T) True on answer tokens."""
        return self.turn_numbers > 0

    @property
    def trained_mask(self) -> Tensor:
        """(B, T) True on the answer tokens of usable episodes, truncated answers included."""
        return self.mask & self.usable[:, None]


@dataclass(frozen=True, slots=True)
class AdvantageConfig:
    """Options of the estimators.

    scale: the divisor of grpo's deviations: the standard deviation of the group, of the batch, or none.
    gamma, gae_lambda: discount and GAE's decay, in [0, 1], applied once per turn or per token, as `discount_per` says.
    turn_level: compare the return-to-go of each turn, not the episode's return (grouped estimators only).
    step_weight: weight of the advantage among turns that began in the same state (GiGPO).
    """

    scale: Literal["group", "batch", "none"] = "group"
    gamma: float = 1.0
    gae_lambda: float = 0.95
    discount_per: Literal["turn", "token"] = "turn"
    turn_level: bool = False
    step_weight: float = 0.0


Compare = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(N,) numbers, (N,) group keys, (N,) valid -> (N,) each number relative to its group; 0 where it is not valid."""


def grpo(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """Group-relative: A_i = (R_i - mean of its group) / (standard deviation + 1e-4), shape (B,).

    R_i is the sum of an episode's rewards, discounted by `config.gamma` at every turn, here and below. `config.scale`
    selects the deviation of the group (GRPO), of the batch, or none (Dr. GRPO).
    Source: DeepSeekMath, arXiv 2402.03300, section 4.1.2; Dr. GRPO, arXiv 2503.20783; the unbiased deviation and the
    1e-4 as in TRL.
    """
    return _relative(batch, config, partial(standardised, scale=config.scale))


def rloo(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """Leave one out: A_i = R_i - mean of the group's other episodes, shape (B,); 0 if there is no other.

    Source: Back to Basics, arXiv 2402.14740, section 3.2.
    """
    return _relative(batch, config, left_out)


def reinforce_plus_plus_baseline(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """A_i = R_i - mean of its group, then whitened over all answer tokens of the batch, shape (B, T).

    Source: REINFORCE++, arXiv 2501.03262, the variant with a group baseline.
    """
    centred = _relative(batch, config, _centred)
    if centred.dim() == 1:
        centred = centred[:, None].expand_as(batch.rewards)
    return whiten_roles(centred, batch)


def reinforce_plus_plus(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """The return from each token on, whitened over all answer tokens of the batch, shape (B, T).

    A_t = sum over t' >= t of r_t' (discounted), minus the mean and divided by the standard deviation of all of them.
    The mean is over tokens, so long episodes weigh more. With the KL penalty in the reward this is the paper's return.
    Source: REINFORCE++, arXiv 2501.03262, section 3.
    """
    return whiten_roles(token_returns(batch, config), batch)


def gae(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """Generalised advantage estimation over answer tokens, whitened over the batch, shape (B, T); needs a critic.

    Source: GAE, arXiv 1506.02438, equation 16; PPO, arXiv 1707.06347.
    """
    return whiten_roles(critic_advantages(batch, config), batch)


def imitation(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """1 for every usable episode, (B,): the loss is then the cross-entropy of the answers.

    The gradient of the importance ratio times an advantage of 1 is that of log p, for the policy that is trained.
    """
    return batch.usable.to(batch.rewards.dtype)


def critic_advantages(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """GAE before whitening, (B, T)."""
    assert batch.values is not None and batch.next_values is not None, "gae needs the values of a critic"
    steps = discounts(batch, config.gamma, config.discount_per)
    decays = discounts(batch, config.gae_lambda, config.discount_per)
    return generalized_advantages(batch.rewards, batch.values, batch.mask, batch.next_values, steps, decays)


def value_targets(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """The critic's training targets, (B, T): its values plus the advantages before whitening."""
    assert batch.values is not None
    return batch.values + critic_advantages(batch, config)


def token_returns(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """The discounted sum of rewards from each answer token on, (B, T)."""
    steps = discounts(batch, config.gamma, config.discount_per)
    zeros = torch.zeros_like(batch.rewards)
    return generalized_advantages(batch.rewards, zeros, batch.mask, zeros[:, 0], steps, torch.ones_like(zeros))


def generalized_advantages(
    rewards: Tensor, values: Tensor, mask: Tensor, next_values: Tensor, discount: Tensor, decay: Tensor
) -> Tensor:
    """GAE over answer tokens only, (B, T); 0 elsewhere.

    With n the next answer token after t (V_n = `next_values`, A_n = 0 after the last):
    delta_t = r_t + discount_t V_n - V_t and A_t = delta_t + discount_t decay_t A_n.
    """
    advantages = torch.zeros_like(rewards)
    next_advantage, next_value = torch.zeros_like(next_values), next_values
    for t in reversed(range(rewards.size(1))):
        delta = rewards[:, t] + discount[:, t] * next_value - values[:, t]
        advantage = delta + discount[:, t] * decay[:, t] * next_advantage
        is_answer = mask[:, t]
        next_advantage = torch.where(is_answer, advantage, next_advantage)
        next_value = torch.where(is_answer, values[:, t], next_value)
        advantages[:, t] = torch.where(is_answer, advantage, 0.0)
    return advantages


def discounts(batch: AdvantageBatch, factor: float, per: Literal["turn", "token"]) -> Tensor:
    """The factor (B, T) between a token and the next answer token: `factor` at every token or at turn ends, else 1."""
    applies = batch.mask if per == "token" else turn_ends(batch.turn_numbers)
    return torch.where(applies, batch.rewards.new_tensor(factor), 1.0)  # a Python float would be cast to float32


def turn_ends(turn_numbers: Tensor) -> Tensor:
    """(B, T) True on the last token of every turn."""
    none = 1 << 30
    later = torch.nn.functional.pad(torch.where(turn_numbers > 0, turn_numbers, none)[:, 1:], (0, 1), value=none)
    following = later.flip(1).cummin(1).values.flip(1)  # the number of the next answer token
    return (turn_numbers > 0) & (turn_numbers != following)


def turn_rewards(batch: AdvantageBatch) -> Tensor:
    """(B, K) the reward of each turn; 0 for turns that an episode does not have. K is at least 1."""
    numbers = batch.turn_numbers
    sums = batch.rewards.new_zeros(len(numbers), max(int(numbers.max()), 1) if numbers.numel() else 1)
    return sums.scatter_add(1, _turn_indices(batch), torch.where(batch.mask, batch.rewards, 0.0))


def returns_to_go(rewards: Tensor, gamma: float) -> Tensor:
    """(B, K) the discounted sum of the turn rewards (B, K) from each turn on."""
    sums = rewards.clone()
    for turn in reversed(range(rewards.size(1) - 1)):
        sums[:, turn] += gamma * sums[:, turn + 1]
    return sums


def whiten(numbers: Tensor, mask: Tensor) -> Tensor:
    """Subtract the mean and divide by the (unbiased) standard deviation of the masked numbers, (B, T); 0 elsewhere."""
    count = mask.sum().clamp(min=1)
    mean = torch.where(mask, numbers, 0.0).sum() / count
    centred = torch.where(mask, numbers - mean, 0.0)
    variance = centred.square().sum() / (count - 1).clamp(min=1)
    return centred * torch.rsqrt(variance + 1e-8)


def whiten_roles(numbers: Tensor, batch: AdvantageBatch) -> Tensor:
    """(B, T) whitened over the trained tokens, separately for each role, as roles may earn different returns."""
    role = torch.arange(len(numbers), device=numbers.device) // batch.group_size % batch.roles
    per_role = [whiten(numbers, batch.trained_mask & (role == index)[:, None]) for index in range(batch.roles)]
    return torch.stack(per_role).sum(0)


def _relative(batch: AdvantageBatch, config: AdvantageConfig, compare: Compare) -> Tensor:
    """Compare within groups: one advantage per episode, (B,), or per token, (B, T), if turns are compared.

    `turn_level` compares a turn with the turns of the same index in the group's other episodes. `step_weight` compares
    it with all turns of the group that began in the same state (GiGPO, arXiv 2505.10978, section 3.3). As in the paper,
    `gamma` then discounts the returns of turns and not the return of the episode.
    """
    group = episode_groups(batch)
    rewards = turn_rewards(batch)
    to_go = returns_to_go(rewards, config.gamma)
    if not config.turn_level and not config.step_weight:
        return compare(to_go[:, 0], group, batch.usable)
    turns, played = torch.arange(to_go.size(1), device=group.device).expand_as(to_go), played_turns(batch)
    if config.turn_level:
        advantages = _compare_turns(to_go, group, turns, played, compare)
    else:
        advantages = compare(rewards.sum(1), group, batch.usable)[:, None].expand_as(to_go)
    if config.step_weight:
        assert batch.states is not None, "step_weight needs the keys of states"
        states = of_turns(batch.states, batch)
        advantages = advantages + config.step_weight * _compare_turns(to_go, group, states, played, compare)
    return per_token(advantages, batch)


def episode_groups(batch: AdvantageBatch) -> Tensor:
    """(B,) the number of each episode's group."""
    return torch.arange(len(batch.rewards), device=batch.rewards.device) // batch.group_size


def played_turns(batch: AdvantageBatch) -> Tensor:
    """(B, K) True for the turns of usable episodes."""
    counts = batch.turn_numbers.max(1, keepdim=True).values
    turns = torch.arange(max(int(counts.max()), 1), device=counts.device)
    return (turns < counts) & batch.usable[:, None]


def of_turns(values: Tensor, batch: AdvantageBatch) -> Tensor:
    """(B, K) values (B, T) that are equal on all tokens of a turn; 0 for turns that an episode does not have."""
    found = values.new_zeros(len(values), max(int(batch.turn_numbers.max()), 1))
    ends = torch.where(turn_ends(batch.turn_numbers), values, 0)  # one token per turn, so the sum is the value
    return found.scatter_add(1, _turn_indices(batch), ends)


def per_token(values: Tensor, batch: AdvantageBatch) -> Tensor:
    """(B, T) values of turns (B, K) on the answer tokens of usable episodes; 0 elsewhere."""
    return torch.where(batch.trained_mask, values.gather(1, _turn_indices(batch)), 0.0)


def _compare_turns(to_go: Tensor, group: Tensor, label: Tensor, played: Tensor, compare: Compare) -> Tensor:
    """(B, K) the return-to-go of each turn relative to the turns of the same group and label (B, K)."""
    pairs = torch.stack([group[:, None].expand_as(label), label], -1).view(-1, 2)
    keys = torch.unique(pairs, dim=0, return_inverse=True)[1]
    return compare(to_go.reshape(-1), keys, played.reshape(-1)).view_as(to_go)


def _turn_indices(batch: AdvantageBatch) -> Tensor:
    """(B, T) the index of each answer token's turn, from 0; also 0 on other tokens."""
    return (batch.turn_numbers - 1).clamp(min=0)


def _sums(numbers: Tensor, keys: Tensor) -> Tensor:
    """(N,) the sum over the group of each number."""
    return numbers.new_zeros(int(keys.max()) + 1).index_add(0, keys, numbers)[keys]


def _centred(numbers: Tensor, keys: Tensor, valid: Tensor) -> Tensor:
    count = _sums(valid.to(numbers.dtype), keys).clamp(min=1)
    mean = _sums(torch.where(valid, numbers, 0.0), keys) / count
    return torch.where(valid, numbers - mean, 0.0)


def left_out(numbers: Tensor, keys: Tensor, valid: Tensor) -> Tensor:
    """The deviation from the mean of the others: n / (n - 1) times the deviation from the mean of all."""
    count = _sums(valid.to(numbers.dtype), keys)
    return _centred(numbers, keys, valid) * count / (count - 1).clamp(min=1)


def standardised(numbers: Tensor, keys: Tensor, valid: Tensor, scale: str) -> Tensor:
    """The deviation from the group's mean, over the standard deviation that `scale` selects."""
    centred = _centred(numbers, keys, valid)
    if scale == "none":
        return centred
    if scale == "batch":
        keys = torch.zeros_like(keys)
    squares = _sums(_centred(numbers, keys, valid).square(), keys)
    count = _sums(valid.to(numbers.dtype), keys)
    return centred / ((squares / (count - 1).clamp(min=1)).sqrt() + 1e-4)
